"""Calls through a gateway that was tapped on both sides are joined, and calls that only look like it are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mcpspy.transcript.exchange import ForwardedCall
from mcpspy.transcript.hops import hop_name
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.stats.outcomes import outcomes
from mcpspy.transcript.stats.statistics import numbers, totals
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import hops_object
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import MS, Dialogue, make_header, notification, progress, request, result

CLIENT = {"pid": 7, "name": "agent", "start": 3}
OTHER = {"pid": 8, "name": "agent", "start": 4}
GATEWAY = {"pid": 101, "name": "gateway", "start": 0}
"""The process that the outer tap of a dialogue starts."""


@dataclass
class Step:
    """A call from `begin` to `end`, in ms; `answer` is its text."""

    begin: int
    end: int
    id: int = 1
    tool: str = "echo"
    text: str = "hello"
    answer: str = "hello"
    trace: str = ""
    notifies: bool = False


def capture(label: str, parent: dict[str, Any], *steps: Step, greets: bool = False) -> Dialogue:
    """Make the capture of a server with this parent process."""
    header = make_header(label=label, parent=parent)
    header.tapped["argv"] = [label]
    dialogue = Dialogue(header=header)
    if greets:
        dialogue.client(request(0, "initialize")).server(result(0)).client(notification())
    events = sorted(
        [(step.begin, "call", step) for step in steps] + [(step.end, "answer", step) for step in steps],
        key=lambda event: event[0],
    )
    for at_ms, kind, step in events:
        dialogue.at_ns = (at_ms - 1) * MS
        if kind == "call":
            params: dict[str, Any] = {"name": step.tool, "arguments": {"text": step.text}}
            if step.trace:
                params["_meta"] = {"traceparent": f"00-{step.trace * 32}-{'1' * 16}-01"}
            if step.notifies:
                params["_meta"] = {"progressToken": step.id}
            dialogue.client(request(step.id, "tools/call", params))
            if step.notifies and label == "server":
                dialogue.server(progress(step.id, 1))
        else:
            dialogue.server(result(step.id, {"content": [{"type": "text", "text": step.answer}]}))
    return dialogue.ends()


def joined(outer: Dialogue, inner: Dialogue) -> Transcript:
    return transcribe(outer.records, inner.records)


def pairs(transcript: Transcript) -> list[tuple[int, tuple[int, ...]]]:
    """List the rows of joined calls: that of the outer, and those of the inner ones."""
    calls = dict.fromkeys(transcript.hops.values())
    return sorted((call.outer.row, tuple(row.row for row in call.inner)) for call in calls)


def two_calls(shift: int = 0, tool: str = "echo", **values: Any) -> tuple[Step, Step]:
    first, second = 10 + shift, 50 + shift
    length = 20 - 2 * shift
    return (
        Step(first, first + length, 1, tool, "a", **values),
        Step(second, second + length, 2, tool, "b", **values),
    )


OUTER = capture("gateway", CLIENT, *two_calls(tool="demo_echo"))


def through_gateway() -> Transcript:
    return joined(OUTER, capture("server", OTHER, *two_calls(5)))


def test_calls_with_equal_arguments_within_each_other_are_joined() -> None:
    assert pairs(through_gateway()) == [(1, (2,)), (3, (4,))]


def test_the_gateways_share_is_the_time_that_the_server_did_not_take() -> None:
    call: ForwardedCall = through_gateway().hops[1]
    assert (call.server_ns, call.gateway_ns) == (10 * MS, 10 * MS)


def test_a_trace_joins_calls_whose_arguments_differ() -> None:
    outer = capture("gateway", CLIENT, Step(10, 30, trace="a", text="x"))
    assert pairs(joined(outer, capture("server", OTHER, Step(15, 25, trace="a", text="y")))) == [(1, (2,))]


def test_the_process_that_started_the_inner_tap_joins_a_single_call() -> None:
    outer = capture("gateway", CLIENT, Step(10, 30, text="x"))
    assert pairs(joined(outer, capture("server", GATEWAY, Step(15, 25, text="y")))) == [(1, (2,))]


def test_a_gateway_that_tries_again_makes_two_calls_of_one() -> None:
    inner = capture("server", GATEWAY, Step(12, 15, 1), Step(18, 22, 2))
    assert pairs(joined(capture("gateway", CLIENT, Step(10, 30)), inner)) == [(1, (2, 3))]


APART = {
    "two agents that call at the same time": (
        capture("gateway", CLIENT, Step(10, 40, 1), Step(11, 41, 2)),
        capture("server", GATEWAY, Step(15, 25, 1), Step(16, 26, 2)),
    ),
    "an agent with a server of its own, by chance": (
        capture("one", CLIENT, Step(10, 30)),
        capture("two", OTHER, Step(15, 25)),
    ),
    "an agent whose other calls are explained by nothing": (
        OUTER,
        capture("two", OTHER, *two_calls(5), Step(35, 45, 3, text="c")),
    ),
    "two servers of one client": (OUTER, capture("server", CLIENT, *two_calls(5))),
    "an answer that came too late": (
        capture("gateway", CLIENT, Step(10, 30)),
        capture("server", GATEWAY, Step(15, 35)),
    ),
    "another trace": (
        capture("gateway", CLIENT, *two_calls(trace="a")),
        capture("server", GATEWAY, *two_calls(5, trace="b")),
    ),
    "another tool": (capture("gateway", CLIENT, *two_calls()), capture("server", GATEWAY, *two_calls(5, tool="print"))),
    "a tool whose name only ends alike": (
        capture("gateway", CLIENT, *two_calls(tool="reecho")),
        capture("server", GATEWAY, *two_calls(5)),
    ),
}


@pytest.mark.parametrize(("outer", "inner"), APART.values(), ids=list(APART))
def test_what_does_not_belong_together_is_not_joined(outer: Dialogue, inner: Dialogue) -> None:
    assert pairs(joined(outer, inner)) == []


def test_the_timeline_has_one_row_with_both_hops() -> None:
    lines = [plain(line) for line in timeline(through_gateway())]
    assert lines[0].partition(" ")[2].startswith("2 calls in ")
    assert sum("→ tools/call" in line for line in lines) == 2
    assert [line.split("→ ", 1)[1] for line in lines if "→ server row" in line] == [
        "server row 2: 10.0 ms, gateway 10.0 ms, 50 %",
        "server row 4: 10.0 ms, gateway 10.0 ms, 50 %",
    ]


def test_numbers_count_a_call_once() -> None:
    transcript = through_gateway()
    gateway, server = numbers(transcript)
    assert outcomes(transcript).total() == 2
    assert ([calls.count for calls in gateway.calls], [calls.count for calls in server.calls]) == ([2], [])
    assert server.forwarded is not None
    assert (server.forwarded.gateway, server.forwarded.calls) == ("gateway", 2)


def test_a_diagram_has_the_gateway_between_client_and_server() -> None:
    transcript = through_gateway()
    drawn = diagram(transcript, transcript.rows)
    assert [participant.name for participant in drawn.participants] == ["agent", "gateway", "server"]


def test_what_the_gateway_changed_and_dropped_is_said() -> None:
    outer = capture("gateway", CLIENT, Step(10, 30, text="x", answer="HELLO", notifies=True))
    transcript = joined(outer, capture("server", GATEWAY, Step(15, 25, text="y", notifies=True)))
    hops = hops_object(transcript, transcript.exchanges[0])["hops"]
    assert (hops["changed_params"], hops["changed_answer"]) == (["$.arguments.text"], ["$.result.content[0].text"])
    assert hops["dropped"] == {"notifications/progress": 1}
    text = "\n".join(plain(line) for line in timeline(transcript))
    assert "gateway changed the params: $.arguments.text" in text
    assert "gateway changed the answer: $.result.content[0].text" in text
    assert "gateway dropped notifications/progress ×1" in text


def test_findings_name_their_hop() -> None:
    inner = capture("server", OTHER, *two_calls(5))
    inner.records.insert(-1, Dialogue().server(b"noise\n").records[-1])
    transcript = joined(OUTER, inner)
    assert {finding.hop for finding in transcript.findings if finding.rule == "stdout-noise"} == {"gateway ↔ server"}
    assert hop_name(transcript, 0) == "agent ↔ gateway"


def test_the_sums_over_both_sides_of_a_gateway_count_once_what_came_through() -> None:
    steps = Step(10, 30, 1), Step(40, 60, 2, text="again")
    inner = Step(15, 25, 1), Step(45, 55, 2, text="again")
    outer_alone = totals(numbers(transcribe(capture("gateway", CLIENT, *steps).records)))
    both = totals(numbers(joined(capture("gateway", CLIENT, *steps), capture("server", GATEWAY, *inner))))
    assert (both.clients, both.messages, both.result_tokens) == (1, outer_alone.messages, outer_alone.result_tokens)


def test_the_sums_count_what_another_client_called_without_the_gateway() -> None:
    outer = capture("gateway", CLIENT, Step(10, 30, 1))
    inner = capture("server", GATEWAY, Step(15, 25, 1), Step(45, 55, 2, tool="other", text="direct"))
    servers = numbers(joined(outer, inner))
    assert totals(servers).messages == sum(server.messages for server in servers)
