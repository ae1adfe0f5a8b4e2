"""`mcpspy web`: this user's recordings as a live page in the browser. It only reads captures.

A page asks for a recording by an id from its captures, never by a path.
"""

import os
import secrets
import socket
import webbrowser
from typing import Final

import click

from ...platform.sockets import claim
from ..screen import say

TOKEN_BYTES: Final = 18
PORT_IN_USE: Final = 4
"""The exit status if the port cannot be used."""


@click.command("web")
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8766, show_default=True, help="The port; 0 picks a free one."
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def command(*, port: int, opens: bool) -> int:
    """Show recordings live in the browser, on the page of `mcpspy export html`.

    The server listens on 127.0.0.1 only, and its URL contains a secret. It only reads captures: it cannot disturb the traffic, start
    a program or write a file. Ctrl-C ends it.

    \b
    Example:
      mcpspy web --open
    """
    from ...live.web import serve  # these take longer than all else: not for --help
    from .stored_recordings import StoredRecordings

    try:
        listener = _listener(port)
    except OSError as error:
        say(f"mcpspy: 127.0.0.1:{port}: {os.strerror(error.errno or 0)}; for another port: mcpspy web --port 0")
        return PORT_IN_USE
    token = secrets.token_urlsafe(TOKEN_BYTES)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"
    click.echo(url)
    say("mcpspy: Ctrl-C ends it")
    if opens:
        webbrowser.open(url)
    serve(StoredRecordings(), token, listener)
    return 0


def _listener(port: int) -> socket.socket:
    """Listen before the URL is printed, so that a fast browser waits instead of failing. Raises: OSError."""
    listener = socket.socket()
    claim(listener)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener
