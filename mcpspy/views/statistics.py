"""The numbers of `show --stats`: per server its facts, then its calls, requests, notifications, clients and tools in tables.

Everything fits the width it is given; on a pipe nothing is left out. Refuses to count: `transcript.numbers` has done it.
"""

from collections.abc import Iterator
from datetime import tzinfo

from ..transcript.llm.agent_runs import AgentRun
from ..transcript.llm.statistics import LegNumbers, ModelNumbers, ToolNumbers, leg_numbers
from ..transcript.model import Numbered, Outcome, Row, Transcript
from ..transcript.stats.http import HttpNumbers
from ..transcript.stats.statistics import WELL, CallNumbers, ClientNumbers, Latency, NotificationNumbers, ServerNumbers, numbers
from .text.cells import cells, padded, wrapped
from .text.escape import one_line
from .text.line import Line, Piece, fitted
from .text.table import Column, fitting, table_lines
from .text.units import counted, duration, size
from .timeline.phrases import exit_words
from .timeline.summary import capture_lines, phase_words, shown_captures, start_up_words, summary, wrapped_words

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

_MODEL_LEGEND = (
    "Tokens of models are those that their API counted; ~ says that they are estimated: of tools, and where the API said none.",
    "Time that overlaps counts once: it is the model's while one is at work, else a server's, else the client's.",
)

_MODELS = (
    Column("model"), Column("n"), Column("failed"), Column("p50", 1), Column("p90", 6), Column("p99", 7), Column("max"),
    Column("first token p50", 5), Column("first token max", 8), Column("tokens in", 0), Column("cached", 2), Column("out", 0),
    Column("reasoning", 4), Column("tool uses", 3),
)  # fmt: skip
_TOOLS = (
    Column("tool"), Column("prompts"), Column("definition", 3), Column("in all", 1), Column("used"), Column("called"),
    Column("failed"), Column("p50", 4), Column("max", 2), Column("told"),
)  # fmt: skip
_RUNS = (
    Column("run"), Column("took"), Column("model"), Column("server"), Column("client"), Column("model calls", 1),
    Column("tool uses", 2),
)  # fmt: skip


def statistics_lines(
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
    for line in capture_lines(transcript, zone, phases=False, since=since):
        yield fitted(line, width)
    shown = {one.index for one in shown_captures(transcript, since)}
    servers = [one for one in numbers(transcript, rows) if one.capture_info.index in shown]
    for one in servers:
        if len(servers) > 1:
            yield []
            yield fitted([(one_line(one.capture_info.server), "strong")], width)
        yield from _server(one, width)
    legend: tuple[str, ...] = LEGEND
    if transcript.model_calls:
        chosen = None if rows is None else {one.row for one in rows if isinstance(one, Numbered)}
        yield from leg_lines(leg_numbers(transcript, chosen), width)
        legend = (*LEGEND[:-1], "Sizes are of payloads.", *_MODEL_LEGEND)
    yield []
    for sentence in legend:
        for part in [sentence] if width is None else wrapped(sentence, width, 4):
            yield [(part, "dim")]


def _server(one: ServerNumbers, width: int | None) -> Iterator[Line]:
    found = list(_facts(one, width))
    if found:
        yield []
        yield from found
    yield from _calls("call", one.calls, width)
    yield from _calls("asked by the server", one.requests, width)
    yield from _table(_TOLD, [_told(told) for told in one.notifications], width)
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


def _calls(name: str, calls: list[CallNumbers], width: int | None) -> Iterator[Line]:
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


def _row(one: CallNumbers) -> list[Piece]:
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


def _how(one: CallNumbers) -> str:
    """The kinds of failures, and how often each: `2 error -32601, 1 cancelled`."""
    codes = [f"{count:,} error {one_line(code)}".rstrip() for code, count in one.codes.items()]
    others = [
        f"{count:,} {outcome.value}"
        for outcome, count in one.outcomes.items()
        if outcome not in WELL and outcome is not Outcome.ERROR
    ]
    repeated = [counted(one.repeated, "answer") + " too many"] if one.repeated else []
    return ", ".join([*codes, *others, *repeated])


def _told(told: NotificationNumbers) -> list[Piece]:
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


def _facts(one: ServerNumbers, width: int | None) -> Iterator[Line]:
    """A line for each fact, or more where it is long."""
    start_up = one.lifecycle.start_up
    found = {
        "start-up": start_up_words(start_up) if start_up else [],
        "phases": phase_words(one.lifecycle.phases),
        "process": _process(one),
        "messages": [] if one.capture_info.is_model else _messages(one),
        "http": _http(one.http) if one.http else [],
        "context": _context_words(one),
    }
    shown = {name: words for name, words in found.items() if words}
    room = max(map(len, shown), default=0) + 2
    for name, words in shown.items():
        lines = wrapped_words(words, None if width is None else max(width - room, 1))
        for number, line in enumerate(lines):
            yield fitted([(padded("" if number else name, room), "dim"), (line, "")], width)


def _process(one: ServerNumbers) -> list[str]:
    capture = one.capture_info
    if capture.exit is None:
        return []
    start_up = one.lifecycle.start_up
    ran_ns = capture.exit.at_ns + capture.shift_ns - (start_up.spawned_ns if start_up else capture.shift_ns)
    return [f"{exit_words(capture.exit)}" + ("" if capture.exit.error else f" after {duration(ran_ns)}")]


def _messages(one: ServerNumbers) -> list[str]:
    words = [counted(one.messages, "message"), f"{size(one.sent_bytes['client'])} from the client"]
    words.append(f"{size(one.sent_bytes['server'])} from the server")
    if one.log_lines:
        words.append(f"{counted(one.log_lines, 'line')} on stderr, {size(one.log_bytes)}")
    if one.unmatched:
        words.append(counted(one.unmatched, "answer") + " nobody asked for")
    if one.malformed:
        words.append(f"{one.malformed:,} malformed")
    return words


def _http(http: HttpNumbers) -> list[str]:
    words = [f"{counted(http.transactions, 'transaction')} on {counted(http.connections, 'connection')}"]
    if http.sessions:
        words.append(counted(http.sessions, "session"))
    words += [f"{count:,} × {one_line(method)}" for method, count in http.methods.items()]
    words += [f"{count:,} × {status or 'no response'}" for status, count in http.statuses.items()]
    if http.streams:
        is_open = f", {http.open_streams:,} open" if http.open_streams else ""
        words.append(f"{counted(http.streams, 'stream')} of events{is_open}")
        words.append(f"{counted(http.events, 'event')}, {counted(http.keep_alives, 'keep-alive')}")
    if http.redelivered:
        words.append(f"{counted(http.redelivered, 'event')} redelivered")
    words.append(f"bodies {size(http.request_bytes)} and {size(http.response_bytes)}")
    return words


def _context_words(one: ServerNumbers) -> list[str]:
    cost = one.cost
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
    """The lines below the servers', each table behind an empty line."""
    if numbers.runs:
        yield []
        yield fitted([("time  ", "dim"), (time_words(numbers.runs), "")], width)
    yield from _table(_MODELS, [_model(one) for one in numbers.models], width)
    tools = sorted(numbers.tools, key=lambda one: -(one.offered_tokens + one.told_tokens))
    yield from _table(_TOOLS, [_tool(one) for one in tools], width)
    yield from _table(_RUNS, [_run(one) for one in numbers.runs], width)


def time_words(runs: list[AgentRun]) -> str:
    """`14.2 s in 2 runs: model 12.9 s, server 1.10 s, client 200 ms`."""
    took, model, server, client = (
        duration(sum(ns))
        for ns in zip(*((one.took_ns, one.model_ns, one.server_ns, one.client_ns) for one in runs), strict=True)
    )
    among = f" in {counted(len(runs), 'run')}" if len(runs) > 1 else ""
    return f"{took}{among}: model {model}, server {server}, client {client}"


def _model(one: ModelNumbers) -> list[Piece]:
    took, first = one.latency, one.until_first
    return [
        (one_line(one.model) or "(no name)", "strong"),
        (f"{one.calls:,}", ""),
        (f"{one.failed:,}" if one.failed else "", "bad"),
        *((duration(ns), "") for ns in ((took.p50_ns, took.p90_ns, took.p99_ns, took.max_ns) if took else ())),
        *([] if took else [("", "")] * 4),
        *((duration(ns), "dim") for ns in ((first.p50_ns, first.max_ns) if first else ())),
        *([] if first else [("", "")] * 2),
        (_tokens(one.input_tokens, one.estimated_input_tokens), ""),
        (f"{one.cached_tokens:,}" if one.cached_tokens else "", "dim"),
        (_tokens(one.output_tokens, one.estimated_output_tokens), ""),
        (f"{one.reasoning_tokens:,}" if one.reasoning_tokens else "", "dim"),
        (f"{one.uses:,}" if one.uses else "", ""),
    ]


def _tokens(real: int, estimated: int) -> str:
    """`126`, `~90`, or both where some calls were counted and others not: `126 + ~90`."""
    return " + ".join(words for words in (f"{real:,}" if real else "", f"~{estimated:,}" if estimated else "") if words)


def _tool(one: ToolNumbers) -> list[Piece]:
    return [
        (one_line(one.name) or "(no name)", "strong"),
        (f"{one.prompts:,}" if one.prompts else "not offered", "" if one.prompts else "warn"),
        (f"~{one.definition_tokens:,}" if one.prompts else "", "dim"),
        (f"~{one.offered_tokens:,}" if one.prompts else "", ""),
        (f"{one.uses:,}" if one.uses else "never", "" if one.uses else "dim"),
        (f"{one.called:,}" if one.called else "", ""),
        (f"{one.failed:,}" if one.failed else "", "bad"),
        *_short_latency(one.latency),
        (f"~{one.told_tokens:,}" if one.told_tokens else "", ""),
    ]


def _short_latency(took: Latency | None) -> list[Piece]:
    return [("", "")] * 2 if took is None else [(duration(took.p50_ns), ""), (duration(took.max_ns), "")]


def _run(run: AgentRun) -> list[Piece]:
    words = one_line(run.user_text) or "(as the capture began)"
    return [
        (words if run.is_whole else f"{words} (not finished)", "" if run.is_whole else "wait"),
        *((duration(ns), "") for ns in (run.took_ns, run.model_ns, run.server_ns, run.client_ns)),
        (f"{len(run.calls):,}", "dim"),
        (f"{len(run.tool_trips):,}" if run.tool_trips else "", "dim"),
    ]
