"""`mcpspy mock --listen`: mocks over HTTP, of one server or of all of a recording and the model's API.

They record as `mcpspy proxy` does, and where each is found is told on stderr.
"""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from shlex import quote
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, NamedTuple

from ...capture.redaction.redactor import Redactor, Verbatim
from ...capture.redaction.sink import Redacting
from ...capture.store.folder import key
from ...errors import McpspyError
from ...live.mock.http.server import HttpMock
from ...live.mock.http.server import serve as serve_all
from ...live.stdio.signals import listen
from ...replay.mock.http.facts import HttpFacts
from ...replay.mock.routing import Routing
from ...transcript.http.transaction import ScopeKind
from ..proxy.address import address, allow_many_connections, sync_later
from ..run.capture import open_writer
from ..run.options import SEVERAL, UsageError
from .command import beginning, capture_ids, live_server, matcher, on_miss, paths_of, played, refused, say, tell
from .groups import check, grouped, with_urls
from .pass_through import forwards_of

if TYPE_CHECKING:
    import socket

    from ...capture.file.writer import Writer
    from ...live.mock.llm import LlmMock
    from ...replay.mock.http.answer import Transport
    from ...transcript.model import Transcript
    from .groups import Group


class Asked(NamedTuple):
    """What the command line says of every mock."""

    values: dict[str, str]
    speed: float
    command: tuple[str, ...]
    hosts: frozenset[str]
    begin_ns: int
    wall_ns: int
    are_several: bool


class Mocked(NamedTuple):
    """One mock, and what it was made of."""

    mock: HttpMock | LlmMock
    transcript: Transcript
    group: Group
    lines: list[str]
    """Where it is found, as lines for a person; made once it listens."""


def serve(values: dict[str, str], whats: tuple[str, ...], speed: float, command: tuple[str, ...] = ()) -> int:
    """Serve the captures named by `whats`. Returns the exit status: 2 for bad usage, 3 for no capture, 4 for no address."""
    gc.disable()  # nothing that a start-up makes is garbage: an eighth of its time, for 20,000 exchanges
    signals_fd = listen()
    begin_ns, wall_ns = monotonic_ns(), time_ns()
    try:
        host, port = address(values["listen"], remote="allow-remote" in values, behind="what was recorded")
        names = values["allowed-host"].split(SEVERAL) if "allowed-host" in values else ()
        groups = with_urls(grouped(paths_of(whats)), values)
        check(groups, values, command, port)
        asked = Asked(values, speed, command, frozenset(map(str.lower, names)), begin_ns, wall_ns, len(groups) > 1)
        served = [
            _listening(_mocked(one, " ".join(whats), asked), host, port and port + at, asked) for at, one in enumerate(groups)
        ]
    except (UsageError, McpspyError, OSError) as error:
        return refused(error)
    writers = [_writer(one, asked) for one, _ in served]
    allow_many_connections()
    gc.freeze()
    gc.enable()
    lines = "\n".join(line for one, _ in served for line in one.lines)
    asyncio.run(serve_all([(one.mock, listener) for one, listener in served], signals_fd, partial(say, lines)))
    for (one, _), writer in zip(served, writers, strict=True):
        if writer is not None:
            writer.close(one.mock.now_ns(), one.mock.why)
    return 0


def _mocked(group: Group, what: str, asked: Asked) -> Mocked:
    """The mock of one group. Raises: McpspyError, UsageError; OSError."""
    if group.is_model:
        from .llm import model_mock, transcript_of

        transcript = transcript_of(group.paths)
        return Mocked(model_mock(transcript, what, group, asked), transcript, group, [])
    transcript, scenes = played(group.paths, what, over_http=True)
    values = asked.values | ({"url": group.url} if group.url else {})
    finder = matcher(scenes, values)
    is_live = bool(group.url or asked.command)
    server = live_server(values, asked.command, transcript, shows_login=group.gets_fields) if is_live else None
    facts = HttpFacts(transcript, _transport(transcript, asked), finder.asking)
    mock = HttpMock(
        scenes,
        finder,
        facts,
        Routing(transcript, facts),
        begin_ns=asked.begin_ns,
        wall_ns=asked.wall_ns,
        speed=asked.speed,
        allowed_hosts=asked.hosts,
        on_miss=on_miss(scenes, values),
        forwards=forwards_of(server, scenes) if server is not None else None,
        tell=tell,
    )
    return Mocked(mock, transcript, group, [])


def _transport(transcript: Transcript, asked: Asked) -> Transport:
    """What was asked for; of several servers else what each was recorded over, of one Streamable HTTP."""
    named = asked.values.get("transport")
    if named is None and asked.are_several:
        every = (one for source in transcript.captures for one in source.transactions.values())
        named = "sse" if any(one.scope.kind is ScopeKind.STREAM for one in every) else None
    return "sse" if named == "sse" else "streamable"


def _listening(one: Mocked, host: str, port: int, asked: Asked) -> tuple[Mocked, socket.socket]:
    """The same where it listens. Raises: TapError."""
    listener = one.mock.listen(host, port)
    if isinstance(one.mock, HttpMock):
        return one._replace(lines=[_line(one, asked)]), listener
    from .llm import lines

    return one._replace(lines=lines(one.mock)), listener


def _line(one: Mocked, asked: Asked) -> str:
    """Where a server is found: its URL; of several with the label before it, and how to start it where it was started."""
    if not asked.are_several:
        return one.mock.url
    header = one.transcript.captures[0].header
    is_started = header is not None and header.tapped.get("transport") == "stdio"
    command = f"  or on stdio: mcpspy mock {' '.join(map(quote, one.group.paths))}" if is_started else ""
    return f"{one.group.label or 'server'}  {one.mock.url}{command}"


def _writer(one: Mocked, asked: Asked) -> Writer | None:
    known = beginning(asked.values, one.transcript, asked.wall_ns, asked.begin_ns)
    redactor = Verbatim() if known.redact == "none" else Redactor(key())
    url = one.mock.url
    tapped = {"transport": "http", "url": url, "listen": url, "mock": capture_ids(one.transcript)}
    writer, _ = open_writer(known, tapped | ({"leg": "model"} if one.group.is_model else {}))
    if writer is not None:
        writer.later = sync_later
        writer(())  # the header at once, so that `list` and `show -f` see the mock
        one.mock.record_to(writer if isinstance(redactor, Verbatim) else Redacting(writer, redactor))
    return writer
