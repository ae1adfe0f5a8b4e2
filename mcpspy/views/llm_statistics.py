"""The numbers of a model's leg for `show --stats`: whose time it was, models, tools and runs. Refuses to count: that is done."""

from collections.abc import Iterator

from ..transcript.llm.agent_runs import AgentRun
from ..transcript.llm.statistics import LegNumbers, ModelNumbers, ToolNumbers
from ..transcript.stats.statistics import Latency
from .text.escape import one_line
from .text.line import Line, Piece, fitted
from .text.table import Column, table_lines
from .text.units import counted, duration

MAX_ROWS = 40

LEGEND = (
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


def _table(columns: tuple[Column, ...], rows: list[list[Piece]], width: int | None) -> Iterator[Line]:
    if not rows:
        return
    yield []
    shown = rows if width is None else rows[:MAX_ROWS]
    yield from table_lines(columns, shown, width)
    if len(shown) < len(rows):
        yield [(f"… {counted(len(rows) - len(shown), 'more row')}", "dim")]


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
        *_took(one.latency),
        (f"~{one.told_tokens:,}" if one.told_tokens else "", ""),
    ]


def _took(took: Latency | None) -> list[Piece]:
    return [("", "")] * 2 if took is None else [(duration(took.p50_ns), ""), (duration(took.max_ns), "")]


def _run(run: AgentRun) -> list[Piece]:
    words = one_line(run.user_text) or "(as the capture began)"
    return [
        (words if run.is_whole else f"{words} (not finished)", "" if run.is_whole else "wait"),
        *((duration(ns), "") for ns in (run.took_ns, run.model_ns, run.server_ns, run.client_ns)),
        (f"{len(run.calls):,}", "dim"),
        (f"{len(run.tool_trips):,}" if run.tool_trips else "", "dim"),
    ]
