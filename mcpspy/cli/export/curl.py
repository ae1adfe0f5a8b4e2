"""`mcpspy export curl`: requests that went over HTTP, to be sent again by hand."""

from __future__ import annotations

import click

from ...errors import AddressError
from ...transcript.http.transaction import Transaction
from ...views.export.curl import curl
from ..transcripts import WhatCommand
from .rows import asked_rows, carried_by, what_options, write


@click.command("curl", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write the requests of rows as curl commands. What was redacted is asked of the environment.

    \b
    Example:
      mcpspy export curl @:7
    """
    asked = asked_rows(what, filters, keeps_frames=True)
    chosen = {(row.capture, row.number) for row in asked.rows if isinstance(row, Transaction)}
    sent = [one for one in carried_by(asked) if one.request is not None]
    transactions = [
        one for one in sent if one.method != "GET" or (one.capture, one.number) in chosen
    ]  # not what carried answers
    if not transactions:
        reason = "there is no HTTP in it; what went over stdio is sent again by: mcpspy replay WHAT -- COMMAND"
        raise AddressError(" ".join(what), reason)
    write((line for one in transactions for line in curl(one, asked.transcript.captures[one.capture])), output)
