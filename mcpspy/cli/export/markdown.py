"""`mcpspy export markdown`: a report to be pasted into an issue, with secrets masked."""

from __future__ import annotations

import click

from ... import __version__
from ...views.export.markdown import report
from ...views.timeline.timeline import rows_between
from ..filter_option import passed, wanted_of
from ..transcripts import WhatCommand, chosen, row_of
from .redacted import masked
from .rows import what_options, write


@click.command("markdown", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write a report in Markdown, ready to be pasted: summary, findings, the calls in question, a diagram, versions.

    What is secret becomes a pseudonym, and so do user names, home folders and addresses, as by `mcpspy export share --personal`.
    Chosen rows are all shown whole; without any, those that failed or that a warning is about.

    \b
    Example:
      mcpspy export markdown @:5..9 | gh issue create --title "search hangs" --body-file -
    """
    wanted = wanted_of(filters)
    asked = chosen(what)
    transcript = masked(asked.paths)
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
    rows = passed(wanted, transcript, rows_between(transcript.rows, asked.rows))
    is_part = asked.rows is not None or wanted is not None
    write(report(transcript, rows, version=__version__, is_part=is_part), output)
