"""What is said of a server before its tables: how it came up and ended, what passed, what HTTP carried, what its tools cost."""

from collections.abc import Iterator

from ..transcript.stats.http import HttpNumbers
from ..transcript.stats.statistics import ServerNumbers
from .text.cells import padded
from .text.escape import one_line
from .text.line import Line, fitted
from .text.units import counted, duration, size
from .timeline.phrases import exit_words
from .timeline.summary import filled, phase_words, start_up_words


def facts(one: ServerNumbers, width: int | None) -> Iterator[Line]:
    """A line for each fact, or more where it is long."""
    start_up = one.course.start_up
    found = {
        "start-up": start_up_words(start_up) if start_up else [],
        "phases": phase_words(one.course.phases),
        "process": _process(one),
        "messages": [] if one.source.is_model else _messages(one),
        "http": _http(one.http) if one.http else [],
        "context": _context(one),
    }
    shown = {name: words for name, words in found.items() if words}
    room = max(map(len, shown), default=0) + 2
    for name, words in shown.items():
        lines = filled(words, None if width is None else max(width - room, 1))
        for number, line in enumerate(lines):
            yield fitted([(padded("" if number else name, room), "dim"), (line, "")], width)


def _process(one: ServerNumbers) -> list[str]:
    source = one.source
    if source.exit is None:
        return []
    start_up = one.course.start_up
    ran_ns = source.exit.at_ns + source.shift_ns - (start_up.spawned_ns if start_up else source.shift_ns)
    return [f"{exit_words(source.exit)}" + ("" if source.exit.error else f" after {duration(ran_ns)}")]


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


def _context(one: ServerNumbers) -> list[str]:
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
