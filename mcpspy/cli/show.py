"""`mcpspy show`: the timeline of captures, one exchange whole, both live, or all in numbers.

What only one of these needs is imported when it is asked for: the timeline, which is asked for most, is there 50 ms earlier.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..transcript.model import Log, Numbered, Row, Transcript
from ..views.filter_lines import filter_line
from ..views.hint import next_commands
from ..views.timeline import selected, timeline
from .filtering import filter_option, filtered, say_nothing_matches, wanted_of
from .reading import Chosen, WhatCommand, chosen, row_of, transcript_of
from .screen import Screen, say

if TYPE_CHECKING:
    from ..transcript.filter import Filter
    from .follow import Output


@click.command("show", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-f", "--follow", is_flag=True, help="Go on as captures grow, and with each newer one. Ctrl-C ends it.")
@click.option(
    "--json", "as_json", is_flag=True, help="JSON for programs (docs/json.md); with -f an object per change of state."
)
@click.option(
    "--http", is_flag=True, help="HTTP as it was on the wire: heads, chunks, events and bodies; with -f as they come."
)
@click.option(
    "--stats", is_flag=True, help="Numbers: what was called, how often, how long it took, what failed, what it costs."
)
@click.option("--raw", is_flag=True, help="The messages' bytes as they were on the wire, and nothing else.")
@click.option("--no-stderr", is_flag=True, help="Leave out what the server wrote to stderr.")
@filter_option
def command(
    what: tuple[str, ...],
    follow: bool,
    as_json: bool,
    http: bool,
    stats: bool,
    raw: bool,
    no_stderr: bool,
    filters: tuple[str, ...],
) -> None:
    """What client and server said: a verdict, then a row for each call.

    WHAT is a capture's path, `@` for the newest sitting (the default), `@1` for the one before, a label for its newest capture, `-`
    for standard input; `:7` behind it shows row 7 whole, `:7..20` rows 7 to 20. Several are merged by their clocks.

    \b
    Examples:
      mcpspy show -f                                   what is said now
      mcpspy show @:7                                  row 7 whole
      mcpspy show weather -F 'tool:search* dur>2s'     the slow ones
    """
    if raw and (follow or as_json):
        raise click.UsageError("--raw goes with neither -f nor --json.")
    if http and raw:
        raise click.UsageError("--http does not go with --raw.")
    if stats and (follow or raw or http):
        raise click.UsageError("--stats goes with neither -f, --raw nor --http.")
    screen, wanted = Screen(), wanted_of(filters)
    if follow:
        _follow(what, screen, wanted, as_json=as_json, http=http, stderr=not no_stderr)
        return
    asked = chosen(what)
    is_one = asked.rows is not None and asked.rows[0] == asked.rows[1]
    transcript, live = transcript_of(asked.paths, keeps_frames=http or is_one)
    rows = [row for row in _rows(transcript, asked, what) if not (no_stderr and isinstance(row, Log))]
    found = None if wanted is None else filtered(wanted, transcript, rows)
    if found is not None:
        rows = found.rows
        if not rows and (http or raw or is_one):
            say_nothing_matches(found)
            return
    if http:
        _http(transcript, rows, screen, as_json=as_json, whole=is_one, whats=what)
    elif stats:
        if found is not None and not as_json:
            screen.lines([filter_line(found), []])
        _stats(transcript, None if asked.rows is None and found is None else rows, screen, live=live, as_json=as_json)
    elif raw:
        _raw(rows, screen)
    elif as_json:
        from ..views.rows_json import document

        for piece in document(transcript, rows, live=live, whole=asked.rows is not None, found=found):
            sys.stdout.write(piece)
    elif asked.rows is not None and is_one:
        from ..views.exchange import whole

        row = row_of(transcript, " ".join(what), asked.rows[0])
        screen.lines(whole(transcript, row, width=screen.width, stderr=not no_stderr))
    else:
        screen.lines(timeline(transcript, width=screen.width, stderr=not no_stderr, rows=asked.rows, live=live, found=found))
        for line in next_commands(
            Transcript(transcript.sources, rows, transcript.findings), what, live=live, width=screen.width, filters=filters
        ):
            screen.advise(line)


def _follow(what: tuple[str, ...], screen: Screen, wanted: Filter | None, *, as_json: bool, http: bool, stderr: bool) -> None:
    from .follow import follow
    from .outputs import RegionOut, RowsOut, StatesOut
    from .sieve import FilteredOut, Sieve
    from .wire_outputs import WireOut, WireStatesOut

    sieve = None if wanted is None else Sieve(wanted)
    output: Output
    if http:
        output = (WireStatesOut if as_json else WireOut)(screen, only_rows=sieve is not None)
    elif as_json:
        output = StatesOut(screen, stderr=stderr)
    elif screen.redraws:
        output = RegionOut(screen, stderr=stderr, sieve=sieve)
    else:
        output = RowsOut(screen, screen.lines, stderr=stderr)
    follow(what, output if sieve is None else FilteredOut(output, sieve), keeps_frames=http)


def _rows(transcript: Transcript, asked: Chosen, what: tuple[str, ...]) -> list[Row]:
    """The rows that were asked for. Raises: AddressError: if the first of them is not there."""
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
    return selected(transcript.rows, asked.rows)


def _http(
    transcript: Transcript, rows: list[Row], screen: Screen, *, as_json: bool, whole: bool, whats: tuple[str, ...]
) -> None:
    """The transactions that carried `rows`; of one row every byte, of many no line that is too long to be read."""
    from ..views.exchange import carried
    from ..views.http_wire import wire_lines
    from ..views.transactions_json import http_lines

    transactions = carried(transcript, rows).values()
    if as_json:
        screen.texts(http_lines(transcript, transactions))
    elif transactions:
        screen.lines(wire_lines(transcript, transactions, width=screen.width, whole=whole, whats=whats))
    else:
        say("mcpspy: there is no HTTP in this; without --http its messages are shown")


def _stats(transcript: Transcript, rows: list[Row] | None, screen: Screen, *, live: bool, as_json: bool) -> None:
    """The numbers of `rows`, all where that is None."""
    from ..views.numbers import numbers_lines
    from ..views.numbers_json import numbers_document

    if as_json:
        sys.stdout.write(numbers_document(transcript, rows, live=live))
    else:
        screen.lines(numbers_lines(transcript, rows, width=screen.width, live=live))


def _raw(rows: Iterable[Row], screen: Screen) -> None:
    """The bytes of all messages, by time; a member of a batch, which has no line end of its own, gets one."""
    from ..views.exchange import messages_of, raw_lines

    found = [message for row in rows if isinstance(row, Numbered) for message in messages_of(row)]
    for message in sorted(found, key=lambda one: (one.at_ns, one.capture, one.number)):
        if screen.terminal:
            screen.lines(raw_lines(message.raw, screen.width))
        else:
            sys.stdout.buffer.write(message.raw if not message.batch else message.raw + b"\n")
    sys.stdout.flush()
