"""`mcpspy diff`: the differences between two captures or recordings; exit status 1 if there are any."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from ..capture.store.address import STDIN
from ..records import Header
from ..replay.client.correlate.run import restore_correlated
from ..replay.compare.compare import ComparedSide, Comparison, Limit, compare
from ..replay.compare.gateway import GatewayComparison, compared_gateway
from ..replay.compare.ignore import Ignore
from ..transcript.findings.run import all_findings
from ..transcript.model import Numbered
from ..views.compare.comparison import comparison_lines, next_lines
from ..views.json.comparisons import comparison_json
from ..views.text.escape import safe_text
from .click_types import WhatCommand
from .filter_option import combined_filter, filter_option, filter_rows
from .screen import Screen, say
from .transcripts import (
    CaptureSelection,
    records_of,
    select_captures,
    transcript_of,
    transcript_of_file,
    without_rows,
)

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter

DIFFERENT = 1


@click.command("diff", cls=WhatCommand)
@click.argument("whats", metavar="A B", nargs=-1, required=True)
@click.option("--clients", is_flag=True, help="Compare what several clients did with one server: A B C …")
@click.option("--markdown", is_flag=True, help="With --clients: print a table in Markdown.")
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="Ignore these JSON paths: $.result.content[*].text, $..timestamp, … Repeatable.",
)
@click.option(
    "--slower",
    type=click.FloatRange(min=1, min_open=True),
    metavar="FACTOR",
    help="Count it as a difference if a call takes more than FACTOR times as long, and over 100 ms longer. Without this, times that "
    "more than doubled or halved are shown, but are no difference.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
@filter_option
def command(
    whats: tuple[str, ...],
    clients: bool,
    markdown: bool,
    ignore: tuple[str, ...],
    slower: float | None,
    as_json: bool,
    filters: tuple[str, ...],
) -> int:
    """Show what changed from A to B: server versions, what is offered, requests and answers. The exit status is 1 if anything did.

    A and B are each a WHAT as in `mcpspy show`. Calls are paired by method, target and params, never by id. Values that the
    specification makes new in each session (tokens, cursors, task ids) are ignored. With --filter, or `:7..20`, only those calls
    are compared. Captures of the two sides of a gateway are compared row by row: what it changed, withheld, delayed or made.

    \b
      mcpspy diff @1 @          compare the last two recordings
      mcpspy diff @:7 @:9       compare two calls of one recording
      mcpspy diff outer.mcpspy inner.mcpspy     show what a gateway between them changed
      mcpspy diff old.mcpspy new.mcpspy --ignore '$..time'
      mcpspy diff --clients cursor.mcpspy claude.mcpspy codex.mcpspy
    """
    if clients:
        if ignore or slower is not None or filters:
            raise click.UsageError("--clients cannot be combined with --ignore, --slower or --filter; leave them out.")
        return _compare_clients(whats, as_json=as_json, markdown=markdown)
    if markdown:
        raise click.UsageError("--markdown needs --clients.")
    before, after = _two_sides(whats)
    Ignore.of(ignore)
    condition = combined_filter(filters)
    limit = Limit() if slower is None else Limit(factor=slower, counts=True)
    if not (ignore or slower or filters) and (between := _hops(before, after)) is not None:
        return _print_gateway(between, as_json=as_json)
    comparison = compared(select_captures((before,)), select_captures((after,)), condition, ignore, limit)
    if comparison.before.model_calls and comparison.after.model_calls:
        say("mcpspy: model calls are not compared, only their findings; mcpspy show has them side by side.")
    if not comparison.whole and not comparison.servers:
        say("mcpspy: there is no call to compare: neither side has one, or none matches.")
    if as_json:
        sys.stdout.write(comparison_json(comparison))
    else:
        _print(comparison, before, after)
    return DIFFERENT if comparison.different else 0


def compared(
    before: CaptureSelection,
    after: CaptureSelection,
    condition: Filter | None = None,
    ignore: tuple[str, ...] = (),
    limit: Limit | None = None,
) -> Comparison:
    """Compare two selections, or the rows of them that match. Raises: McpspyError; OSError."""
    sides = [_side(selection, condition) for selection in (before, after)]
    restore_correlated(sides[0].transcript, sides[1].transcript, ignore)
    return compare(sides[0], sides[1], ignore, limit)


def _two_sides(whats: tuple[str, ...]) -> tuple[str, str]:
    """Take A and B. Raises: UsageError: if they are not two, or both are standard input."""
    if len(whats) != 2:
        raise click.UsageError("Name two captures or recordings, A and B; with --clients, two or more.")
    before, after = whats
    if before.startswith(STDIN) and after.startswith(STDIN):
        raise click.UsageError("Only one of A and B can be standard input; write the other to a file.")
    return before, after


def _print(comparison: Comparison, before: str, after: str) -> None:
    """Print the comparison as text, and the commands that show more of it."""
    screen = Screen()
    screen.lines(comparison_lines(comparison, width=screen.width))
    for line in next_lines(comparison, _quoted_name(before), _quoted_name(after), screen.width):
        screen.advise(line)


def _hops(before: str, after: str) -> GatewayComparison | None:
    """Compare two captures as the two sides of a gateway; None if they are not, or are not two whole captures that overlap."""
    selections = [select_captures((what,)) for what in (before, after)]
    paths = [path for selection in selections for path in selection.paths]
    if len(paths) != 2 or paths[0] == paths[1] or STDIN in paths or any(selection.rows for selection in selections):
        return None
    first, second = (os.stat(path) for path in paths)
    headers = [next(records_of(path), None) for path in paths]
    begins_ns = [header.wall_ns if isinstance(header, Header) else 0 for header in headers]
    if first.st_mtime_ns < begins_ns[1] or second.st_mtime_ns < begins_ns[0]:
        return None
    return compared_gateway(transcript_of(CaptureSelection(paths=tuple(paths)))[0])


def _print_gateway(comparison: GatewayComparison, *, as_json: bool) -> int:
    """Print what a gateway changed between its two sides."""
    from ..views.compare.side_by_side import gateway_json, gateway_lines

    if as_json:
        sys.stdout.write(gateway_json(comparison))
    else:
        screen = Screen()
        screen.lines(gateway_lines(comparison, width=screen.width))
    return DIFFERENT if comparison.different else 0


def _compare_clients(whats: tuple[str, ...], *, as_json: bool, markdown: bool) -> int:
    """Print the clients of these captures side by side. Raises: click.UsageError: if there is nothing to compare."""
    from ..replay.compare.server import compared_client
    from ..views.compare.side_by_side import client_json, client_lines, client_markdown

    if len(whats) < 2:
        raise click.UsageError("--clients needs two captures or more, of one server under several clients.")
    paths = [path for what in whats for path in select_captures((what,)).paths]
    compared = [compared_client(transcript_of_file(path)) for path in paths]
    servers = list(dict.fromkeys(client.server for client in compared))
    if len(servers) > 1:
        names = ", ".join(map(safe_text, servers))
        raise click.UsageError(f"These captures are of different servers: {names}. Name captures of one server.")
    screen = Screen()
    if as_json:
        sys.stdout.write(client_json(compared))
    elif markdown:
        screen.texts(client_markdown(compared))
    else:
        screen.lines(client_lines(compared, width=screen.width))
    return DIFFERENT if len({tuple(client.aspects.values()) for client in compared}) > 1 else 0


def _side(selection: CaptureSelection, condition: Filter | None) -> ComparedSide:
    """Read one side: the rows of a selection that match."""
    transcript, _ = transcript_of(selection)
    transcript.findings = all_findings(transcript)
    if selection.rows is None and condition is None:
        return ComparedSide(transcript=transcript)
    rows = selection.rows_in(transcript)
    if condition is not None:
        rows = filter_rows(condition, transcript, rows).rows
    return ComparedSide(transcript=transcript, rows=frozenset(row.row for row in rows if isinstance(row, Numbered)))


def _quoted_name(what: str) -> str:
    """Name the captures of a WHAT for a command line; empty if they cannot be read again."""
    name = without_rows(what)
    return quote(name) if name else ""
