"""The numbers of `show --stats`: per server its facts, then its calls, requests, notifications, clients and tools in tables.

Everything fits the width it is given; on a pipe nothing is left out. Refuses to count: `transcript.numbers` has done it.
"""

from collections.abc import Iterator
from datetime import tzinfo

from ..transcript.llm.statistics import leg_numbers
from ..transcript.model import Numbered, Outcome, Row, Transcript
from ..transcript.stats.statistics import WELL, Calls, ClientNumbers, Latency, ServerNumbers, Told, numbers
from .statistics_facts import facts
from .text.cells import cells, wrapped
from .text.escape import one_line
from .text.line import Line, Piece, fitted
from .text.table import Column, fitting, table_lines
from .text.units import counted, duration, size
from .timeline.summary import shown_sources, source_lines, summary

MAX_ROWS = 40
"""So many rows of a table are shown on a screen; more are counted."""

LEGEND = (
    "Times run from a request's last byte to its answer's last byte, and only answered ones count; percentiles are by nearest rank.",
    "A call may take several exchanges, as when it asks for input: then its time runs from the first to the last.",
    "Sizes are of payloads. Tokens are estimated.",
)

_CALLS = (
    Column("call"), Column("n"), Column("failed"), Column("open"), Column("min", 6), Column("p50", 1), Column("p90", 5),
    Column("p99", 4), Column("max"), Column("asked", 3), Column("answer", 2), Column("tokens", 2), Column("progress", 8),
    Column("exchanges", 7), Column("wire p50", 5), Column("wire max", 6),
    Column("how they failed", 9, words=True),
)  # fmt: skip
_HOW = len(_CALLS) - 1

_CLIENTS = (Column("client"), Column("calls"), Column("failed"), Column("p50"), Column("p99", 1), Column("max"))
_TOLD = (Column("notification"), Column("from", words=True), Column("n"), Column("size"))
_CONTEXT = (
    Column("tool"), Column("definition"), Column("tokens"), Column("calls"), Column("results"), Column("tokens of results", 1)
)  # fmt: skip


def numbers_lines(
    transcript: Transcript,
    rows: list[Row] | None = None,
    *,
    width: int | None = None,
    live: bool = False,
    zone: tzinfo | None = None,
    since: str = "",
) -> Iterator[Line]:
    """All numbers of `transcript`, or of these rows of it; the other parameters are those of the timeline."""
    yield from summary(transcript, live=live, width=width, since=since)
    for line in source_lines(transcript, zone, phases=False, since=since):
        yield fitted(line, width)
    shown = {one.index for one in shown_sources(transcript, since)}
    servers = [one for one in numbers(transcript, rows) if one.source.index in shown]
    for one in servers:
        if len(servers) > 1:
            yield []
            yield fitted([(one_line(one.source.server), "strong")], width)
        yield from _server(one, width)
    legend: tuple[str, ...] = LEGEND
    if transcript.model_calls:
        from .llm_statistics import LEGEND as OF_MODELS
        from .llm_statistics import leg_lines

        chosen = None if rows is None else {one.row for one in rows if isinstance(one, Numbered)}
        yield from leg_lines(leg_numbers(transcript, chosen), width)
        legend = (*LEGEND[:-1], "Sizes are of payloads.", *OF_MODELS)
    yield []
    for sentence in legend:
        for part in [sentence] if width is None else wrapped(sentence, width, 4):
            yield [(part, "dim")]


def _server(one: ServerNumbers, width: int | None) -> Iterator[Line]:
    found = list(facts(one, width))
    if found:
        yield []
        yield from found
    yield from _calls("call", one.calls, width)
    yield from _calls("asked by the server", one.requests, width)
    yield from _table(_TOLD, [_told(told) for told in one.told], width)
    if len(one.clients) > 1:
        yield from _table(_CLIENTS, [_client(client) for client in one.clients], width)
    yield from _context(one, width)


def _table(columns: tuple[Column, ...], rows: list[list[Piece]], width: int | None) -> Iterator[Line]:
    if not rows:
        return
    yield []
    shown = rows if width is None else rows[:MAX_ROWS]
    yield from table_lines(columns, shown, width)
    if len(shown) < len(rows):
        yield [(f"… {counted(len(rows) - len(shown), 'more row')}", "dim")]


def _calls(name: str, calls: list[Calls], width: int | None) -> Iterator[Line]:
    """The table of calls; where there is no room for how they failed, that is said below it."""
    all_calls = [one for whole in calls for one in (whole, *whole.parts)]
    rows = [_row(one) for one in all_calls]
    columns = (Column(name), *_CALLS[1:])
    yield from _table(columns, rows, width)
    if not rows or _HOW in fitting(columns, rows, width):
        return
    for one in all_calls:
        how = _how(one)
        if how and not one.parts:
            text = f"{one_line(' '.join((one.method, one.target or '')))}: {how}"
            yield from ([("  " + part, "warn")] for part in (wrapped(text, max((width or 0) - 2, 2), 2)))


def _row(one: Calls) -> list[Piece]:
    name = one_line(one.method) if one.target is None else "  " + (one_line(one.target) or "(no name)")
    took = _took(one.latency)
    return [
        (name, "" if one.target is None else "strong"),
        (f"{one.count:,}", ""),
        (f"{one.failed:,}" if one.failed else "", "bad"),
        (f"{one.open:,}" if one.open else "", "wait"),
        *((text, "") for text in took),
        (size(one.request_bytes), "dim"),
        (size(one.response_bytes) if one.latency else "", "dim"),
        (f"{one.tokens:,}" if one.tokens else "", "dim"),
        (f"{one.progress:,}" if one.progress else "", "dim"),
        (f"{one.exchanges:,}" if one.wire else "", "dim"),
        *((duration(took_ns), "dim") for took_ns in ((one.wire.p50_ns, one.wire.max_ns) if one.wire else ())),
        *([] if one.wire else [("", ""), ("", "")]),
        (_how(one), "warn"),
    ]


def _took(took: Latency | None) -> list[str]:
    if took is None:
        return [""] * 5
    return [duration(one) for one in (took.min_ns, took.p50_ns, took.p90_ns, took.p99_ns, took.max_ns)]


def _how(one: Calls) -> str:
    """The kinds of failures, and how often each: `2 error -32601, 1 cancelled`."""
    codes = [f"{count:,} error {one_line(code)}".rstrip() for code, count in one.codes.items()]
    others = [
        f"{count:,} {outcome.value}"
        for outcome, count in one.outcomes.items()
        if outcome not in WELL and outcome is not Outcome.ERROR
    ]
    repeated = [counted(one.repeated, "answer") + " too many"] if one.repeated else []
    return ", ".join([*codes, *others, *repeated])


def _told(told: Told) -> list[Piece]:
    return [(one_line(told.method), ""), (told.sender, "dim"), (f"{told.count:,}", ""), (size(told.bytes), "dim")]


def _client(client: ClientNumbers) -> list[Piece]:
    _, p50, _, p99, longest = _took(client.latency)
    failed = f"{client.failed:,}" if client.failed else ""
    return [(one_line(client.name), ""), (f"{client.calls:,}", ""), (failed, "bad"), (p50, ""), (p99, ""), (longest, "")]


def _context(one: ServerNumbers, width: int | None) -> Iterator[Line]:
    """What each tool takes of a model's context, the largest first."""
    tools = sorted(one.cost.tools, key=lambda tool: -(tool.definition_tokens + tool.result_tokens))
    rows: list[list[Piece]] = [
        [
            (one_line(tool.name) or "(no name)", "strong"),
            (size(tool.definition_bytes) if tool.definition else "not listed", "" if tool.definition else "dim"),
            (f"{tool.definition_tokens:,}" if tool.definition else "", ""),
            (f"{tool.calls:,}" if tool.calls else "never", "" if tool.calls else "dim"),
            (size(tool.result_bytes) if tool.calls else "", "dim"),
            (f"{tool.result_tokens:,}" if tool.result_tokens else "", "dim"),
        ]
        for tool in tools
    ]
    if any(tool.definition for tool in tools) and cells("".join(tool.name for tool in tools)):
        yield from _table(_CONTEXT, rows, width)
