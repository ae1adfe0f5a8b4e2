"""`mcpspy show`: the timeline of captures, one exchange whole, both live, or all in numbers.

What only one of these needs is imported when it is asked for: the timeline, which is asked for most, is there 50 ms earlier.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from ...transcript.model import Log, ModelCall, Numbered, Row, Transcript
from ...views.text.filter_lines import filter_line
from ...views.text.hint import next_commands
from ...views.timeline.timeline import rows_between, timeline
from ..filter_option import combined_filter, filter_option, filter_rows, report_no_match
from ..screen import Screen, say
from ..since import Since, select_captures_since, since_option, transcript_since
from ..transcripts import CaptureSelection, WhatCommand, row_of, select_captures, transcript_of

if TYPE_CHECKING:
    from ...transcript.filter.grammar import Filter
    from ...transcript.filter.result import FilterResult
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
@since_option
def command(
    what: tuple[str, ...],
    follow: bool,
    as_json: bool,
    http: bool,
    stats: bool,
    raw: bool,
    no_stderr: bool,
    filters: tuple[str, ...],
    since: Since | None,
) -> None:
    """What client and server said: a summary, then a row for each call.

    WHAT is a capture's path, `@` for the newest recording (the default), `@1` for the one before, a label for its newest capture, `-`
    for standard input; `:7` behind it shows row 7 whole, `:7..20` rows 7 to 20. Several are merged by their clocks.

    \b
    Examples:
      mcpspy show -f                                   what is said now
      mcpspy show @:7                                  row 7 whole
      mcpspy show weather -F 'tool:search* dur>2s'     the slow ones
      mcpspy show --since 1h -F status:pending         what began or hung in the last hour, and still hangs
    """
    screen, wanted = Screen(), combined_filter(filters)
    how = _How(as_json=as_json, http=http, stats=stats, raw=raw, stderr=not no_stderr)
    _refuse(how, follow=follow)
    if follow:
        _follow(what, screen, wanted, since, how)
        return
    asked, named = (select_captures(what), what) if since is None else select_captures_since(what, since)
    is_one = asked.rows is not None and asked.rows[0] == asked.rows[1]
    transcript, live = transcript_of(asked.paths, keeps_frames=http or raw or is_one)
    if since is not None:
        transcript = transcript_since(transcript, asked.paths, since)
    rows = [row for row in _rows(transcript, asked, what) if not (no_stderr and isinstance(row, Log))]
    found = None if wanted is None else filter_rows(wanted, transcript, rows)
    if found is not None:
        rows = found.rows
        if not rows and (http or raw or is_one):
            report_no_match(found)
            return
    if asked.paths or as_json:
        _print(transcript, rows, _Asked(asked, what, named, filters, since), screen, how, found, live=live)


class _How:
    """In which form rows are printed."""

    __slots__ = ("as_json", "http", "raw", "stats", "stderr")

    def __init__(self, *, as_json: bool, http: bool, stats: bool, raw: bool, stderr: bool) -> None:
        self.as_json = as_json
        self.http = http
        self.stats = stats
        self.raw = raw
        self.stderr = stderr


class _Asked(NamedTuple):
    """What was asked for, in words that commands take and as what it came to."""

    chosen: CaptureSelection
    what: tuple[str, ...]
    named: tuple[str, ...]
    filters: tuple[str, ...]
    since: Since | None


def _refuse(how: _How, *, follow: bool) -> None:
    if how.raw and (follow or how.as_json):
        raise click.UsageError("--raw goes with neither -f nor --json; leave out the one or the other.")
    if how.http and how.raw:
        raise click.UsageError("--http does not go with --raw; for a transaction's bytes take --http --json.")
    if how.stats and (follow or how.raw or how.http):
        raise click.UsageError("--stats goes with neither -f, --raw nor --http; leave out the one or the other.")


def _print(
    transcript: Transcript, rows: list[Row], asked: _Asked, screen: Screen, how: _How, found: FilterResult | None, *, live: bool
) -> None:
    numbers, since = asked.chosen.rows, asked.since
    is_one = numbers is not None and numbers[0] == numbers[1]
    words = "" if since is None else since.words
    if how.http:
        _http(transcript, rows, screen, as_json=how.as_json, whole=is_one, whats=asked.what)
    elif how.stats:
        if found is not None and not how.as_json:
            screen.lines([filter_line(found), []])
        some = None if numbers is None and found is None else rows
        _stats(transcript, some, screen, live=live, as_json=how.as_json, since=words)
    elif how.raw:
        _raw(rows, screen)
    elif how.as_json:
        from ...views.json.rows import transcript_json

        since_ns = None if since is None else since.wall_ns
        whole = numbers is not None
        for piece in transcript_json(transcript, rows, live=live, whole=whole, filtered=found, since_wall_ns=since_ns):
            sys.stdout.write(piece)
    elif numbers is not None and is_one:
        from ...views.timeline.exchange import row_lines

        row = row_of(transcript, " ".join(asked.what), numbers[0])
        screen.lines(row_lines(transcript, row, width=screen.width, stderr=how.stderr))
    else:
        width = screen.width
        screen.lines(timeline(transcript, width=width, stderr=how.stderr, rows=numbers, live=live, filtered=found, since=words))
        shown = Transcript(transcript.captures, rows, transcript.findings)
        text = "" if since is None else since.text
        for line in next_commands(
            shown, asked.what, live=live, width=width, filters=asked.filters, since=text, shown_whats=asked.named
        ):
            screen.advise(line)


def _follow(what: tuple[str, ...], screen: Screen, wanted: Filter | None, since: Since | None, how: _How) -> None:
    from .follow import follow
    from .live_filter import FilteredOut, Sieve
    from .outputs import RegionOut, RowsOut, StatesOut
    from .wire_outputs import WireOut, WireStatesOut

    sieve = None if wanted is None else Sieve(wanted)
    output: Output
    if how.http:
        output = (WireStatesOut if how.as_json else WireOut)(screen, only_rows=sieve is not None)
    elif how.as_json:
        output = StatesOut(screen, stderr=how.stderr)
    elif screen.redraws:
        output = RegionOut(screen, stderr=how.stderr, sieve=sieve, since=since)
    else:
        output = RowsOut(screen, screen.lines, stderr=how.stderr)
    follow(what, output if sieve is None else FilteredOut(output, sieve), keeps_frames=how.http, since=since)


def _rows(transcript: Transcript, asked: CaptureSelection, what: tuple[str, ...]) -> list[Row]:
    """The rows that were asked for. Raises: AddressError: if the first of them is not there."""
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
    return rows_between(transcript.rows, asked.rows)


def _http(
    transcript: Transcript, rows: list[Row], screen: Screen, *, as_json: bool, whole: bool, whats: tuple[str, ...]
) -> None:
    """The transactions that carried `rows`; of one row every byte, of many no line that is too long to be read."""
    from ...views.json.transactions import http_lines
    from ...views.timeline.exchange import carrying_transactions
    from ...views.timeline.http_wire import wire_lines

    transactions = carrying_transactions(transcript, rows)
    if as_json:
        screen.texts(http_lines(transcript, transactions))
    elif transactions:
        screen.lines(wire_lines(transcript, transactions, width=screen.width, whole=whole, whats=whats))
    else:
        say("mcpspy: there is no HTTP in this; without --http its messages are shown")


def _stats(
    transcript: Transcript, rows: list[Row] | None, screen: Screen, *, live: bool, as_json: bool, since: str = ""
) -> None:
    """The numbers of `rows`, all where that is None."""
    from ...views.json.statistics import statistics_json
    from ...views.statistics import statistics_lines

    if as_json:
        sys.stdout.write(statistics_json(transcript, rows, live=live))
    else:
        screen.lines(statistics_lines(transcript, rows, width=screen.width, live=live, since=since))


def _raw(rows: Iterable[Row], screen: Screen) -> None:
    """The bytes of all messages, by time, and of prompts and answers; what has no line end of its own, as in a batch, gets one."""
    from ...views.timeline.exchange import messages_of, raw_lines
    from ...views.timeline.model_call import bodies

    numbered = [row for row in rows if isinstance(row, Numbered)]
    messages = sorted(
        (one for row in numbered for one in messages_of(row)), key=lambda one: (one.at_ns, one.capture, one.number)
    )
    found = [(one.at_ns, one.raw + b"\n" if one.batch else one.raw) for one in messages]
    found += [one for row in numbered if isinstance(row, ModelCall) for one in bodies(row)]
    for _, raw in sorted(found, key=lambda one: one[0]):
        if screen.terminal:
            screen.lines(raw_lines(raw, screen.width))
        else:
            sys.stdout.buffer.write(raw)
    sys.stdout.flush()
