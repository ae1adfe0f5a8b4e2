"""The live server of `mcpspy mock --on-miss forward`: which it is, and how it is put behind a mock."""

from __future__ import annotations

from shlex import join
from time import monotonic_ns
from typing import TYPE_CHECKING

from ...live.mock.handover import Handover
from ...live.upstream.pass_through import PassThroughThread
from ...replay.mock.pass_through import Forwarding
from ...transcript.mcp.methods import INITIALIZE
from ..run.capture import nowhere
from ..run.options import SEVERAL, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...capture.file.writer import Writer
    from ...live.mock.http.pass_through import ClientPassThroughs
    from ...live.upstream.pass_through import Courier
    from ...live.upstream.protocol import UpstreamClient
    from ...replay.mock.on_miss import OnMiss
    from ...replay.mock.replies import Scenes
    from ...replay.mock.script import Script
    from ...transcript.message import Message
    from ...transcript.model import Transcript
    from ..replay.target import Target


class LiveServer:
    """A server that is not started yet: `argv` on stdio, else `target`. `catches_up` says that it is told what was played."""

    __slots__ = ("_argv", "_target", "catches_up")

    def __init__(self, argv: tuple[str, ...], target: Target | None, *, catches_up: bool) -> None:
        self._argv = argv
        self._target = target
        self.catches_up = catches_up

    def __str__(self) -> str:
        return join(self._argv) if self._target is None else str(self._target)

    @property
    def has_streams(self) -> bool:
        """Whether it says on which request's stream it says something."""
        return self._target is not None and self._target.transport == "streamable"

    def make(self, courier: Courier) -> UpstreamClient:
        """A peer whose news `courier` takes. What it says is recorded by the mock."""
        if self._target is None:
            from ...live.upstream.pass_through import PATIENCE_S
            from ...live.upstream.stdio import StdioClient

            return StdioClient(
                self._argv,
                sink=nowhere,
                now_ns=monotonic_ns,
                heard=courier.heard,
                lost=courier.lost,
                failed=courier.failed,
                stderr=courier.wrote,
                patience_s=PATIENCE_S,
            )
        from ...live.upstream.sse import SseClient
        from ...live.upstream.streamable import StreamableClient

        kind = SseClient if self._target.transport == "sse" else StreamableClient
        return kind(
            self._target.url,
            sink=nowhere,
            now_ns=monotonic_ns,
            heard=courier.heard,
            lost=courier.lost,
            failed=courier.failed,
            headers=[(name.encode(), value.encode("latin-1", "replace")) for name, value in self._target.fields],
            tls=self._target.tls,
        )


def server_of(
    values: dict[str, str], command: tuple[str, ...], transcript: Transcript, *, shows_login: bool = True
) -> LiveServer:
    """The server that the options name. Raises: UsageError."""
    catches_up = "catch-up" in values
    if command:
        return LiveServer(command, None, catches_up=catches_up)
    return LiveServer((), target(values, transcript, shows_login=shows_login), catches_up=catches_up)


def target(values: dict[str, str], transcript: Transcript, *, shows_login: bool) -> Target:
    """Where --url leads, with the fields for it, if they are meant for it. Raises: UsageError."""
    from dataclasses import replace

    from click import UsageError as ClickUsageError

    from ..replay.target import target_of

    fields = tuple(values["header"].split(SEVERAL)) if "header" in values else ()
    try:
        found = target_of(transcript.captures[0], (), values["url"], None, fields)
    except ClickUsageError as error:
        raise UsageError(error.message.rstrip(".")) from error
    return found if shows_login else replace(found, fields=())


def forwarding_of(server: LiveServer, script_of: Callable[[OnMiss], Script], scenes: Scenes) -> Forwarding:
    """What is played to one live client until a miss, and what then goes to the server."""
    return Forwarding(
        script_of, has_streams=server.has_streams, catches_up=server.catches_up, recorded_opening=_opening(scenes)
    )


def handover_of(
    server: LiveServer, script_of: Callable[[OnMiss], Script], scenes: Scenes, writer: Writer | None, begin_ns: int
) -> Handover:
    """The same for a mock on stdio, with the way to the server."""
    from .command import say

    return Handover(
        forwarding_of(server, script_of, scenes),
        PassThroughThread(server.make),
        sink=writer or nowhere,
        now_ns=lambda: monotonic_ns() - begin_ns,
        show=_show,
        tell=lambda text: say(f"mcpspy mock: {text}"),
        name=str(server),
    )


def forwards_of(server: LiveServer, scenes: Scenes) -> ClientPassThroughs:
    """The same for a mock over HTTP: each client has a session of its own."""
    from ...live.mock.http.pass_through import ClientPassThroughs
    from .command import say

    return ClientPassThroughs(
        lambda script_of: forwarding_of(server, script_of, scenes),
        server.make,
        show=_show,
        tell=lambda text: say(f"mcpspy mock: {text}"),
        name=str(server),
    )


def _opening(scenes: Scenes) -> Message | None:
    """The recorded client's `initialize`."""
    return next((one.request for one in scenes.exchanges if one.method == INITIALIZE), None)


def _show(data: bytes) -> None:
    from ...live.upstream.stdio import to_stderr  # with asyncio, for which a start-up need not wait

    to_stderr(data)
