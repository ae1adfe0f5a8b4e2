"""`mcpspy export har`: the HTTP of captures, for browsers, mitmproxy and everything else that reads HAR."""

from __future__ import annotations

import click

from ... import __version__
from ...errors import AddressError
from ...views.export.har import har
from ..transcripts import WhatCommand
from .rows import asked_rows, carried_by, what_options, write


@click.command("har", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write the HTTP of captures as a HAR 1.2 file, with the events of streams as browsers write them.

    \b
    Example:
      mcpspy export har @ -o session.har
    """
    asked = asked_rows(what, filters, keeps_frames=True)
    transactions = carried_by(asked)
    if not transactions:
        reason = "there is no HTTP in it: it was recorded on stdio, or no row matches. mcpspy export jsonl has messages"
        raise AddressError(" ".join(what), reason)
    write(har(asked.transcript, transactions, version=__version__), output)
