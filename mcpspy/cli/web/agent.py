"""`mcpspy mcp`: captures as an MCP server, so that an agent can debug the server that it is writing."""

from __future__ import annotations

import gc
import secrets
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from ... import __version__
from ...errors import MissingExtraError
from ..click_types import WhatCommand
from ..screen import say

if TYPE_CHECKING:
    from ...agent.source import CaptureSource

FENCE_BYTES = 8
TOKEN_BYTES = 18
SDK = ("anyio", "mcp", "mcp_types", "pydantic", "starlette")
PACKAGES: Final = ["mcp>=2.3"]
"""The arguments of pip, as in the extra `mcp`."""


def ensure_sdk() -> None:
    """Look for the official SDK, without importing it. Raises: MissingExtraError: if it is missing."""
    if not all(map(find_spec, SDK)):
        raise MissingExtraError("mcpspy mcp", PACKAGES)


@click.command("mcp", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option(
    "--listen", metavar="HOST:PORT", help="Serve Streamable HTTP on this loopback address instead; port 0 picks a free one."
)
@click.option(
    "--allow-call", is_flag=True, help="Offer tools that send requests to servers, as mcpspy call and mcpspy replay do."
)
def command(*, what: tuple[str, ...], listen: str | None, allow_call: bool) -> int:
    """Serve recordings to an agent, as an MCP server on standard input and output.

    Its tools list recordings, show timelines and rows, report findings, compare, and wait for the next call. Secrets are
    replaced, and captured text is marked as data. With WHAT, `@` means these captures. Tools can read a file outside the store
    only if it is named here.

    \b
    Examples:
      claude mcp add mcpspy -- mcpspy mcp
      mcpspy mcp weather.mcpspy --listen 127.0.0.1:0
    """
    gc.disable()  # a start-up makes no garbage: a fifth of its time
    try:
        from ...agent.sdk_alone import alone

        with alone():
            from ...agent.server import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SDK:
            raise
        raise MissingExtraError("mcpspy mcp", PACKAGES) from error
    from ...agent.answers import Fence

    gc.freeze()
    gc.enable()

    def source() -> CaptureSource:
        from .agent_captures import StoredCaptures

        return StoredCaptures(what)

    fence = Fence(secrets.token_hex(FENCE_BYTES))
    if listen is None:
        serve_stdio(source, fence, __version__, calls=allow_call)
        return 0
    from ...setup.wrapping import own_path
    from ..proxy.listening import address

    host, port = address(listen, remote=False, what="your recordings")
    listener = socket.create_server((host, port))
    listener.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # the SDK writes head and body apart: 40 ms, for some clients
    path = own_path(secrets.token_urlsafe(TOKEN_BYTES))
    click.echo(f"http://{host}:{listener.getsockname()[1]}{path}")
    say("mcpspy: Ctrl-C ends it")
    serve_http(source, fence, __version__, listener, path, calls=allow_call)
    return 0
