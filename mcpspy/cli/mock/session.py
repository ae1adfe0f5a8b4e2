"""The parts that mocks on stdio and over HTTP share: the captures to serve, their matcher, the mock's own capture, its messages.

A client waits for a mock on stdio, so most is imported when it is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..capture_options import UsageError
from .options import USAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...errors import McpspyError
    from ...replay.compare.ignore import Ignore
    from ...replay.mock.match_key import MatchRules, Strictness
    from ...replay.mock.matching import RequestMatcher
    from ...replay.mock.miss import Miss
    from ...replay.mock.on_miss import MissPolicy
    from ...replay.mock.replies import RecordedReplies
    from ...transcript.model import Exchange, Transcript
    from ..new_capture import CaptureStart
    from .options import MockOptions


def paths_of(whats: Iterable[str]) -> list[str]:
    """List the captures that these WHATs name, each once. Raises: AddressError; OSError."""
    return list(dict.fromkeys(path for what in whats for path in _paths(what)))


def _paths(what: str) -> tuple[str, ...]:
    if os.path.isfile(what):
        return (what,)  # without the catalog of all captures, whose import a client would wait for
    from ...capture.store.address import STDIN, resolve
    from ...errors import AddressError

    address = resolve(what, skips_replays=True, skips_mocks=True)  # else a second mock would serve the capture of the first
    if STDIN in address.captures:
        raise AddressError(what, "a mock reads its client from standard input; name a file")
    if address.rows is not None:
        raise AddressError(what, "a mock serves whole captures; leave out the rows")
    return address.captures


def recorded_server(paths: Iterable[str], what: str, *, over_http: bool = False) -> tuple[Transcript, RecordedReplies]:
    """Read the captures of one server, and the replies that a mock can serve; `over_http` these include HTTP refusals.

    Raises: AddressError, CaptureError, ReplayError; OSError.
    """
    from ...capture.file.reader import read
    from ...errors import AddressError
    from ...replay.mock.served import served_replies
    from ...transcript.transcribe import transcribe

    transcript = transcribe(*map(read, paths), keep_frames=over_http, with_findings=False)
    try:
        return transcript, served_replies(transcript, what, over_http=over_http)
    except AddressError as error:
        raise AddressError(error.what, f"{error.reason}, or serve them all with --listen 127.0.0.1:0") from error


def matcher(
    exchanges: Iterable[Exchange], options: MockOptions, rules: Callable[[Strictness, Ignore], MatchRules] | None = None
) -> RequestMatcher:
    """Make the matcher of recorded requests that the options ask for, by the rules of MCP or others. Raises: PathError."""
    from ...replay.mock.match_key import RequestRules, Strictness
    from ...replay.mock.matching import RequestMatcher, Reuse

    return RequestMatcher(
        exchanges,
        strictness=Strictness(options.match),
        ignore=options.ignore,
        reuse=Reuse(options.reuse),
        rules=rules or RequestRules,
    )


def miss_policy(replies: RecordedReplies, options: MockOptions) -> MissPolicy:
    """Make the policy for misses that the options ask for; a pass-through replaces it."""
    from ...replay.mock.on_miss import ERROR, NearestPolicy

    return NearestPolicy(replies.missing_answers) if options.on_miss == "nearest" else ERROR


def capture_start(options: MockOptions, transcript: Transcript, wall_ns: int, begin_ns: int) -> CaptureStart:
    """Gather the facts about the mock's own capture."""
    from ..new_capture import CaptureStart

    header = next((source for source in transcript.captures if not source.is_model), transcript.captures[0]).header
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
    return [source.header.capture_id for source in transcript.captures if source.header]


def refused(error: UsageError | McpspyError | OSError) -> int:
    """Report why nothing is served. Returns the exit status."""
    if isinstance(error, OSError):
        say(f"mcpspy: {error.filename}: {error.strerror}")
        return 2
    if isinstance(error, UsageError):
        say(f"mcpspy mock: {error}\n{USAGE}")
        return 2
    say(f"mcpspy: {error}")
    return error.exit_status


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
