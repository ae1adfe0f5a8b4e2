"""`mcpspy export html`: one page to look at a session in a browser, without a network and without a server."""

from __future__ import annotations

from importlib.resources import files

import click

from ...views.page.page import page
from ..transcripts import WhatCommand
from .rows import addresses_of, asked_rows, what_options, write_text


@click.command("html", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write one page: timeline with search, waterfall, sequence diagram, findings, numbers, each call whole.

    It loads nothing, works from a file and offline, and holds all payloads: share it as you would the capture. For a copy without
    secrets: mcpspy export share WHAT -o copy.mcpspy, and the page of that.

    \b
    Example:
      mcpspy export html @ -o session.html
    """
    asked = asked_rows(what, filters, keeps_frames=True)
    title = f"mcpspy {' '.join(what) or '@'}"
    write_text(page(asked.transcript, asked.rows, page_files(), title=title, addresses=addresses_of(asked.paths)), output)


def page_files() -> dict[str, str]:
    """The files that make the page, by their names."""
    folder = files("mcpspy") / "page"
    return {
        one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith((".js", ".css", ".html"))
    }
