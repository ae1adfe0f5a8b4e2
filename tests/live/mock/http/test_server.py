"""`mcpspy mock --listen` over Streamable HTTP, as a process: sessions, streams, what it records, how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path

import pytest

from mcpspy.records import CLIENT, SERVER, Close, End, Frame, Open
from mcpspy.transcript.model import Outcome
from mcpspy.wire.sse import parse
from tests.deadlines import DEADLINE_S
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import Asking, HttpMocking
from tests.transcript.dialogue import MS, Dialogue, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

HELLO = result(
    1, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "weather", "version": "1"}}
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMocking]:
    """One of a capture of stdio: a call with progress, one that asks, one that brings news behind its answer."""
    recorded = Dialogue().client(initialize(1)).server(HELLO).client(notification()).server(request(0, "roots/list"))
    recorded.client(result(0, {"roots": []})).client(request(2)).server(result(2, {"tools": []}))
    recorded.client(tool_call(3, "slow", token="t")).server(progress("t", 1)).server(progress("t", 2)).server(result(3))
    recorded.client(tool_call(4, "asks")).server(request(1, "elicitation/create")).client(result(1, {"action": "accept"}))
    recorded.server(result(4, {"content": []}))
    recorded.client(tool_call(5, "changes")).server(notification("notifications/resources/updated", {"uri": "a:b"}))
    recorded.server(result(5)).server(notification("notifications/message", {"data": "later"}))
    capture = written(tmp_path_factory.mktemp("mock") / "weather.mcpspy", recorded.closes().records[:-1])
    with HttpMocking(capture) as mock:
        yield mock


@pytest.fixture
def mock(serving: HttpMocking) -> Iterator[HttpMocking]:
    """Run the same mock for one test."""
    yield serving
    serving.hang_up()


@pytest.fixture
def client(mock: HttpMocking) -> Asking:
    """Make a client that has opened its session."""
    return opened(mock)


def opened(mock: HttpMocking) -> Asking:
    asking = mock.connect()
    assert asking.ask(initialize(0)).answer == {**HELLO, "id": 0}
    return asking


def test_with_events_an_answer_that_would_be_a_body_is_an_event(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO).client(notification())
    recorded.client(request(2)).server(result(2, {"tools": []})).closes()
    with HttpMocking(written(tmp_path / "body.mcpspy", recorded.records[:-1]), "--events") as mock:
        client = mock.connect()
        for ask, answer in ((initialize(0), {**HELLO, "id": 0}), (request(9), result(9, {"tools": []}))):
            told = client.ask(ask)
            assert told.response.headers["Content-Type"] == "text/event-stream"
            assert told.messages == [answer]


# Sessions


def test_initialize_opens_a_session_and_every_client_gets_its_own(mock: HttpMocking) -> None:
    assert len({opened(mock).session, opened(mock).session, ""}) == 3


def test_a_session_is_known_on_every_connection(client: Asking) -> None:
    assert client.again().ask(request(9)).answer == result(9, {"tools": []})


def test_a_session_that_there_never_was_is_not_found(mock: HttpMocking) -> None:
    asking = mock.connect()
    asking.session = "made-up"
    assert asking.ask(request(9)).status == 404


def test_a_request_that_lacks_its_session_is_bad(mock: HttpMocking) -> None:
    assert mock.connect().ask(request(9)).status == 400
    assert [mock.connect().ask(method=method).status for method in ("GET", "DELETE")] == [400, 400]


def test_a_session_that_was_deleted_is_gone(client: Asking) -> None:
    assert client.ask(method="DELETE").status == 200
    assert client.ask(request(9)).status == 404


def test_deleting_a_session_answers_what_still_waits(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO).client(tool_call(2)).wait(60_000).server(result(2)).closes()
    with HttpMocking(written(tmp_path / "slow.mcpspy", recorded.records[:-1]), "--speed", "1") as mock:
        asking = opened(mock)
        waiting = asking.again()
        waiting.send(tool_call(9))
        asking.ask(request("p", "ping")).response.read()
        asking.ask(method="DELETE")
        assert waiting.told().status == 404


def test_deleting_a_session_ends_its_stream(client: Asking) -> None:
    stream = client.again().ask(method="GET")
    client.ask(method="DELETE")
    assert stream.messages == []


def test_clients_walk_through_the_recording_each_for_itself(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO)
    for number in (1, 2):
        recorded.client(tool_call(number + 1)).server(result(number + 1, number))
    with HttpMocking(written(tmp_path / "twice.mcpspy", recorded.closes().records[:-1])) as mock:
        client, other = opened(mock), opened(mock)
        assert [asking.ask(tool_call(9)).answer["result"] for asking in (client, other, client, other)] == [1, 1, 2, 2]


# Which stream


def test_what_is_no_more_than_an_answer_is_json(client: Asking) -> None:
    assert not client.ask(request(9)).is_stream


def test_progress_comes_on_the_response_before_the_answer_under_the_live_token(client: Asking) -> None:
    assert client.ask(tool_call(9, "slow", token=70)).messages == [progress(70, 1), progress(70, 2), result(9)]


def test_what_needs_no_answer_is_accepted(client: Asking) -> None:
    reply = client.ask(notification())
    assert (reply.status, reply.response.read()) == (202, b"")


def test_what_belongs_to_no_request_waits_for_a_stream_and_goes_on_it(client: Asking) -> None:
    client.ask(notification())
    stream = client.again().ask(method="GET")
    assert stream.next()["method"] == "roots/list"


def test_a_question_comes_on_the_response_of_its_call_which_waits_for_the_answer(client: Asking) -> None:
    call = client.ask(tool_call(9, "asks"))
    question = call.next()
    assert question["method"] == "elicitation/create"
    assert client.again().ask(result(question["id"], {"action": "decline"})).status == 202
    assert call.messages == [result(9, {"content": []})]


def test_news_of_the_server_and_what_follows_an_answer_go_on_the_stream(client: Asking) -> None:
    stream = client.again().ask(method="GET")
    assert client.ask(tool_call(9, "changes")).answer == result(9)
    assert [stream.next()["params"], stream.next()["params"]] == [{"uri": "a:b"}, {"data": "later"}]


def test_a_session_has_one_stream_at_a_time(client: Asking) -> None:
    assert [client.again().ask(method="GET").status for _ in range(2)] == [200, 409]


def test_requests_in_a_batch_are_answered_on_one_stream(client: Asking) -> None:
    reply = client.ask([request(7), request("a", "ping"), notification("notifications/none")])
    assert sorted(reply.messages, key=str) == sorted([result(7, {"tools": []}), result("a")], key=str)


def test_a_client_that_leaves_a_legacy_call_has_not_given_it_up(mock: HttpMocking) -> None:
    asking = opened(mock)
    leaving = asking.again()
    question = leaving.ask(tool_call(9, "asks")).next()
    leaving.close()
    assert asking.ask(result(question["id"], {"action": "accept"})).status == 202
    assert asking.ask(request(10)).answer == result(10, {"tools": []})


# As it was recorded over HTTP


def test_statuses_media_types_and_fields_are_those_of_the_recording(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    recorded.post(request(1), session="s").stream(X_Mine="1").event(result(1)).close()
    recorded.post(request(2, "odd/method"), session="s").answer(400, error(2), X_Mine="2")
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        reply = asking.ask(request(9))
        assert (reply.status, reply.is_stream, reply.response.headers["X-Mine"], reply.messages) == (
            200,
            True,
            "1",
            [result(9)],
        )
        reply = asking.ask(request(9, "odd/method"))
        assert (reply.status, reply.response.headers["X-Mine"], reply.answer) == (400, "2", error(9))


def test_json_on_several_lines_is_sent_on_as_many_in_a_body_and_in_an_event(tmp_path: Path) -> None:
    lines = '{\n "jsonrpc": "2.0",\n "id": %d,\n "result": {}\n}'
    recorded = Traffic()
    recorded.post(request(1, "in/body")).answer(200, (lines % 1).encode())
    recorded.post(request(2, "in/event")).stream().event(lines % 2).close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        client = mock.connect()
        assert client.ask(request(8, "in/body")).response.read() == (lines % 8).encode()
        assert parse(client.ask(request(9, "in/event")).response.read()).data == (lines % 9).encode()


def test_what_came_on_the_stream_of_a_get_goes_there_again(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    get = recorded.get(session="s").stream(Access_Control_Allow_Origin="*")
    call = recorded.post(tool_call(1), session="s").stream()
    get.event(notification("notifications/message", {"data": "a log line"}))
    call.event(result(1)).close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        stream = asking.again().ask(method="GET")
        assert asking.ask(tool_call(9)).messages == [result(9)]
        assert stream.next()["params"] == {"data": "a log line"}
        assert stream.response.headers["Access-Control-Allow-Origin"] == "*"


def test_a_call_does_not_wait_for_the_answer_to_a_question_that_its_client_has_no_stream_for(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    get = recorded.get(session="s").stream()
    call = recorded.post(tool_call(1), session="s").stream()
    get.event(request(0, "roots/list"))
    recorded.post(result(0, {"roots": []}), session="s").answer(202)
    call.event(result(1)).close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        assert asking.ask(tool_call(9)).messages == [result(9)]
        assert asking.again().ask(method="GET").next()["method"] == "roots/list"


def test_events_with_ids_can_be_fetched_again_by_who_lost_the_stream(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    call = recorded.post(tool_call(1, token=1), session="s").stream().event("", id="p")
    call.event(progress(1, 1), id="a").event(progress(1, 2), id="b").event(result(1), id="c").close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        reply = asking.ask(tool_call(9, token=9))
        events = [reply.event() for _ in range(4)]
        assert events[0]["data"] == ""
        assert len({event["id"] for event in events}) == 4
        again = asking.again().ask(method="GET", Last_Event_ID=events[1]["id"])
        assert [again.event(), again.event(), again.event()] == [*events[2:], {}]


def test_what_was_said_while_no_stream_was_open_comes_once_to_who_resumes_it(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    get = recorded.get(session="s").stream()
    for number in (1, 2):
        call = recorded.post(tool_call(number), session="s").stream()
        get.event(notification("notifications/message", {"data": number}), id=f"g{number}")
        call.event(result(number), id=f"c{number}").close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        getting = asking.again()
        stream = getting.ask(method="GET")
        asking.ask(tool_call(9)).response.read()
        first = stream.event()
        getting.close()
        asking.ask(request("p", "ping")).response.read()  # by now it is known that the stream has gone
        asking.ask(tool_call(9)).response.read()
        resumed = asking.again().ask(method="GET", Last_Event_ID=first["id"])
        assert json.loads(resumed.event()["data"])["params"] == {"data": 2}
        asking.ask(method="DELETE")
        assert resumed.messages == []


def test_a_server_that_let_its_client_come_for_the_answer_does_so_again(tmp_path: Path) -> None:
    recorded = Traffic()
    opened_session(recorded, "s")
    recorded.post(tool_call(1), session="s").stream().event("", id="p").close()
    recorded.get(session="s", Last_Event_ID="p").stream().event(result(1), id="a").close()
    with HttpMocking(written(tmp_path / "polled.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        reply = asking.ask(tool_call(9))
        first = reply.event()
        assert (first["data"], reply.event()) == ("", {})
        assert asking.again().ask(method="GET", Last_Event_ID=first["id"]).messages == [result(9)]


def test_a_server_that_died_of_a_call_breaks_the_connection_and_knows_the_session_no_more(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO).client(tool_call(2)).exits(3)
    with HttpMocking(written(tmp_path / "crash.mcpspy", recorded.records)) as mock:
        asking = opened(mock)
        with pytest.raises((ConnectionError, IncompleteRead)):
            asking.ask(tool_call(9)).response.read()
        assert asking.again().ask(request(10)).status == 404
        assert opened(mock).session != asking.session
        mock.ends()
    assert mock.topics == ["ended"]


def test_a_recording_without_sessions_gives_none(tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(initialize(0)).answer(200, result(0))
    recorded.post(request(1)).answer(200, result(1, {"tools": []}))
    with HttpMocking(written(tmp_path / "plain.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        assert asking.session == ""
        assert mock.connect().ask(request(9)).answer == result(9, {"tools": []})


# Time


def test_at_speed_1_an_answer_takes_as_long_as_it_was_recorded_and_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO).client(tool_call(2)).wait(299).server(result(2))
    capture = written(tmp_path / "slow.mcpspy", recorded.client(request(3)).server(result(3)).closes().records[:-1])
    with HttpMocking(capture, "--speed", "1") as mock:
        slow = opened(mock)
        waits = slow.again()
        waits.send(tool_call(7))
        assert slow.ask(request(8)).answer == result(8)
        assert waits.told().answer == result(7)
        mock.ends()
    took_ns = {exchange.request.id: exchange.duration_ns or 0 for exchange in mock.transcript.exchanges}
    assert took_ns["8"] < 300 * MS <= took_ns["7"]


# What it writes down


def test_its_capture_reads_like_that_of_a_real_session_and_what_it_says_is_injected(tmp_path: Path) -> None:
    recorded = (
        Dialogue().client(initialize(1)).server(HELLO).client(tool_call(3, token=1)).server(progress(1)).server(result(3))
    )
    with HttpMocking(written(tmp_path / "weather.mcpspy", recorded.closes().records[:-1])) as mock:
        asking = opened(mock)
        asking.ask(notification())
        assert len(asking.ask(tool_call(7, token=7)).messages) == 2
        asking.ask(tool_call(8, "unheard")).response.read()
        status, stdout, stderr = mock.ends()
    assert (status, stdout, stderr.splitlines()[0]) == (0, "", "mcpspy mock: tools/call unheard was never recorded")
    records, transcript = mock.records, mock.transcript
    assert [exchange.outcome for exchange in transcript.exchanges] == [Outcome.OK, Outcome.OK, Outcome.ERROR]
    assert [finding.rule for finding in transcript.findings] == []
    senders = {record.stream: record.sender for record in records if isinstance(record, Open)}
    assert {record.injected for record in records if isinstance(record, Frame) and senders[record.stream] == SERVER} == {True}
    assert {record.injected for record in records if isinstance(record, Frame) and senders[record.stream] == CLIENT} == {False}
    assert {(senders[record.stream], record.by, record.how) for record in records if isinstance(record, Close)} == {
        (SERVER, SERVER, "eof"), (CLIENT, CLIENT, "eof"),
    }  # fmt: skip
    assert mock.topics == ["miss"]
    assert isinstance(records[-1], End)


def test_heads_and_chunks_are_those_that_were_on_the_wire(tmp_path: Path) -> None:
    recorded = Dialogue().client(tool_call(3, token=1)).server(progress(1)).server(result(3)).closes()
    with HttpMocking(written(tmp_path / "weather.mcpspy", recorded.records[:-1]), "--transport", "streamable") as mock:
        wire = mock.wire()
        body = json.dumps(
            modern(3, "tools/call", name="forecast") | {"params": modern(3)["params"] | {"name": "forecast"}}
        ).encode()
        head = f"POST /mcp HTTP/1.1\r\nhOsT:  {mock.host}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        wire.send(head + body)
        output = wire.rest()
        mock.ends()
    opened_heads = [record.head for record in mock.records if isinstance(record, Open)]
    assert opened_heads[0] == head
    assert output.startswith(opened_heads[1])


# How it begins and ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order_with_streams_open(number: int, tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(1)).server(HELLO).closes()
    with HttpMocking(written(tmp_path / "weather.mcpspy", recorded.records[:-1])) as own:
        asking = opened(own)
        asking.again().ask(method="GET")
        assert own.ends(number) == (0, "", "")
    (left,) = [record for record in own.records if isinstance(record, Close) and record.by == "mcpspy"]
    assert left.how == "abort"
    assert isinstance(own.records[-1], End)


def mocked(capture: Path, *options: str) -> tuple[int, str, str]:
    words = [sys.executable, "-m", "mcpspy", "mock", str(capture), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], "other machines can reach"),
        (["--listen", "here"], "--listen takes HOST:PORT"),
        (["--transport", "sse"], "--transport needs --listen"),
        (["--stdio", "--listen", "127.0.0.1:0"], "--stdio cannot be combined with --listen"),
        (["--listen", "127.0.0.1:0", "--transport", "carrier-pigeon"], "--transport is one of streamable, sse"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: list[str], sentence: str, mock: HttpMocking) -> None:
    status, stdout, stderr = mocked(mock.own.with_name("weather.mcpspy"), *options)
    assert (status, stdout) == (2, "")
    assert sentence in stderr


def test_an_address_that_is_taken_is_told(mock: HttpMocking) -> None:
    status, stdout, stderr = mocked(mock.own.with_name("weather.mcpspy"), "--listen", mock.host)
    assert (status, stdout) == (4, "")
    assert f"{mock.host}: Address already in use; name another with --listen" in stderr
