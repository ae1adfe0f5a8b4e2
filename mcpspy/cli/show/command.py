"""`mcpspy show`: the timeline of captures, one row in full, both live, or statistics.

What only one of these needs is imported when it is used, so that the timeline, the most used one, starts 50 ms earlier.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import CaptureError, ImportFileError
from ...transcript.model import ChannelEvent, Log, ModelCall, Numbered, Row, Transcript
from ...views.text.hint import next_commands
from ...views.timeline.details import Detail
from ...views.timeline.ordering import Order
from ...views.timeline.timeline import timeline
from ..capture_options import Option, add_click_options
from ..fifo import begins_as_capture
from ..filter_option import FILTER, combined_filter, filter_rows, report_no_match
from ..screen import Screen, say
from ..transcripts import CaptureSelection, is_large, row_of, select_captures, transcript_of

if TYPE_CHECKING:
    import click

    from ...transcript.filter.grammar import Filter
    from ...transcript.filter.result import FilterResult
    from ..since import Since
    from .follow import Output

OPTIONS: Final = (
    Option("follow", "", "Follow captures as they grow, and new ones too. Ctrl-C ends it.", letter="f"),
    Option("json", "", "Print JSON for programs (docs/json.md); with -f, an object whenever a row changes.", parameter="as_json"),
    Option("http", "", "Show HTTP as it was on the wire: heads, chunks, events and bodies."),
    Option("stats", "", "Show statistics: what was called, how often, how long it took, what failed, what it costs."),
    Option("raw", "", "Print the bytes of the messages as they were on the wire, and nothing else."),
    Option("detail", "", "What a row shows: names; params and how the result begins (the default from 100 columns on); or the"
           " payloads in full.", tuple(detail.value for detail in Detail)),
    Option("sort", "", "Show the slowest calls first, the largest, or those whose results cost a model the most tokens.",
           tuple(order.value for order in Order)),
    Option("no-stderr", "", "Leave out the server's stderr."),
    FILTER,
)  # fmt: skip
"""Those that are read without click."""


def run(**values: Any) -> None:
    """Show what client and server sent: a summary, then a row for each call.

    WHAT is the path of a capture, `@` for the newest recording (the default), `@1` for the one before it, a label for its newest
    capture, or `-` for standard input. Append `:7` to see row 7 in full, or `:7..20` for rows 7 to 20. Several WHATs are shown
    as one timeline. With --since and no WHAT, all recordings are shown.

    \b
    Examples:
      mcpspy show -f                                 follow live
      mcpspy show @:7                                show row 7 in full
      mcpspy show --sort took                        show the slowest calls first
      mcpspy show @ --detail params                  show what was called with what, also on a narrow screen
      mcpspy show weather -F 'tool:search* dur>2s'   show the slow searches
      mcpspy show --since 1h -F status:pending       show calls without an answer
    """
    options = _ShowOptions(**values)
    what, since = options.what, options.since
    _check(options)
    screen, condition = Screen(), combined_filter(options.filters)
    if options.follow:
        _follow(screen, condition, options)
        return
    if since is None:
        selection, shown_whats = select_captures(what), what
    else:
        from ..since import select_captures_since

        selection, shown_whats = select_captures_since(what, since)
    is_whole = options.http or options.raw or selection.is_one_row
    if condition is None and options.is_plain and screen.terminal and selection.rows is None and is_large(selection):
        _streamed(screen, selection, options)
        return
    transcript, live = transcript_of(selection, keeps_frames=is_whole)
    _show(transcript, selection, shown_whats, options, screen, condition, live=live)


def _show(
    transcript: Transcript,
    selection: CaptureSelection,
    shown_whats: tuple[str, ...],
    options: _ShowOptions,
    screen: Screen,
    condition: Filter | None,
    *,
    live: bool,
) -> None:
    """Print the rows that the options choose, or say why there are none. `shown_whats` are WHATs for the captures that were read."""
    since = options.since
    if since is not None:
        from ..since import transcript_since

        transcript = transcript_since(transcript, selection.paths, since)
    rows = selection.rows_in(transcript)
    if options.no_stderr:
        rows = [row for row in rows if not isinstance(row, Log)]
    result = None if condition is None else filter_rows(condition, transcript, rows)
    if result is not None:
        rows = result.rows
        if not rows and (options.http or options.raw or selection.is_one_row):
            report_no_match(result)
            return
    if (
        selection.paths
        and not any(info.messages for info in transcript.captures)
        and not any(map(_is_traffic, transcript.rows))
        and not any(info.failed_start for info in transcript.captures)
    ):
        say("mcpspy: nothing was recorded in it yet; use its client, and follow with mcpspy show -f")
    if selection.paths or options.as_json:
        _print(transcript, rows, options, selection, shown_whats, screen, result, live=live)


def _is_traffic(row: Row) -> bool:
    """Return whether a row is more than an event of the channel or a line that cannot be read."""
    return not isinstance(row, ChannelEvent)


class _ShowOptions(NamedTuple):
    """The command line."""

    what: tuple[str, ...]
    follow: bool
    as_json: bool
    http: bool
    stats: bool
    raw: bool
    detail: str | None
    sort: str | None
    no_stderr: bool
    filters: tuple[str, ...]
    since: Since | None = None

    @property
    def is_plain(self) -> bool:
        """True for the timeline of everything, by time."""
        return not (self.as_json or self.http or self.stats or self.raw or self.sort or self.since)

    @property
    def row_detail(self) -> Detail | None:
        """The amount that rows show; None: as much as there is room for."""
        return None if self.detail is None else Detail(self.detail)


def _check(options: _ShowOptions) -> None:
    """Reject options that cannot be combined. Raises: click.UsageError."""
    if wrong := _contradiction(options):
        import click

        raise click.UsageError(wrong)


def _contradiction(options: _ShowOptions) -> str:
    """Say which options cannot be combined; empty if all can."""
    if options.raw and (options.follow or options.as_json):
        return "--raw cannot be combined with -f or --json; leave one out."
    if options.http and options.raw:
        return "--http cannot be combined with --raw; for the bytes of a transaction use --http --json."
    if options.detail and (options.raw or options.as_json or options.http or options.stats):
        return "--detail is for rows; leave out --raw, --json, --http and --stats."
    if options.sort and (options.follow or options.raw or options.as_json or options.http or options.stats):
        return "--sort is for the timeline; leave out -f, --raw, --json, --http and --stats."
    if options.stats and (options.follow or options.raw or options.http):
        return "--stats cannot be combined with -f, --raw or --http; leave one out."
    return ""


def _print(
    transcript: Transcript,
    rows: list[Row],
    options: _ShowOptions,
    selection: CaptureSelection,
    shown_whats: tuple[str, ...],
    screen: Screen,
    result: FilterResult | None,
    *,
    live: bool,
) -> None:
    """Print `rows` in the form that the options ask for. `shown_whats` are WHATs for the captures that were read."""
    since, numbers = options.since, selection.rows
    since_words = "" if since is None else since.words
    if options.http:
        _http(transcript, rows, screen, options, whole=selection.is_one_row)
    elif options.stats:
        if result is not None and not options.as_json:
            from ...views.text.filter_lines import filter_line

            screen.lines([filter_line(result), []])
        some = None if numbers is None and result is None else rows
        _stats(transcript, some, screen, live=live, as_json=options.as_json, since=since_words)
    elif options.raw:
        _raw(rows, screen)
    elif options.as_json:
        from ...views.json.rows import transcript_json

        since_ns = None if since is None else since.wall_ns
        whole = numbers is not None
        for piece in transcript_json(transcript, rows, live=live, whole=whole, filtered=result, since_wall_ns=since_ns):
            sys.stdout.write(piece)
    elif numbers is not None and selection.is_one_row:
        from ...views.timeline.exchange import row_lines

        row = row_of(transcript, selection.what, numbers[0])
        screen.lines(row_lines(transcript, row, width=screen.width, stderr=not options.no_stderr))
    else:
        _timeline(transcript, rows, options, numbers, shown_whats, screen, result, live=live)


def _timeline(
    transcript: Transcript,
    rows: list[Row],
    options: _ShowOptions,
    numbers: tuple[int, int] | None,
    shown_whats: tuple[str, ...],
    screen: Screen,
    result: FilterResult | None,
    *,
    live: bool,
) -> None:
    """Print the timeline, and what to do next. `numbers` are the first and the last row that the user named."""
    since, width = options.since, screen.width
    screen.lines(
        timeline(
            transcript,
            width=width,
            stderr=not options.no_stderr,
            rows=numbers,
            live=live,
            filtered=result,
            since="" if since is None else since.words,
            detail=options.row_detail,
            order=None if options.sort is None else Order(options.sort),
        )
    )
    shown = Transcript(transcript.captures, rows, transcript.findings)
    since_text = "" if since is None else since.text
    for line in next_commands(
        shown, options.what, live=live, width=width, filters=options.filters, since=since_text, shown_whats=shown_whats
    ):
        screen.advise(line)


def _streamed(screen: Screen, selection: CaptureSelection, options: _ShowOptions) -> None:
    """Print the timeline of a large capture as it is read, and what to do next."""
    from .streamed import show_streamed

    transcript = show_streamed(selection.paths[0], screen, stderr=not options.no_stderr, detail=options.row_detail)
    for line in next_commands(transcript, options.what, live=False, width=screen.width):
        screen.advise(line)


def _follow(screen: Screen, condition: Filter | None, options: _ShowOptions) -> None:
    from .follow import LiveFilter, follow
    from .outputs import JsonOutput, LineOutput, TerminalOutput
    from .wire_outputs import WireOutput

    live_filter = None if condition is None else LiveFilter(condition)
    output: Output
    if options.http:
        output = WireOutput(screen, as_json=options.as_json, only_rows=live_filter is not None)
    elif options.as_json:
        output = JsonOutput(screen, stderr=not options.no_stderr)
    elif screen.redraws:
        output = TerminalOutput(
            screen, stderr=not options.no_stderr, detail=options.row_detail, live_filter=live_filter, since=options.since
        )
    else:
        output = LineOutput(screen, screen.lines, stderr=not options.no_stderr, detail=options.row_detail)
    if all(map(begins_as_capture, options.what)):
        try:
            follow(options.what, output, live_filter, keeps_frames=options.http, since=options.since)
        except CaptureError as error:
            from ...capture.store.address import STDIN

            if STDIN not in options.what or error.line != 1:
                raise
            text = (
                "no capture, and only a capture is followed there; follow a log as a file: mcpspy show -f LOG. Or leave out -f"
            )
            raise ImportFileError("standard input", text) from error
        return
    from ..converting import followed_log

    with followed_log(options.what) as whats:
        follow(whats, output, live_filter, keeps_frames=options.http, since=options.since)


def _http(transcript: Transcript, rows: list[Row], screen: Screen, options: _ShowOptions, *, whole: bool) -> None:
    """Print the transactions that carried `rows`: of one row every byte, of several no line that is too long to read."""
    from ...views.json.transactions import http_lines
    from ...views.timeline.exchange import carrying_transactions
    from ...views.timeline.http_wire import wire_lines

    transactions = carrying_transactions(transcript, rows)
    if options.as_json:
        screen.texts(http_lines(transcript, transactions))
    elif transactions:
        screen.lines(wire_lines(transcript, transactions, width=screen.width, whole=whole, whats=options.what))
    else:
        say("mcpspy: there is no HTTP here; leave out --http to see the messages")


def _stats(
    transcript: Transcript, rows: list[Row] | None, screen: Screen, *, live: bool, as_json: bool, since: str = ""
) -> None:
    """Print the statistics of `rows`; None: of all."""
    from ...views.json.server_statistics import statistics_json
    from ...views.statistics import statistics_lines

    if as_json:
        sys.stdout.write(statistics_json(transcript, rows, live=live))
    else:
        screen.lines(statistics_lines(transcript, rows, width=screen.width, live=live, since=since))


def _raw(rows: Iterable[Row], screen: Screen) -> None:
    """Print the bytes of all messages, prompts and answers, by time. A message of a batch gets a line end, as it has none."""
    from ...views.timeline.exchange import messages_of, raw_lines
    from ...views.timeline.model_call import bodies

    numbered = [row for row in rows if isinstance(row, Numbered)]
    messages = sorted(
        (message for row in numbered for message in messages_of(row)),
        key=lambda message: (message.at_ns, message.capture, message.number),
    )
    timed = [(message.at_ns, message.raw + b"\n" if message.batch else message.raw) for message in messages]
    timed += [body for row in numbered if isinstance(row, ModelCall) for body in bodies(row)]
    for _, raw in sorted(timed, key=lambda item: item[0]):
        if screen.terminal:
            screen.lines(raw_lines(raw, screen.width))
        else:
            sys.stdout.buffer.write(raw)
    sys.stdout.flush()


def __getattr__(name: str) -> click.Command:
    """Make `command` when click asks for it."""
    if name != "command":
        raise AttributeError(name)
    import click

    from ..click_types import WhatCommand
    from ..since import since_option

    command = click.argument("what", nargs=-1)(click.command("show", cls=WhatCommand)(run))
    add_click_options(command, OPTIONS)
    return since_option(command)
