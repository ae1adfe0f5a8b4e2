"""The parts that mocks on stdio and over HTTP share: the captures to serve, their matcher, the mock's own capture, its messages.

A client waits for a mock on stdio, so most is imported when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from ...records import Header
from ..capture_options import UsageError
from .options import USAGE, MockOptions

if TYPE_CHECKING:
    from ...errors import McpspyError
    from ...replay.compare.ignore import Ignore
    from ...replay.mock.match_key import MatchRules, Strictness
    from ...replay.mock.matching import RequestMatcher
    from ...replay.mock.miss import Miss
    from ...replay.mock.replies import RecordedReplies
    from ...replay.mock.script import MissPolicy
    from ...transcript.model import Exchange, Transcript
    from ..new_capture import CaptureStart


def paths_of(whats: Iterable[str]) -> list[str]:
    """List the captures that these WHATs name, each once. Raises: AddressError; OSError."""
    return list(dict.fromkeys(path for what in whats for path in _paths(what)))


def _paths(what: str) -> tuple[str, ...]:
    from ..fifo import announced

    if os.path.isfile(what):
        paths = announced((what,))  # without the catalog of all captures, whose import a client would wait for
        if len(paths) > 1:
            from ..replay.played import playable

            paths = playable(what, paths)
        return paths
    from ...capture.store.address import STDIN, resolve
    from ...errors import AddressError

    address = resolve(what)
    if STDIN in address.captures:
        raise AddressError(what, "a mock reads its client from standard input; name a file")
    if address.rows is not None:
        raise AddressError(what, "a mock serves whole captures; leave out the rows")
    from ..replay.played import playable, probes_of

    paths = playable(what, announced(address.captures))
    return tuple(dict.fromkeys(captured for path in paths for captured in (*probes_of(path), path)))


def recorded_server(paths: Iterable[str], what: str, *, over_http: bool = False) -> tuple[Transcript, RecordedReplies]:
    """Read the captures of one server, and the replies that a mock can serve; `over_http` these include HTTP refusals.

    Raises: AddressError, CaptureError, ReplayError; OSError.
    """
    from ...capture.file.reader import read
    from ...errors import AddressError
    from ...replay.mock.replies import served_replies
    from ...transcript.transcribe import transcribe

    transcript = transcribe(*map(read, paths), keep_frames=over_http, with_findings=False)
    try:
        return transcript, served_replies(transcript, what, over_http=over_http)
    except AddressError as error:
        raise AddressError(error.what, f"{error.reason}, or serve them all with --listen 127.0.0.1:0") from error


def matcher(
    exchanges: Iterable[Exchange],
    options: MockOptions,
    rules: Callable[[Strictness, Ignore], MatchRules] | None = None,
    paths: Sequence[str] = (),
) -> RequestMatcher:
    """Make the matcher of recorded requests that the options ask for, by the rules of MCP or others. Raises: PathError.

    `paths` are the captures that are served.
    """
    from ...replay.mock.match_key import RequestRules, Strictness
    from ...replay.mock.matching import RequestMatcher, Reuse

    return RequestMatcher(
        exchanges,
        strictness=Strictness(options.match),
        ignore=options.ignore,
        reuse=Reuse(options.reuse),
        rules=rules or RequestRules,
        siblings=lambda: siblings(paths),
    )


def siblings(paths: Sequence[str]) -> tuple[str, ...]:
    """List captures beside these that were to have the same name, and are of the same server, started by the same client."""
    served = set(map(os.path.realpath, paths))
    others: dict[str, None] = {}
    for path in paths:
        start = _server_start(path)
        if start is not None:
            unserved = (other for other in _series(path) if os.path.realpath(other) not in served)
            others.update((other, None) for other in unserved if _server_start(other) == start)
    return tuple(others)


def _series(path: str) -> Iterator[str]:
    """Yield the captures whose names a tap chose as it did this one's: `x.mcpspy`, `x-2.mcpspy`, `x-3.mcpspy`, …."""
    stem, extension = os.path.splitext(path)
    first, _, number = stem.rpartition("-")
    for base in (stem, first) if number.isdigit() else (stem,):
        names = (f"{base}{f'-{n}' if n > 1 else ''}{extension}" for n in count(1))
        yield from takewhile(os.path.isfile, names)


def _server_start(path: str) -> tuple[str, dict[str, Any]] | None:
    """Return the label and the parent process of a capture's server; None if they cannot be read.

    A FIFO is not opened: what it held was read, and opening it would wait for another writer.
    """
    from ...capture.file.reader import read
    from ...errors import McpspyError

    try:
        header = next(read(path), None) if os.path.isfile(path) else None
    except (McpspyError, OSError):
        return None
    return (header.label, header.parent) if isinstance(header, Header) and header.parent else None


def miss_policy(replies: RecordedReplies, options: MockOptions) -> MissPolicy:
    """Make the policy for misses that the options ask for; a pass-through replaces it."""
    from ...replay.mock.script import ERROR, NearestPolicy

    return NearestPolicy(replies.missing_answers) if options.on_miss == "nearest" else ERROR


def capture_start(options: MockOptions, transcript: Transcript, wall_ns: int, begin_ns: int) -> CaptureStart:
    """Gather the facts about the mock's own capture."""
    from ..new_capture import CaptureStart

    header = next((capture for capture in transcript.captures if not capture.is_model), transcript.captures[0]).header
    return CaptureStart(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=options.label or f"{(header.label if header else '') or 'server'}-mock",
        file=options.capture,
        redact=header.redaction if header else "credentials",
        max_bytes=0,
        quiet=options.quiet,
    )


def capture_ids(transcript: Transcript) -> list[str]:
    """List the ids of the captures that a mock serves, for the header of its own."""
    return [capture.header.capture_id for capture in transcript.captures if capture.header]


def refused(error: UsageError | McpspyError | OSError) -> int:
    """Report why nothing is served. Returns the exit status."""
    from ...errors import sentence
    from ...views.text.escape import without_logins

    text = without_logins(f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error))
    if isinstance(error, UsageError):
        say(f"mcpspy mock: {sentence(text)}\n{USAGE}")
        return 2
    say(f"mcpspy: {sentence(text)}")
    return 2 if isinstance(error, OSError) else error.exit_status


def report_miss(miss: Miss) -> None:
    """Explain on stderr a request that was never recorded."""
    from ...views.timeline.miss import miss_lines  # 2 ms, which a start-up need not wait for
    from ..new_capture import report

    report("\n".join(miss_lines(miss)))


def say(text: str) -> None:
    """Write lines to stderr; text from captures and clients in them is escaped."""
    from ...views.text.escape import safe_text
    from ..new_capture import report

    report("\n".join(map(safe_text, text.split("\n"))))
