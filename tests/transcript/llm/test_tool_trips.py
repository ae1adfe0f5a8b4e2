"""Tool uses are joined with calls by name and arguments, and with tool returns by id or content; runs split their time."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcpspy.transcript.llm.agent_runs import AgentRun, agent_runs, covered_ns
from mcpspy.transcript.llm.tool_trips import ToolTrip, tool_trips
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import Account

MS = 1_000_000
LISTED = '→ tools/list 1\n← result 1 {"tools":[{"name":"fetch","inputSchema":{"type":"object"}}]}\n'


def transcript_of(account: str, label: str = "example") -> Transcript:
    telling = Account(account, label)
    assert telling.model is not None
    return transcribe(telling.records, telling.model.records)


def call(id: int, name: str, arguments: Any = None, text: str = "ok") -> str:
    params = json.dumps({"name": name, **({} if arguments is None else {"arguments": arguments})})
    result = json.dumps({"content": [{"type": "text", "text": text}]})
    return f"→ tools/call {id} {params}\n← result {id} {result}\n"


def trips_of(account: str, label: str = "example") -> list[ToolTrip]:
    return tool_trips(transcript_of(account, label))


def only_trip(account: str, label: str = "example") -> ToolTrip:
    (trip,) = trips_of(account, label)
    return trip


def test_a_use_is_joined_with_its_call_and_what_the_model_was_told() -> None:
    trip = only_trip('⇒ asks x\n⇐ uses c1 fetch {"url":"a"}\n' + call(1, "fetch", {"url": "a"}) + "⇒ returns c1 ok\n⇐ says y")
    assert trip.call is not None
    assert trip.returned is not None
    assert trip.returned_in is not None
    assert (trip.used_in.row, trip.call.row, trip.returned_in.row) == (1, 2, 3)
    assert (trip.joined_by, trip.candidates, trip.returned_by) == ("name and arguments", 1, "id")


NAMES = [
    "fetch", "Fetch", "example-fetch", "mcp__example__fetch", "example.fetch", "example_fetch", "exmaple-server-fetch",
    "fetch__example", "mcp_fetch_2",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_client_may_rename_the_tool(name: str) -> None:
    trip = only_trip(f"{LISTED}⇒ asks x\n⇐ uses c1 {name} " + '{"url":"a"}\n' + call(2, "fetch", {"url": "a"}))
    assert (trip.call is not None, trip.joined_by) == (True, "name and arguments")


def test_a_name_may_be_cut_at_64_letters() -> None:
    tool = "read_the_whole_text_of_a_document_by_its_number"
    cut = f"mcp__a_server_with_a_long_name__{tool}"[:64]
    assert not cut.endswith("number")
    trip = only_trip(f"⇒ asks x\n⇐ uses c1 {cut} {{}}\n" + call(1, tool, {}))
    assert (trip.call is not None, trip.joined_by) == (True, "name and arguments")


def test_a_name_may_be_cut_and_end_in_a_digest() -> None:
    tool = "read_the_whole_text_of_a_document_by_its_number"
    trip = only_trip(f"⇒ asks x\n⇐ uses c1 mcp__example__{tool[:30]}_3fa9c1 {{}}\n" + call(1, tool, {}))
    assert (trip.call is not None, trip.joined_by) == (True, "name and arguments")


@pytest.mark.parametrize(
    ("written", "called"),
    [
        ('{"a":1,"b":[2.0]}', {"b": [2], "a": 1.0}),
        ('{"city":"\\u676d\\u5dde"}', {"city": "杭州"}),
        ("{}", None),
        ('{"n":123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
    ],
)
def test_arguments_are_compared_by_their_value(written: str, called: Any) -> None:
    assert only_trip(f"⇒ asks x\n⇐ uses c1 fetch {written}\n" + call(1, "fetch", called)).joined_by == "name and arguments"


def test_arguments_that_were_changed_are_joined_by_the_name_alone() -> None:
    trip = only_trip('⇒ asks x\n⇐ uses c1 fetch {"url":"a"}\n' + call(1, "fetch", {"url": "b"}))
    assert (trip.joined_by, trip.candidates) == ("name", 1)


def test_a_name_that_is_less_sure_needs_more_in_common_than_itself() -> None:
    uses = '⇒ asks x\n⇐ uses c1 todo_fetch_all {"n":1,"url":"a"}\n'
    assert only_trip(uses + call(1, "fetch", {"url": "b"})).call is None
    assert only_trip(uses + call(1, "fetch", {"url": "a"})).joined_by == "name"


def test_a_tool_with_another_name_altogether_is_joined_by_its_arguments() -> None:
    trip = only_trip('⇒ asks x\n⇐ uses c1 web_page {"url":"a"}\n' + call(1, "fetch", {"url": "a"}))
    assert trip.joined_by == "arguments"


def test_no_arguments_are_not_enough_to_join_by() -> None:
    assert only_trip("⇒ asks x\n⇐ uses c1 web_page {}\n" + call(1, "fetch", {})).call is None


def test_a_call_before_the_answer_is_not_the_one() -> None:
    assert only_trip(call(1, "fetch", {}) + "⇒ asks x\n⇐ uses c1 fetch {}").call is None


def test_a_call_after_the_model_was_told_is_not_the_one() -> None:
    assert only_trip("⇒ asks x\n⇐ uses c1 fetch {}\n⇒ returns c1 no\n⇐ says y\n" + call(1, "fetch", {})).call is None


def test_parallel_uses_are_joined_each_with_its_own_call_whatever_their_order() -> None:
    uses = '⇒ asks x\n⇐ uses c1 fetch {"n":1}\n  c2 fetch {"n":2}\n  c3 fetch {"n":3}\n'
    calls = call(3, "fetch", {"n": 3}) + call(1, "fetch", {"n": 1}) + call(2, "fetch", {"n": 2})
    assert [trip.call and trip.call.request.id for trip in trips_of(uses + calls)] == ["1", "2", "3"]


def test_a_use_that_was_changed_does_not_take_the_call_of_another() -> None:
    uses = '⇒ asks x\n⇐ uses c1 fetch {"n":1}\n  c2 fetch {"n":2}\n'
    first, second = trips_of(uses + call(1, "fetch", {"n": 2}) + call(2, "fetch", {"n": 9}))
    assert first.call is not None
    assert second.call is not None
    assert (first.call.request.id, first.joined_by) == ("2", "name")
    assert (second.call.request.id, second.joined_by) == ("1", "name and arguments")


def test_of_equal_calls_the_one_is_chosen_whose_result_the_model_was_told() -> None:
    calls = call(1, "fetch", {}, "old") + call(2, "fetch", {}, "new")
    trip = only_trip("⇒ asks x\n⇐ uses c1 fetch {}\n" + calls + "⇒ returns c1 new\n⇐ says y")
    assert trip.call is not None
    assert (trip.call.request.id, trip.candidates) == ("2", 1)


def test_equal_calls_with_equal_results_are_no_riddle() -> None:
    calls = call(1, "fetch", {}, "same") + call(2, "fetch", {}, "same")
    assert only_trip("⇒ asks x\n⇐ uses c1 fetch {}\n" + calls).candidates == 1


def test_equal_calls_that_nothing_tells_apart_are_counted() -> None:
    calls = call(1, "fetch", {}, "old") + call(2, "fetch", {}, "new")
    assert only_trip("⇒ asks x\n⇐ uses c1 fetch {}\n" + calls).candidates == 2


def test_of_two_servers_with_the_same_tool_the_one_in_the_name_is_meant() -> None:
    account = "⇒ asks x\n⇐ uses c1 two__fetch {}\n" + call(1, "fetch", {})
    telling, other = Account(account, "one"), Account("· 0.0 s later\n" + call(1, "fetch", {}).replace("1", "7"), "two")
    assert telling.model is not None
    for record in other.records[1:]:
        record.at_ns += 20 * MS
    transcript = transcribe(telling.records, telling.model.records, other.records)
    (trip,) = tool_trips(transcript)
    assert trip.call is not None
    assert transcript.captures[trip.call.capture].server == "two"


def test_ids_that_do_not_match_are_joined_by_name_and_arguments() -> None:
    trip = only_trip('⇒ asks x\n⇐ uses c1 fetch {"n":1}\n' + call(1, "fetch", {"n": 1}) + "⇒ returns c9 ok\n⇐ says y")
    assert (trip.returned_by, trip.repeated_id) == ("name and arguments", "c9")


def test_ids_are_joined_each_with_its_own_whatever_their_order() -> None:
    account = "⇒ asks x\n⇐ uses c1 a {}\n  c2 b {}\n⇒ returns c2 two\n  c1 one\n⇐ says y"
    assert [trip.returned and trip.returned.text for trip in trips_of(account)] == ["one", "two"]


def test_an_id_that_comes_again_in_the_next_answer_is_of_that() -> None:
    account = "⇒ asks x\n⇐ uses c1 a {}\n⇒ returns c1 one\n⇐ uses c1 a {}\n⇒ returns c1 two\n⇐ says y"
    assert [trip.returned and trip.returned.text for trip in trips_of(account)] == ["one", "two"]


def test_a_return_that_repeats_in_every_prompt_is_told_in_the_first() -> None:
    account = "⇒ asks x\n⇐ uses c1 a {}\n⇒ returns c1 one\n⇐ says y\n⇒ asks z\n⇐ says w"
    trip = only_trip(account)
    assert trip.returned_in is not None
    assert trip.returned_in.row == 2


def test_without_a_model_there_are_no_tool_trips() -> None:
    assert tool_trips(transcribe(Account(call(1, "fetch", {})).records)) == []


def test_the_join_takes_steps_in_proportion_to_what_was_said() -> None:
    def steps(count: int) -> int:
        uses = "".join(f'\n  c{n} fetch {{"n":{n % 7}}}' for n in range(count))
        account = "⇒ asks x\n⇐ uses c fetch {}" + uses + "\n" + "".join(call(n, "fetch", {"n": n % 7}) for n in range(count))
        transcript = transcript_of(account)
        with counting_calls() as counted:
            trips = tool_trips(transcript)
        assert sum(trip.call is not None for trip in trips) == count
        return counted()

    assert steps(400) < 8 * steps(100), "sixteen times as many, if each were compared with each"


@contextmanager
def counting_calls() -> Iterator[Callable[[], int]]:
    """Count the functions that are called meanwhile, C's too: unlike time, this is the same on a busy machine."""
    called = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield lambda: called
    finally:
        sys.setprofile(before)


# --- Runs ---


def only_run(account: str) -> AgentRun:
    transcript = transcript_of(account)
    (run,) = agent_runs(transcript, tool_trips(transcript))
    return run


def test_a_run_is_from_the_user_s_turn_to_the_answer_that_wants_nothing_done() -> None:
    account = "⇒ asks x\n⇐ uses c1 fetch {}\n" + call(1, "fetch", {}) + "⇒ returns c1 ok\n⇐ says y\n⇒ asks z\n⇐ says w"
    transcript = transcript_of(account)
    runs = agent_runs(transcript, tool_trips(transcript))
    assert [(run.user_text, [call.row for call in run.calls], run.is_whole) for run in runs] == [
        ("x", [1, 3], True),
        ("z", [4], True),
    ]


def test_the_time_of_a_run_is_split_and_comes_to_the_whole() -> None:
    account = (
        '⇒ asks x\n· 12.0 s later\n⇐ uses c1 fetch {}\n· 0.2 s later\n→ tools/call 1 {"name":"fetch","arguments":{}}\n'
        '· 1.1 s later\n← result 1 {"content":[]}\n⇒ returns c1 ok\n· 0.9 s later\n⇐ says y'
    )
    run = only_run(account)
    assert run.model_ns + run.server_ns + run.client_ns == run.took_ns
    assert [round(ns / 1e9, 1) for ns in (run.took_ns, run.model_ns, run.server_ns, run.client_ns)] == [
        14.2,
        12.9,
        1.1,
        0.2,
    ]


def test_calls_that_overlap_count_once() -> None:
    assert covered_ns([(0, 10), (5, 12), (6, 7), (20, 30), (28, 99)], (2, 40)) == 30


def test_what_is_not_finished_is_said() -> None:
    assert not only_run("⇒ asks x\n⇐ uses c1 fetch {}").is_whole


def test_a_call_that_failed_is_asked_again_in_the_same_run() -> None:
    transcript = transcript_of("⇒ asks x\n⇐ 429 slow down\n⇒ asks x\n⇐ says y")
    runs = agent_runs(transcript, [])
    assert [len(run.calls) for run in runs] == [2]
