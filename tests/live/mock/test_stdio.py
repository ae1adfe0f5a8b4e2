"""`mcpspy mock` on stdio, as a process: when it answers, what it survives, what it records, and how it ends."""

import signal
from pathlib import Path

import pytest

from mcpspy.records import End, Frame, Note, Open
from mcpspy.transcript.model import Outcome
from tests.live.mock.mocking import Mocking, written
from tests.transcript.dialogue import MS, Dialogue, cancelled, notification, request, result, tool_call


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A list, a call that takes 300 ms, one in which the server asks; the server exits with 5."""
    recorded = Dialogue().client(request(1)).server(result(1, {"tools": []}))
    recorded.client(tool_call(2, "slow")).wait(299).server(result(2))
    recorded.client(tool_call(3, "asks")).server(request(0, "roots/list")).client(result(0)).server(result(3))
    return written(tmp_path / "weather.mcpspy", recorded.client_leaves().exits(5).ends().records[:-1])


HOSTILE = [
    b"\n",
    b"not JSON\n",
    b"\xff\xfe\x00\n",
    b"[]\n",
    b'{"id":1}\n',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}\n',
    b'{"jsonrpc":"2.0","id":null,"result":7}\n',
    b'{"method":"notifications/cancelled","params":{"requestId":[]}}\n',
    b'{"method":"tools/call","id":1.5,"params":"x"}\n',
    b'{"method":"tools/call","id":"a","params":{"name":{"b":' + b"[" * 20_000 + b"]" * 20_000 + b"}}}\n",
    b'{"id":9,"method":"\\ud800"}\n',
    b"{" * 100_000 + b"\n",
]


def test_hostile_lines_do_not_end_it(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(*HOSTILE, request("last"))
        status, lines, stderr = mock.ends()
    assert (status, "Traceback" in stderr) == (5, False)
    assert b'{"jsonrpc": "2.0", "id": "last", "result": {"tools": []}}' in lines


def test_a_line_that_comes_in_pieces_is_one_request(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(b'{"jsonrpc":"2.0","id":4,', b'"method":"tools/list","params":{"_meta":{"x":"', b"y" * 3_000_000, b'"}}}\n')
        assert mock.told() == result(4, {"tools": []})


def test_a_last_line_without_its_end_is_answered(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(b'{"jsonrpc":"2.0","id":4,"method":"tools/list"}')
        assert mock.ends()[1] == [b'{"jsonrpc": "2.0", "id": 4, "result": {"tools": []}}']


def test_it_ends_with_the_recorded_status_when_its_input_ends(capture: Path) -> None:
    with Mocking(capture) as mock:
        assert mock.ends() == (5, [], "")


def test_a_server_that_crashed_crashes_at_the_same_call(tmp_path: Path) -> None:
    capture = written(
        tmp_path / "crash.mcpspy", Dialogue().client(request(1)).server(result(1)).client(tool_call(2)).exits(3).records
    )
    with Mocking(capture) as mock:
        mock.send(request(1), tool_call(2))
        assert mock.told() == result(1)
        assert mock.process.wait(30) == 3


# Time


def test_at_speed_1_an_answer_takes_as_long_as_it_was_recorded(capture: Path) -> None:
    with Mocking(capture, "--speed", "1") as mock:
        mock.send(tool_call(7, "slow"))
        assert mock.told() == result(7)
        mock.ends()
    (exchange,) = mock.transcript.exchanges
    assert exchange.duration_ns is not None
    assert exchange.duration_ns >= 300 * MS


def test_at_speed_2_it_takes_half_as_long(capture: Path) -> None:
    with Mocking(capture, "--speed", "2") as mock:
        mock.send(tool_call(7, "slow"), request(8))
        assert [mock.told()["id"], mock.told()["id"]] == [8, 7]
        mock.ends()
    slow = mock.transcript.exchanges[0]
    assert slow.duration_ns is not None
    assert slow.duration_ns >= 150 * MS


def test_what_is_given_up_before_it_is_due_is_not_said(capture: Path) -> None:
    with Mocking(capture, "--speed", "1") as mock:
        mock.send(tool_call(7, "slow"), cancelled(7))
        assert mock.ends()[1] == []


def test_what_is_due_soon_after_the_end_of_input_is_still_said(capture: Path) -> None:
    with Mocking(capture, "--speed", "1") as mock:
        mock.send(tool_call(7, "slow"))
        assert len(mock.ends()[1]) == 1


# Batches


def test_what_is_asked_in_a_batch_is_answered_in_one_once_nothing_is_missing(capture: Path) -> None:
    with Mocking(capture, "--speed", "10") as mock:
        mock.send(
            [tool_call(7, "slow"), notification(), request(8), request("p", "ping"), tool_call(9, "unheard")], request(10)
        )
        assert mock.told() == result(10, {"tools": []})
        answers = mock.told()
        assert {answer["id"]: "result" in answer for answer in answers} == {7: True, 8: True, "p": True, 9: False}
        assert mock.ends()[1] == []


def test_what_a_server_asks_for_a_member_of_a_batch_comes_before_it_is_answered(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send([tool_call(7, "asks"), request(8)])
        message = mock.told()
        assert message["method"] == "roots/list"
        mock.send(result(message["id"]))
        assert mock.told() == [result(8, {"tools": []}), result(7)]


def test_a_batch_does_not_wait_for_what_its_client_gave_up(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send([tool_call(7, "asks"), request(8)])
        assert mock.told()["method"] == "roots/list"
        mock.send(cancelled(7))
        assert mock.told() == [result(8, {"tools": []})]


def test_a_recorded_batch_is_served_to_who_asks_in_one_and_to_who_does_not(tmp_path: Path) -> None:
    recorded = Dialogue().client([tool_call(1, "a"), tool_call(2, "b"), tool_call(3, "silent")])
    capture = written(tmp_path / "batch.mcpspy", recorded.server([result(2, {"b": 1}), result(1, {"a": 1})]).records)
    with Mocking(capture) as mock:
        mock.send([tool_call(7, "b"), tool_call(8, "a"), tool_call(9, "silent")], tool_call(9, "a"))
        assert mock.told() == [result(7, {"b": 1}), result(8, {"a": 1})]
        assert mock.told() == result(9, {"a": 1})
        assert mock.ends()[1] == []


# Much


def test_a_client_that_asks_much_before_it_reads_gets_all_of_it(capture: Path) -> None:
    count = 20_000
    with Mocking(capture, "--quiet") as mock:
        requests = "".join(f'{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}\n' for id in range(count))
        stdout, _ = mock.process.communicate(requests.encode(), timeout=60)
    assert stdout.count(b"\n") == count


# What it writes down


def test_its_capture_is_whole_and_says_who_said_what(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(request(1), tool_call(2, "asks"))
        assert mock.told() == result(1, {"tools": []})
        message = mock.told()
        mock.send(result(message["id"]))
        assert mock.told() == result(2)
        mock.ends()
    transcript = mock.transcript
    assert [(exchange.method, exchange.outcome) for exchange in transcript.exchanges] == [
        ("tools/list", Outcome.OK),
        ("tools/call", Outcome.OK),
        ("roots/list", Outcome.OK),
    ]
    assert isinstance(mock.records[-1], End)
    assert transcript.captures[0].complete
    assert transcript.captures[0].server == "weather-mock"


def test_all_that_it_says_is_marked_as_injected_and_nothing_else(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(request(1), b"noise\n")
        mock.told()
        mock.ends()
    assert {(record.stream, record.injected) for record in mock.records if isinstance(record, Frame)} == {(0, False), (1, True)}
    assert {(record.name, record.injected) for record in mock.records if isinstance(record, Open)} == {
        ("stdin", False),
        ("stdout", True),
    }


def test_a_miss_is_told_to_stderr_and_to_the_capture(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(tool_call(1, "sl\u202eow"))
        assert mock.told()["error"]["data"]["nearest"]["target"] == "slow"
        stderr = mock.ends()[2]
    (note,) = [record for record in mock.records if isinstance(record, Note)]
    assert note.topic == "miss"
    assert note.text == "tools/call sl\u202eow was never recorded; the nearest is row 2, tools/call slow"
    assert stderr == "mcpspy mock: tools/call sl\\u202eow was never recorded\n  nearest  row 2, tools/call slow\n"


def test_a_mock_of_a_mock_says_the_same(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(request(1))
        mock.ends()
    with Mocking(mock.own) as again:
        again.send(request(9))
        assert again.told() == result(9, {"tools": []})
        assert again.ends()[0] == 5


# How it is sent away


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_its_capture_is_whole(number: signal.Signals, capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(request(1))
        mock.told()
        mock.process.send_signal(number)
        assert mock.process.wait(30) == 128 + number
    assert mock.transcript.captures[0].complete


def test_it_ends_when_nobody_reads_it(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(request(1))
        mock.told()
        assert mock.process.stdout is not None
        mock.process.stdout.close()
        assert mock.process.wait(30) == 5


def test_notifications_are_not_answered(capture: Path) -> None:
    with Mocking(capture) as mock:
        mock.send(notification(), notification("notifications/unheard-of"), request(3))
        assert mock.told() == result(3, {"tools": []})
