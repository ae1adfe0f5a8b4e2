"""`mcpspy web`: the page in the browser, live, of this user's store. It reads captures and does nothing else."""

from __future__ import annotations

import os
import secrets
import socket
import webbrowser

import click

from .screen import say

TOKEN_BYTES = 18
BUSY = 4


@click.command("web")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8766, show_default=True, help="0 picks one.")
@click.option("--open", "opens", is_flag=True, help="Open it in your browser.")
def command(*, port: int, opens: bool) -> int:
    """Show recordings in the browser as they are recorded: the page of `mcpspy export html`, live.

    It listens on 127.0.0.1 alone, under an address that holds a secret, and reads captures: it cannot harm the traffic, start
    anything or write anything. Ctrl-C ends it.

    \b
    Example:
      mcpspy web --open
    """
    from ..live.web import serve
    from .web_recordings import StoredRecordings

    try:
        listener = _listener(port)
    except OSError as error:
        say(f"mcpspy: 127.0.0.1:{port}: {os.strerror(error.errno or 0)}; another port: mcpspy web --port 0")
        return BUSY
    token = secrets.token_urlsafe(TOKEN_BYTES)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"
    click.echo(url)
    say("mcpspy: Ctrl-C ends it")
    if opens:
        webbrowser.open(url)
    serve(StoredRecordings(), token, listener)
    return 0


def _listener(port: int) -> socket.socket:
    """A socket that listens before anybody is told: a browser that is faster than the server waits. Raises: OSError."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener
