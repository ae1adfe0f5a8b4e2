"""The statistics of `show --stats`: for each server its facts and tables, then the tables about model API traffic.

Takes the numbers that `transcript.stats` counted. Everything fits the width: on a narrow screen columns are dropped, the least needed
first, and nothing wraps. On a pipe nothing is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import NamedTuple

from ..transcript.llm.agent_runs import AgentRun
from ..transcript.llm.usage import LegNumbers, ModelNumbers, ToolNumbers, leg_numbers
from ..transcript.model import Numbered, Outcome, Row, Transcript
from ..transcript.stats.statistics import (
    WELL,
    CallNumbers,
    ClientNumbers,
    HttpNumbers,
    Latency,
    NotificationNumbers,
    ServerNumbers,
    Totals,
    numbers,
    totals,
)
from .text.cells import cells, cut, padded, padded_left, wrapped
from .text.escape import one_line
from .text.line import Line, Piece, fitted
from .text.units import counted, duration, size
from .timeline.phrases import exit_words
from .timeline.summary import capture_lines, phase_words, shown_captures, start_up_words, summary, wrapped_words

MAX_ROWS = 40
"""The most rows of a table shown on a screen; more are counted."""

LEGEND = (
    "Times are from the last byte of a request to the last byte of its response. Percentiles are nearest-rank.",
    "Requests without a response are not in the times.",
    "If a call takes several exchanges, as when it asks for input, its time is from the first request to the last response.",
    "n is the number of calls, or of notifications. Sizes are those of payloads, sent in requests and back in responses.",
    "Tokens are estimates.",
)

_UNREAD = "Times for which a request or its answer waited for a reader that had stopped are not in the times."


class Column(NamedTuple):
    """A column's title, and when it is dropped: the highest `gives_way` first, 0 never. `words` aligns it to the left."""

    name: str
    gives_way: int = 0
    words: bool = False


_CALLS = (
    Column("call"), Column("n"), Column("failed"), Column("pending"), Column("min", 6), Column("p50", 1), Column("p90", 1),
    Column("p99", 4), Column("max"), Column("sent", 3), Column("back", 2), Column("tokens", 2), Column("progress", 8),
    Column("exchanges", 7), Column("wire p50", 5), Column("wire max", 6),
    Column("failures", 9, words=True),
)  # fmt: skip

_FAILURES = len(_CALLS) - 1

_CLIENTS = (Column("client"), Column("calls"), Column("failed"), Column("p50"), Column("p99", 1), Column("max"))
_NOTIFICATIONS = (Column("notification"), Column("from", words=True), Column("n"), Column("size"))
_CONTEXT = (
    Column("tool"), Column("definition"), Column("tokens"), Column("calls"), Column("results"), Column("result tokens", 1)
)  # fmt: skip

_MODEL_LEGEND = (
    "Tokens of models are counted by their API. ~ marks an estimate: the tokens of tools, and of calls without a count.",
    "Time that overlaps counts once: as the model's while a model call runs, else as the server's, else as the client's.",
)

_MODELS = (
    Column("model"), Column("n"), Column("failed"), Column("p50", 1), Column("p90", 6), Column("p99", 7), Column("max"),
    Column("first token p50", 5), Column("first token max", 8), Column("tokens in", 0), Column("cached", 2), Column("out", 0),
    Column("reasoning", 4), Column("tool uses", 3),
)  # fmt: skip

_TOOLS = (
    Column("tool"), Column("prompts"), Column("definition", 3), Column("total", 1), Column("used"), Column("called"),
    Column("failed"), Column("p50", 4), Column("max", 2), Column("returned"),
)  # fmt: skip

_RUNS = (
    Column("agent run"), Column("took"), Column("model"), Column("server"), Column("client"), Column("model calls", 1),
    Column("tool uses", 2),
)  # fmt: skip

GAP = "  "

MIN_NAME_CELLS = 24
"""The cells that the first column gets before any other column is shown."""


def statistics_lines(
    transcript: Transcript,
    rows: list[Row] | None = None,
    *,
    width: int | None = None,
    live: bool = False,
    zone: tzinfo | None = None,
    since: str = "",
) -> Iterator[Line]:
    """Yield all statistics of `transcript`, or of these rows of it. The other parameters are those of the timeline."""
    yield from summary(transcript, live=live, width=width, since=since)
    for line in capture_lines(transcript, zone, phases=False, since=since):
        yield fitted(line, width)
    shown = {capture.index for capture in shown_captures(transcript, since)}
    servers = [server for server in numbers(transcript, rows) if server.capture_info.index in shown]
    yield from _totals(totals(servers), width)
    for server in servers:
        if len(servers) > 1:
            yield []
            yield fitted([(one_line(server.capture_info.server), "strong")], width)
        yield from _server(server, width)
    legend: tuple[str, ...] = LEGEND
    if transcript.model_calls:
        chosen = None if rows is None else {row.row for row in rows if isinstance(row, Numbered)}
        yield from leg_lines(leg_numbers(transcript, chosen), width)
        legend = (*LEGEND[:-1], *_MODEL_LEGEND)
    if any(info.unread for info in transcript.captures):
        legend = (*legend[:2], _UNREAD, *legend[2:])
    yield []
    for sentence in legend:
        yield from ([(part, "dim")] for part in wrapped(sentence, width, 4))


def _totals(total: Totals, width: int | None) -> Iterator[Line]:
    """Yield the sums over all servers; none where there is only one."""
    if total.servers < 2:
        return
    calls = [counted(total.calls, "call"), *([f"{total.failed:,} failed"] if total.failed else [])]
    calls += [f"{total.pending:,} pending"] if total.pending else []
    calls += [f"p50 {duration(total.latency.p50_ns)}, max {duration(total.latency.max_ns)}"] if total.latency else []
    calls += [counted(total.requests, "server request")] if total.requests else []
    messages = [
        counted(total.messages, "message"),
        f"{size(total.client_bytes)} to servers",
        f"{size(total.server_bytes)} back",
    ]
    who = "this agent " if total.clients == 1 else ""
    context = [f"tool lists cost {who}{counted(total.definition_tokens, 'token')}"] if total.definition_tokens else []
    context += [f"instructions {counted(total.instructions_tokens, 'token')}"] if total.instructions_tokens else []
    context += [f"results {counted(total.result_tokens, 'token')}"] if total.result_tokens else []
    context += [f"{counted(total.unused, 'tool')} never called"] if total.unused else []
    yield []
    yield [(f"all {total.servers} servers", "strong")]
    yield []
    yield from _fact_lines({"calls": calls, "messages": messages, "context": context}, width)


def _server(server: ServerNumbers, width: int | None) -> Iterator[Line]:
    lines = [*_forwarded(server, width), *_facts(server, width)]
    if lines:
        yield []
        yield from lines
    yield from _calls("call", server.calls, width)
    yield from _calls("server request", server.requests, width)
    yield from _table(_NOTIFICATIONS, [_notification(notification) for notification in server.notifications], width)
    if len(server.clients) > 1:
        yield from _table(_CLIENTS, [_client(client) for client in server.clients], width)
    yield from _context(server, width)


def _forwarded(server: ServerNumbers, width: int | None) -> Iterator[Line]:
    """Yield the number of calls that came through a gateway, and their time here and there."""
    forwarded = server.forwarded
    if forwarded is None:
        return
    gateway = one_line(forwarded.gateway)
    words = [f"{counted(forwarded.calls, 'call')} through {gateway}, counted there"]
    for where, times in (("here", forwarded.server), (f"in {gateway}", forwarded.in_gateway)):
        words += [f"{where} p50 {duration(times.p50_ns)}, max {duration(times.max_ns)}"] if times is not None else []
    yield from ([(line, "")] for line in wrapped_words(words, width))


def _table(columns: tuple[Column, ...], rows: list[list[Piece]], width: int | None) -> Iterator[Line]:
    if not rows:
        return
    yield []
    shown = rows if width is None else rows[:MAX_ROWS]
    yield from table_lines(columns, shown, width)
    if len(shown) < len(rows):
        yield [(f"… {counted(len(rows) - len(shown), 'more row')}", "dim")]


def _calls(name: str, calls: list[CallNumbers], width: int | None) -> Iterator[Line]:
    """Yield the table of calls. Where there is no room for the column of failures, they follow below the table."""
    all_calls = [call for of_method in calls for call in (of_method, *of_method.by_target)]
    rows = [_row(call) for call in all_calls]
    columns = (Column(name), *_CALLS[1:])
    yield from _table(columns, rows, width)
    if not rows or _FAILURES in _fitting_columns(columns, rows, width):
        return
    for call in all_calls:
        failures = _failures(call)
        if failures and not call.by_target:
            text = f"{one_line(' '.join((call.method, call.target or '')))}: {failures}"
            yield from ([("  " + part, "warn")] for part in (wrapped(text, max((width or 0) - 2, 2), 2)))


def _row(calls: CallNumbers) -> list[Piece]:
    name = one_line(calls.method) if calls.target is None else "  " + (one_line(calls.target) or "(no name)")
    return [
        (name, "" if calls.target is None else "strong"),
        (f"{calls.count:,}", ""),
        (f"{calls.failed:,}" if calls.failed else "", "bad"),
        (f"{calls.pending:,}" if calls.pending else "", "wait"),
        *_took(calls.latency, "min", "p50", "p90", "p99", "max"),
        (size(calls.request_bytes), "dim"),
        (size(calls.response_bytes) if calls.latency else "", "dim"),
        (f"{calls.tokens:,}" if calls.tokens else "", "dim"),
        (f"{calls.progress:,}" if calls.progress else "", "dim"),
        (f"{calls.exchanges:,}" if calls.exchange_latency else "", "dim"),
        *_took(calls.exchange_latency, "p50", "max", style="dim"),
        (_failures(calls), "warn"),
    ]


def _took(latency: Latency | None, *figures: str, style: str = "") -> list[Piece]:
    """Return a cell for each of these figures, such as `p50`; empty ones where nothing was timed."""
    if latency is None:
        return [("", "")] * len(figures)
    return [(duration(getattr(latency, f"{figure}_ns")), style) for figure in figures]


def _failures(calls: CallNumbers) -> str:
    """Return the kinds of failures with their counts: `2 error -32601, 1 cancelled`."""
    codes = [f"{count:,} error {one_line(code)}".rstrip() for code, count in calls.codes.items()]
    others = [
        f"{count:,} {outcome.value}"
        for outcome, count in calls.outcomes.items()
        if outcome not in WELL and outcome is not Outcome.ERROR
    ]
    repeated = [counted(calls.more_responses, "extra response")] if calls.more_responses else []
    return ", ".join([*codes, *others, *repeated])


def _notification(notification: NotificationNumbers) -> list[Piece]:
    sent = [(notification.sender, "dim"), (f"{notification.count:,}", ""), (size(notification.bytes), "dim")]
    return [(one_line(notification.method), ""), *sent]


def _client(client: ClientNumbers) -> list[Piece]:
    failed = f"{client.failed:,}" if client.failed else ""
    took = _took(client.latency, "p50", "p99", "max")
    return [(one_line(client.name), ""), (f"{client.calls:,}", ""), (failed, "bad"), *took]


def _context(server: ServerNumbers, width: int | None) -> Iterator[Line]:
    """Yield the table of each tool's share of a model's context, the largest first."""
    tools = sorted(server.cost.tools, key=lambda tool: -(tool.definition_tokens + tool.result_tokens))
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


def _facts(server: ServerNumbers, width: int | None) -> Iterator[Line]:
    """Yield a line for each fact, or more where it is long."""
    start_up = server.lifecycle.start_up
    facts = {
        "start-up": start_up_words(start_up) if start_up else [],
        "phases": phase_words(server.lifecycle.phases),
        "process": _process(server),
        "messages": [] if server.capture_info.is_model else _messages(server),
        "http": _http(server.http) if server.http else [],
        "context": _context_words(server),
    }
    yield from _fact_lines(facts, width)


def _fact_lines(facts: Mapping[str, list[str]], width: int | None) -> Iterator[Line]:
    """Yield facts with their words, below one another."""
    shown = {name: words for name, words in facts.items() if words}
    room = max(map(len, shown), default=0) + 2
    for name, words in shown.items():
        lines = wrapped_words(words, None if width is None else max(width - room, 1))
        for number, line in enumerate(lines):
            yield fitted([(padded("" if number else name, room), "dim"), (line, "")], width)


def _process(server: ServerNumbers) -> list[str]:
    capture = server.capture_info
    if capture.exit is None:
        return []
    start_up = server.lifecycle.start_up
    ran_ns = capture.exit.at_ns + capture.shift_ns - (start_up.spawned_ns if start_up else capture.shift_ns)
    return [f"{exit_words(capture.exit)}" + ("" if capture.exit.error else f" after {duration(ran_ns)}")]


def _messages(server: ServerNumbers) -> list[str]:
    words = [counted(server.messages, "message"), f"{size(server.sent_bytes['client'])} from the client"]
    words.append(f"{size(server.sent_bytes['server'])} from the server")
    if server.log_lines:
        words.append(f"{counted(server.log_lines, 'line')} on stderr, {size(server.log_bytes)}")
    if server.unmatched:
        words.append(counted(server.unmatched, "response") + " without a request")
    if server.malformed:
        words.append(f"{server.malformed:,} malformed")
    return words


def _http(http: HttpNumbers) -> list[str]:
    words = [f"{counted(http.transactions, 'transaction')} on {counted(http.connections, 'connection')}"]
    if http.sessions:
        words.append(counted(http.sessions, "session"))
    words += [f"{count:,} × {one_line(method)}" for method, count in http.methods.items()]
    words += [f"{count:,} × {status or 'no response'}" for status, count in http.statuses.items()]
    if http.streams:
        is_open = f", {http.open_streams:,} open" if http.open_streams else ""
        words.append(f"{counted(http.streams, 'event stream')}{is_open}")
        words.append(f"{counted(http.events, 'event')}, {counted(http.keep_alives, 'keep-alive')}")
    if http.redelivered:
        words.append(f"{counted(http.redelivered, 'event')} redelivered")
    words.append(f"request bodies {size(http.request_bytes)}, response bodies {size(http.response_bytes)}")
    return words


def _context_words(server: ServerNumbers) -> list[str]:
    cost = server.cost
    words: list[str] = []
    if cost.listed:
        offered = sum(1 for tool in cost.tools if tool.definition is not None)
        words.append(
            f"{counted(offered, 'tool')} defined in {size(cost.definition_bytes)}, about {cost.definition_tokens:,} tokens"
        )
    if cost.instructions_bytes:
        words.append(f"instructions {size(cost.instructions_bytes)}, about {cost.instructions_tokens:,} tokens")
    if cost.calls:
        words.append(f"results {size(cost.result_bytes)}, about {cost.result_tokens:,} tokens")
    if cost.listed and cost.unused and cost.calls:
        words.append(f"{counted(len(cost.unused), 'tool')} never called")
    return words


def leg_lines(numbers: LegNumbers, width: int | None) -> Iterator[Line]:
    """Yield the lines about model API traffic, each table after an empty line."""
    if numbers.runs:
        yield []
        yield fitted([("time  ", "dim"), (time_words(numbers.runs), "")], width)
    yield from _table(_MODELS, [_model(model) for model in numbers.models], width)
    tools = sorted(numbers.tools, key=lambda tool: -(tool.offered_tokens + tool.told_tokens))
    yield from _table(_TOOLS, [_tool(tool) for tool in tools], width)
    yield from _table(_RUNS, [_run(run) for run in numbers.runs], width)


def time_words(runs: list[AgentRun]) -> str:
    """Return `14.2 s in 2 agent runs: model 12.9 s, server 1.10 s, client 200 ms`."""
    took, model, server, client = (
        duration(sum(ns))
        for ns in zip(*((run.took_ns, run.model_ns, run.server_ns, run.client_ns) for run in runs), strict=True)
    )
    count = f" in {counted(len(runs), 'agent run')}" if len(runs) > 1 else ""
    return f"{took}{count}: model {model}, server {server}, client {client}"


def _model(model: ModelNumbers) -> list[Piece]:
    return [
        (one_line(model.model) or "(no name)", "strong"),
        (f"{model.calls:,}", ""),
        (f"{model.failed:,}" if model.failed else "", "bad"),
        *_took(model.latency, "p50", "p90", "p99", "max"),
        *_took(model.until_first, "p50", "max", style="dim"),
        (_tokens(model.input_tokens, model.estimated_input_tokens), ""),
        (f"{model.cached_tokens:,}" if model.cached_tokens else "", "dim"),
        (_tokens(model.output_tokens, model.estimated_output_tokens), ""),
        (f"{model.reasoning_tokens:,}" if model.reasoning_tokens else "", "dim"),
        (f"{model.uses:,}" if model.uses else "", ""),
    ]


def _tokens(real: int, estimated: int) -> str:
    """Return `126`, `~90`, or both where the API counted some calls and not others: `126 + ~90`."""
    return " + ".join(words for words in (f"{real:,}" if real else "", f"~{estimated:,}" if estimated else "") if words)


def _tool(tool: ToolNumbers) -> list[Piece]:
    return [
        (one_line(tool.name) or "(no name)", "strong"),
        (f"{tool.prompts:,}" if tool.prompts else "not offered", "" if tool.prompts else "warn"),
        (f"~{tool.definition_tokens:,}" if tool.prompts else "", "dim"),
        (f"~{tool.offered_tokens:,}" if tool.prompts else "", ""),
        (f"{tool.uses:,}" if tool.uses else "never", "" if tool.uses else "dim"),
        (f"{tool.called:,}" if tool.called else "", ""),
        (f"{tool.failed:,}" if tool.failed else "", "bad"),
        *_took(tool.latency, "p50", "max"),
        (f"~{tool.told_tokens:,}" if tool.told_tokens else "", ""),
    ]


def _run(run: AgentRun) -> list[Piece]:
    words = one_line(run.user_text) or "(began before the capture)"
    return [
        (words if run.is_whole else f"{words} (unfinished)", "" if run.is_whole else "wait"),
        *((duration(ns), "") for ns in (run.took_ns, run.model_ns, run.server_ns, run.client_ns)),
        (f"{len(run.calls):,}", "dim"),
        (f"{len(run.tool_trips):,}" if run.tool_trips else "", "dim"),
    ]


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> Iterator[Line]:
    """Yield the titles and the rows in `width` cells; with None, as wide as they are. A row has a piece for every column."""
    shown = _fitting_columns(columns, rows, width)
    sizes = [max(cells(columns[at].name), *(cells(row[at][0]) for row in rows)) for at in shown]
    if width is not None:
        others = sum(sizes[1:]) + len(GAP) * (len(shown) - 1)
        sizes[0] = max(min(sizes[0], width - others), 1)
    yield _line(columns, shown, sizes, [(column.name, "dim") for column in columns], width)
    for row in rows:
        yield _line(columns, shown, sizes, row, width)


def _fitting_columns(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> list[int]:
    """Return the indices of the columns that fit."""
    sizes = [max(cells(column.name), *(cells(row[at][0]) for row in rows)) for at, column in enumerate(columns)]
    shown = [at for at in range(len(columns)) if at == 0 or any(row[at][0] for row in rows)]
    if width is None:
        return shown
    least = min(sizes[0], MIN_NAME_CELLS)
    while least + sum(sizes[at] + len(GAP) for at in shown[1:]) > width:
        first = max(shown, key=lambda at: (columns[at].gives_way, at))
        if not columns[first].gives_way:
            break
        shown.remove(first)
    return shown


def _line(columns: Sequence[Column], shown: list[int], sizes: list[int], row: Sequence[Piece], width: int | None) -> Line:
    line: Line = []
    for position, (at, room) in enumerate(zip(shown, sizes, strict=True)):
        text, style = row[at]
        if position:
            line.append((GAP, ""))
        is_text = position == 0 or columns[at].words
        line.append((padded(cut(text, room), room) if is_text else padded_left(text, room), style))
    return fitted(line, width)
