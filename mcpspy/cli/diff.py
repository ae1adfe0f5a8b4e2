"""`mcpspy diff`: what changed from one capture or recording to another; exit status 1 if anything did."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from ..capture.store.address import STDIN
from ..replay.compare.compare import ComparedSide, Limit, compare
from ..replay.compare.ignore import Ignore
from ..transcript.findings.run import all_findings
from ..transcript.model import Numbered
from ..views.compare.comparison import comparison_lines, next_lines
from ..views.json.comparison import comparison_json
from ..views.timeline.timeline import rows_between
from .filter_option import combined_filter, filter_option, filter_rows
from .screen import Screen, say
from .transcripts import WhatCommand, row_of, select_captures, transcript_of

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter

DIFFERENT = 1


@click.command("diff", cls=WhatCommand)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--ignore", multiple=True, metavar="PATH", help="Leave out these places: $.result.content[*].text, $..timestamp, …"
)
@click.option(
    "--slower",
    type=click.FloatRange(min=1, min_open=True),
    metavar="FACTOR",
    help="A call that takes so many times as long, and 100 ms more, is a difference. Without this, times count for nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON for programs (docs/json.md).")
@filter_option
def command(
    before: str, after: str, ignore: tuple[str, ...], slower: float | None, as_json: bool, filters: tuple[str, ...]
) -> int:
    """What changed from A to B: who speaks, what is offered, what was asked and answered. The exit status is 1 if anything did.

    A and B are each a WHAT as in `mcpspy show`. Calls are brought together by method, target and params, never by id; what is new
    at each run by the specification (tokens, cursors, task ids) is left out. With --filter, or `:7..20`, only those calls are
    compared.

    \b
      mcpspy diff @1 @                                     the recording before, and the newest one
      mcpspy diff @:7 @:9                                  two calls of one recording
      mcpspy diff old.mcpspy new.mcpspy --ignore '$..time'
    """
    if before.startswith(STDIN) and after.startswith(STDIN):
        raise click.UsageError("Standard input can be one of A and B, not both; write the other to a file.")
    Ignore.of(ignore)
    wanted = combined_filter(filters)
    limit = Limit() if slower is None else Limit(factor=slower, counts=True)
    sides = _side(before, wanted), _side(after, wanted)
    found = compare(*sides, ignore, limit)
    if sides[0].transcript.model_calls and sides[1].transcript.model_calls:
        say("mcpspy: calls of models are not compared, only what was found about them; mcpspy show has them side by side.")
    if not found.whole and not found.servers:
        say("mcpspy: there is no call to compare: on neither side one was asked for, or matches.")
    if as_json:
        sys.stdout.write(comparison_json(found))
    else:
        screen = Screen()
        screen.lines(comparison_lines(found, width=screen.width))
        for line in next_lines(found, _address(before), _address(after), screen.width):
            screen.advise(line)
    return DIFFERENT if found.different else 0


def _side(what: str, wanted: Filter | None) -> ComparedSide:
    """What a WHAT names, of it the rows that were asked for and match."""
    asked = select_captures((what,))
    transcript, _ = transcript_of(asked.paths)
    transcript.findings = all_findings(transcript)
    rows = None
    if asked.rows is not None:
        row_of(transcript, what, asked.rows[0])
        rows = rows_between(transcript.rows, asked.rows)
    if wanted is not None:
        rows = filter_rows(wanted, transcript, transcript.rows if rows is None else rows).rows
    if rows is None:
        return ComparedSide(transcript=transcript)
    return ComparedSide(transcript=transcript, rows=frozenset(one.row for one in rows if isinstance(one, Numbered)))


def _address(what: str) -> str:
    """What rows can be asked of; empty where it cannot be read twice."""
    if what.startswith(STDIN):
        return ""
    name, _, rows = what.rpartition(":")
    return quote(name if name and rows.replace(".", "").isdecimal() else what)
