"""The live server of `mcpspy mock --on-miss pass-through`: which one it is, and its connection to a mock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from shlex import join
from time import monotonic_ns
from typing import TYPE_CHECKING

from click import UsageError as ClickUsageError

from ...capture.file.writer import Writer
from ...live.mock.handover import Handover
from ...live.upstream.pass_through import PassThroughThread
from ...replay.mock.pass_through import PassThrough
from ...replay.mock.replies import RecordedReplies
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.message import Message
from ...transcript.model import Transcript
from ..capture_options import UsageError
from ..new_capture import nowhere
from ..replay.target import Target, http_client, target_of
from .options import MockOptions
from .session import say

if TYPE_CHECKING:
    from ...live.mock.http.clients import ClientPassThroughs
    from ...live.upstream.protocol import ServerListener, UpstreamClient
    from ...replay.mock.script import MissPolicy, Script


class LiveServer:
    """A server that is not started yet: `argv` on stdio, else `target`.

    One that `catches_up` is first sent the requests that were answered from the capture.
    """

    __slots__ = ("_argv", "_target", "catches_up")

    def __init__(self, argv: tuple[str, ...], target: Target | None, *, catches_up: bool) -> None:
        self._argv = argv
        self._target = target
        self.catches_up = catches_up

    def __str__(self) -> str:
        return join(self._argv) if self._target is None else str(self._target)

    @property
    def has_streams(self) -> bool:
        """True if its messages belong to the stream of a request."""
        return self._target is not None and self._target.transport == "streamable"

    def make(self, listener: ServerListener) -> UpstreamClient:
        """Make a client of it, which reports to `listener`. The mock records its messages."""
        if self._target is None:
            from ...live.upstream.pass_through import PATIENCE_S
            from ...live.upstream.stdio import StdioClient

            return StdioClient(
                self._argv,
                sink=nowhere,
                now_ns=monotonic_ns,
                listener=listener,
                patience_s=PATIENCE_S,
            )
        return http_client(self._target, sink=nowhere, now_ns=monotonic_ns, listener=listener)


def live_server(
    options: MockOptions, transcript: Transcript, *, url: str | None = None, shows_login: bool = True
) -> LiveServer:
    """Make the server that the options name; `url` is the one to use of several. Raises: UsageError."""
    if options.command:
        return LiveServer(options.command, None, catches_up=options.catches_up)
    if url is None:
        if len(options.urls) > 1:
            raise UsageError("a mock on stdio continues with one server; give --url once")
        url = options.urls[0]
    target = live_target(options, transcript, url, shows_login=shows_login)
    return LiveServer((), target, catches_up=options.catches_up)


def live_target(options: MockOptions, transcript: Transcript, url: str, *, shows_login: bool) -> Target:
    """Make the target at `url`, with the header fields of the options only if it `shows_login`. Raises: UsageError."""
    try:
        target = target_of(transcript.captures[0], (), url, None, options.headers)
    except ClickUsageError as error:
        raise UsageError(error.message.rstrip(".")) from error
    return target if shows_login else replace(target, fields=())


def _forwarding(server: LiveServer, make_script: Callable[[MissPolicy], Script], replies: RecordedReplies) -> PassThrough:
    """Make the machine that plays replies to one client until a miss, and then passes through to the server."""
    return PassThrough(
        make_script, has_streams=server.has_streams, catches_up=server.catches_up, recorded_opening=_opening(replies)
    )


def stdio_handover(
    server: LiveServer,
    make_script: Callable[[MissPolicy], Script],
    replies: RecordedReplies,
    writer: Writer | None,
    begin_ns: int,
) -> Handover:
    """Connect a mock on stdio to the server."""
    return Handover(
        _forwarding(server, make_script, replies),
        PassThroughThread(server.make),
        sink=writer or nowhere,
        now_ns=lambda: monotonic_ns() - begin_ns,
        show=_show,
        tell=tell,
        name=str(server),
    )


def http_pass_through(server: LiveServer, replies: RecordedReplies) -> ClientPassThroughs:
    """Connect the clients of a mock over HTTP to the server, each with a session of its own."""
    from ...live.mock.http.clients import ClientPassThroughs

    return ClientPassThroughs(
        lambda make_script: _forwarding(server, make_script, replies),
        server.make,
        show=_show,
        tell=tell,
        name=str(server),
    )


def _opening(replies: RecordedReplies) -> Message | None:
    """Find the recorded client's `initialize`."""
    return next((exchange.request for exchange in replies.exchanges if exchange.method == INITIALIZE), None)


def tell(text: str) -> None:
    """Write a sentence about the live server to stderr."""
    from ...views.text.escape import without_logins

    say(f"mcpspy mock: {without_logins(text)}")


def _show(data: bytes) -> None:
    from ...live.upstream.stdio import to_stderr  # with asyncio, for which a start-up need not wait

    to_stderr(data)
