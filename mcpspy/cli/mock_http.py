"""`mcpspy mock --listen`: a mock over HTTP. It records as `mcpspy proxy` does, and its URL is told on stderr."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from ..capture.redact import Redactor, Verbatim
from ..capture.redacting import Redacting
from ..capture.store import key
from ..errors import McpspyError
from ..live.mock_http import HttpMock
from ..live.mock_http_serving import serve as serve_all
from ..live.signals import listen
from ..replay.http_facts import HttpFacts
from ..replay.routing import Routing
from .beginning import open_writer
from .listening import address, allow_many_connections, sync_later
from .mock import beginning, capture_ids, live_server, matcher, on_miss, recorded, refused, say, tell
from .mock_forward import forwards_of
from .options import SEVERAL, UsageError

if TYPE_CHECKING:
    from ..capture.writer import Writer
    from ..transcript.model import Transcript


def serve(values: dict[str, str], whats: tuple[str, ...], speed: float, command: tuple[str, ...] = ()) -> int:
    """Serve the captures named by `whats`. Returns the exit status: 2 for bad usage, 3 for no capture, 4 for no address."""
    gc.disable()  # nothing that a start-up makes is garbage: an eighth of its time, for 20,000 exchanges
    signals_fd = listen()
    begin_ns, wall_ns = monotonic_ns(), time_ns()
    try:
        host, port = address(values["listen"], remote="allow-remote" in values, behind="what was recorded")
        transcript, scenes = recorded(whats, over_http=True)
        hosts = values["allowed-host"].split(SEVERAL) if "allowed-host" in values else ()
        finder = matcher(scenes, values)
        server = live_server(values, command, transcript)
        facts = HttpFacts(transcript, "sse" if values.get("transport") == "sse" else "streamable", finder.asking)
        mock = HttpMock(
            scenes,
            finder,
            facts,
            Routing(transcript, facts),
            begin_ns=begin_ns,
            wall_ns=wall_ns,
            speed=speed,
            allowed_hosts=frozenset(map(str.lower, hosts)),
            on_miss=on_miss(scenes, values),
            forwards=forwards_of(server, scenes) if server is not None else None,
            tell=tell,
        )
        listener = mock.listen(host, port)
    except (UsageError, McpspyError, OSError) as error:
        return refused(error)
    writer = _writer(mock, values, transcript, wall_ns)
    allow_many_connections()
    gc.freeze()
    gc.enable()
    asyncio.run(serve_all([(mock, listener)], signals_fd, partial(say, mock.url)))
    if writer is not None:
        writer.close(mock.now_ns(), mock.why)
    return 0


def _writer(mock: HttpMock, values: dict[str, str], transcript: Transcript, wall_ns: int) -> Writer | None:
    known = beginning(values, transcript, wall_ns, mock.begin_ns)
    redactor = Verbatim() if known.redact == "none" else Redactor(key())
    tapped = {"transport": "http", "url": mock.url, "listen": mock.url, "mock": capture_ids(transcript)}
    writer, _ = open_writer(known, tapped)
    if writer is not None:
        writer.later = sync_later
        writer(())  # the header at once, so that `list` and `show -f` see the mock
        mock.record_to(writer if isinstance(redactor, Verbatim) else Redacting(writer, redactor))
    return writer
