"""A transcript in numbers, each as a person would count it."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read
from mcpspy.transcript.model import Exchange, Outcome, Transcript
from mcpspy.transcript.stats.statistics import CallNumbers, ServerNumbers, latency, nearest_rank, numbers
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import MS, Dialogue, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

CAPTURES = Path(__file__).parents[3] / "captures"


def so_far(scene: Dialogue) -> Transcript:
    """Return the transcript of a scene that goes on."""
    transcriber = Transcriber()
    for record in scene.records:
        transcriber.feed(record)
    return transcriber.transcript


def counted(scene: Dialogue | Traffic | Transcript, *rows: int) -> ServerNumbers:
    """Return the numbers of a scene with one capture. `rows` are those to count; without any, all."""
    transcript = scene if isinstance(scene, Transcript) else scene.transcript
    chosen = [row for row in transcript.rows if getattr(row, "row", 0) in rows] if rows else None
    (server,) = numbers(transcript, chosen)
    return server


def calls(scene: Dialogue | Traffic | Transcript) -> dict[str, CallNumbers]:
    """Return the client's calls by method and by target."""
    calls_by_method = counted(scene).calls
    return {calls.method: calls for calls in calls_by_method} | {
        part.target or "": part for calls in calls_by_method for part in calls.by_target
    }


def timed(*took_ms: int) -> Dialogue:
    """Make calls that take so long."""
    scene = Dialogue()
    for id, ms in enumerate(took_ms):
        scene.client(tool_call(id)).wait(ms - 1).server(result(id))
    return scene


def test_calls_are_counted_by_method_and_by_tool() -> None:
    scene = Dialogue().client(request(0)).server(result(0))
    scene.client(tool_call(1, "a")).client(tool_call(2, "b")).client(tool_call(3, "a"))
    assert {name: call.count for name, call in calls(scene).items()} == {"tools/list": 1, "tools/call": 3, "a": 2, "b": 1}


def test_the_time_for_which_a_call_was_not_read_is_not_in_its_latency() -> None:
    scene = Dialogue().client(tool_call(1, "a")).wait(999).stall(0).wait(1_999).stall(0, 3_000 * MS).wait(99).server(result(1))
    latency_of_a = calls(scene)["a"].latency
    assert latency_of_a is not None
    assert latency_of_a.max_ns == 100 * MS


def test_resources_are_counted_by_method_alone() -> None:
    scene = Dialogue()
    for id in range(5):
        scene.client(request(id, "resources/read", {"uri": f"file:///{id}"}))
    assert [(call.count, call.by_target) for call in counted(scene).calls] == [(5, ())]


def test_percentiles_are_by_nearest_rank() -> None:
    took = calls(timed(*range(1, 101)))["forecast"].latency
    assert took is not None
    assert [time_ns // MS for time_ns in (took.min_ns, took.p50_ns, took.p90_ns, took.p99_ns, took.max_ns)] == [
        1,
        50,
        90,
        99,
        100,
    ]


def test_of_few_calls_a_percentile_is_one_that_was_measured() -> None:
    took = calls(timed(10, 20, 400))["forecast"].latency
    assert took is not None
    assert [time_ns // MS for time_ns in (took.p50_ns, took.p90_ns, took.p99_ns)] == [20, 400, 400]


@given(st.lists(st.integers(0, 10**12), min_size=1), st.sampled_from([50, 90, 99]))
def test_the_nearest_rank_is_the_least_that_so_many_do_not_exceed(durations_ns: list[int], percent: int) -> None:
    rank = nearest_rank(sorted(durations_ns), percent)
    needed = math.ceil(len(durations_ns) * percent / 100)
    assert sum(1 for duration_ns in durations_ns if duration_ns <= rank) >= needed
    assert sum(1 for duration_ns in durations_ns if duration_ns < rank) < needed


def test_of_nothing_there_is_no_latency() -> None:
    assert latency([]) is None


def test_only_answered_calls_count_for_the_latency() -> None:
    scene = timed(10).client(tool_call(7)).wait(60_000).client(notification("notifications/cancelled", {"requestId": 7}))
    took = calls(scene)["forecast"].latency
    assert took is not None
    assert (took.count, took.max_ns) == (1, 10 * MS)


def test_failures_are_counted_by_kind_and_errors_by_code() -> None:
    scene = Dialogue().client(tool_call(1)).server(error(1, -32602)).client(tool_call(2)).server(error(2, -32602))
    scene.client(tool_call(3)).server(result(3, {"isError": True})).client(tool_call(4)).server(result(4)).client(tool_call(5))
    forecast = calls(so_far(scene))["forecast"]
    assert forecast.outcomes == {Outcome.ERROR: 2, Outcome.TOOL_ERROR: 1, Outcome.OK: 1, Outcome.PENDING: 1}
    assert (forecast.codes, forecast.failed, forecast.pending) == ({"-32602": 2}, 3, 1)


def test_an_error_without_a_code_is_counted_without_one() -> None:
    scene = Dialogue().client(tool_call(1)).server({"jsonrpc": "2.0", "id": 1, "error": "no"})
    assert calls(scene)["forecast"].codes == {"": 1}


def test_a_call_that_was_given_up_and_then_answered_with_an_error_is_cancelled_and_no_error() -> None:
    scene = Dialogue().client(tool_call(1)).client(notification("notifications/cancelled", {"requestId": 1}))
    forecast = calls(scene.server(error(1, -32800)))["forecast"]
    assert (forecast.outcomes, forecast.codes) == ({Outcome.CANCELLED: 1}, {})


def test_a_call_in_two_rounds_is_one_that_took_as_long_as_both() -> None:
    """In the capture `question`, `greet` requires input, and is called again with it."""
    (server,) = numbers(transcribe(read(CAPTURES / "question.mcpspy")))
    (tools,) = [call for call in server.calls if call.method == "tools/call"]
    (greet,) = [target for target in tools.by_target if target.target == "greet"]
    assert (greet.count, greet.exchanges, greet.outcomes) == (1, 2, {Outcome.OK: 1})
    assert greet.latency is not None
    assert greet.exchange_latency is not None
    assert greet.latency.max_ns > greet.exchange_latency.min_ns + greet.exchange_latency.max_ns
    assert (tools.count, tools.exchanges) == (3, 4)


def test_where_every_call_is_one_exchange_nothing_is_said_of_the_wire() -> None:
    forecast = calls(timed(1, 2))["forecast"]
    assert (forecast.exchanges, forecast.exchange_latency) == (2, None)


def test_requests_of_the_server_are_apart() -> None:
    scene = Dialogue().client(tool_call(1)).server(request(1, "roots/list")).client(result(1)).server(result(1))
    server = counted(scene)
    assert ([call.method for call in server.calls], [request.method for request in server.requests]) == (
        ["tools/call"],
        ["roots/list"],
    )


def test_notifications_are_counted_by_method_and_sender() -> None:
    scene = Dialogue().client(notification()).client(tool_call(1, token=9)).server(progress(9)).server(progress(9, 2))
    server = counted(scene)
    assert [(notification.sender, notification.method, notification.count) for notification in server.notifications] == [
        ("client", "notifications/initialized", 1),
        ("server", "notifications/progress", 2),
    ]
    assert calls(scene)["forecast"].progress == 2


def test_bytes_are_those_of_the_payloads() -> None:
    scene = Dialogue().client(request(1)).server(result(1)).server(b"noise\n").stderr(b"1234567\n")
    server, sizes = counted(scene), [len(record.data) for record in scene.records if hasattr(record, "data")]
    assert server.sent_bytes == {"client": sizes[0], "server": sizes[1] + sizes[2]}
    assert (server.calls[0].request_bytes, server.calls[0].response_bytes) == (sizes[0], sizes[1])
    assert (server.log_lines, server.log_bytes, server.malformed) == (1, 8, 1)


def test_answers_that_nobody_asked_for_are_counted() -> None:
    assert counted(Dialogue().server(result(5)).server(error(6))).unmatched == 2


def test_answers_after_the_first_are_counted() -> None:
    assert calls(Dialogue().client(tool_call(1)).server(result(1)).server(result(1)))["forecast"].more_responses == 1


def test_every_message_is_counted_once() -> None:
    scene = timed(1, 2).client(tool_call(7, token=1)).server(progress(1)).server(result(7)).server(result(7)).server(result(99))
    scene.server(b"noise\n").client(notification())
    assert counted(scene).messages == len(scene.transcript.messages)


def test_the_tokens_of_results_stand_with_their_tools() -> None:
    answer = {"content": [{"type": "text", "text": "It rains in Lisbon, and it will go on raining until the evening."}]}
    counts = calls(Dialogue().client(tool_call(1)).server(result(1, answer)).client(request(2)).server(result(2)))
    assert counts["forecast"].tokens == counts["tools/call"].tokens
    assert 5 < (counts["forecast"].tokens or 0) < 30
    assert counts["tools/list"].tokens is None


def test_only_the_rows_that_are_asked_for_are_counted() -> None:
    assert [call.count for call in counted(timed(1, 2, 3), 2).calls] == [1]


def test_each_capture_has_its_own_numbers() -> None:
    scenes = [timed(1).records, timed(1, 2).records]
    assert [number.calls[0].count for number in numbers(transcribe(*scenes))] == [1, 2]


def test_the_phases_of_a_server_that_was_started_are_told() -> None:
    server = counted(Dialogue().client(request(0, "initialize")).server(result(0)).closes())
    assert [phase.name for phase in server.lifecycle.phases] == ["start", "handshake", "shutdown"]


def http_scene() -> Traffic:
    """Return two clients with one session each; one of them has a stream of events that stays open."""
    traffic = Traffic()
    opened_session(traffic, "one", "alpha")
    opened_session(traffic, "two", "beta")
    traffic.post(request(1), session="one").answer(200, result(1))
    traffic.get(session="two").stream().event(notification("notifications/message")).raw(b": keep-alive\r\n\r\n")
    traffic.post(request(1), session="two").answer(404)
    return traffic


def test_what_http_carried_is_counted() -> None:
    http = counted(http_scene()).http
    assert http is not None
    assert (http.transactions, http.connections, http.sessions) == (7, 7, 2)
    assert (http.methods, http.statuses) == ({"GET": 1, "POST": 6}, {200: 4, 202: 2, 404: 1})
    assert (http.streams, http.open_streams, http.events, http.keep_alives) == (1, 1, 1, 1)


def test_each_client_of_an_http_server_is_counted() -> None:
    assert [(client.name, client.calls, client.failed) for client in counted(http_scene()).clients] == [
        ("alpha", 2, 0),
        ("beta", 2, 1),
    ]


def test_a_transaction_without_a_response_has_no_status() -> None:
    traffic = Traffic()
    traffic.post(initialize()).leave()
    http = counted(traffic).http
    assert http is not None
    assert http.statuses == {0: 1}


def test_an_error_that_answers_a_whole_batch_is_one_message() -> None:
    traffic = Traffic()
    batch = [modern(1), modern(2)]
    traffic.post(batch).answer(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})
    server = counted(traffic)
    assert server.messages == len(traffic.transcript.messages)


def test_on_stdio_nothing_is_said_of_http() -> None:
    assert counted(timed(1)).http is None


IDS = st.integers(0, 3)
LINES = st.one_of(
    st.builds(lambda id: (0, request(id)), IDS),
    st.builds(lambda id: (0, tool_call(id, token=id)), IDS),
    st.builds(lambda id: (1, result(id)), IDS),
    st.builds(lambda id: (1, error(id)), IDS),
    st.builds(lambda id: (1, progress(id)), IDS),
    st.builds(lambda id: (1, request(id, "roots/list")), IDS),
    st.builds(lambda text: (1, text + b"\n"), st.binary(max_size=9)),
)


@given(st.lists(LINES, max_size=30))
def test_the_numbers_add_up_whatever_is_said(lines: list[tuple[int, Any]]) -> None:
    scene = Dialogue()
    for stream, line in lines:
        scene.line(stream, line)
    transcript = so_far(scene)
    server = counted(transcript)
    exchanges = [row for row in transcript.rows if isinstance(row, Exchange)]
    all_calls = [*server.calls, *server.requests]
    assert sum(call.count for call in all_calls) == len(exchanges)
    assert sum(call.pending for call in all_calls) == sum(1 for exchange in exchanges if exchange.outcome is Outcome.PENDING)
    assert server.messages == len(transcript.messages)
    assert sum(server.sent_bytes.values()) == sum(message.size for message in transcript.messages)
    assert all(sum(part.count for part in call.by_target) == call.count for call in all_calls if call.by_target)


@pytest.mark.parametrize("side", ["calls", "requests"])
def test_methods_are_in_order(side: str) -> None:
    scene = Dialogue()
    for id, method in enumerate(("b", "c", "a")):
        scene.client(request(id, method)).server(request(id, method))
    assert [calls.method for calls in getattr(counted(scene), side)] == ["a", "b", "c"]
