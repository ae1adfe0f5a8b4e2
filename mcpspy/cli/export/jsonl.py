"""`mcpspy export jsonl`: the decoded messages, one JSON object per line."""

from __future__ import annotations

import click

from ...views.json.messages import message_lines
from ..transcripts import WhatCommand
from .rows import asked_rows, what_options, write


@click.command("jsonl", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write the decoded messages, one JSON object per line (docs/json.md).

    \b
    Example:
      mcpspy export jsonl @ | jq -c 'select(.method == "tools/call") | .params.arguments'
    """
    transcript, rows, _ = asked_rows(what, filters)
    write(message_lines(transcript, rows), output)
