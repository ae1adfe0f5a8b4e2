"""The replay client and a live process: what overlapped overlaps, and what is cancelled is cancelled in time."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from mcpspy.live.upstream.replay_client import run_replay_client
from mcpspy.live.upstream.stdio import StdioClient
from mcpspy.records import SERVER, Frame, Note, Record
from mcpspy.replay.client.player import PlanPlayer, RecordedAnswers
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.matching import RequestMatcher
from tests.transcript.dialogue import Dialogue, cancelled, notification, request, result, tool_call

if TYPE_CHECKING:
    from mcpspy.live.upstream.protocol import ServerListener
    from mcpspy.replay.client.player import Report

SERVER_OF_WORDS = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def hear(): return json.loads(sys.stdin.readline())
"""


class Driven:
    """A capture replayed to a small server. `records` are those of the replay, `lines` what the server wrote and read."""

    def __init__(self, recorded: Dialogue, server: str, **manner: Any) -> None:
        transcript = recorded.transcript
        (plan,) = read_plans(transcript)
        player = PlanPlayer(plan, RecordedAnswers(RequestMatcher(transcript.exchanges, side=SERVER).cursor()), **manner)
        self.records: list[Record] = []
        begin_ns = time.monotonic_ns()

        def now_ns() -> int:
            return time.monotonic_ns() - begin_ns

        def peer(listener: ServerListener) -> StdioClient:
            words = [sys.executable, "-c", SERVER_OF_WORDS + server]
            return StdioClient(
                words,
                sink=self.records.extend,
                now_ns=now_ns,
                listener=listener,
            )

        run_replay_client(player, peer, sink=self.records.extend, now_ns=now_ns, is_process=True)
        self.report: Report = player.report

    @property
    def data(self) -> list[bytes]:
        return [record.data for record in self.records if isinstance(record, Frame) and record.stream < 2]

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.data]


def test_calls_that_overlapped_are_under_way_together() -> None:
    recorded = Dialogue().client(tool_call(1)).client(tool_call(2)).server(result(2)).server(result(1)).closes()
    driven = Driven(recorded, "first, second = hear(), hear()\nfor one in (second, first): say(id=one['id'], result={})")
    assert driven.lines == [tool_call(1), tool_call(2), result(2), result(1)]


def test_what_is_no_message_is_passed_over() -> None:
    recorded = Dialogue().client(tool_call(1)).server(result(1)).client(tool_call(2)).server(result(2)).closes()
    driven = Driven(recorded, "print('Welcome!')\nfor _ in 'ab': say(id=hear()['id'], result={})\nsys.stdin.read()")
    assert (driven.report.sends, driven.report.lost) == (2, "")


def test_a_call_is_given_up_when_it_was() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(199).client(cancelled(1)).client(request(2)).server(result(2)).closes()
    driven = Driven(recorded, "hear(); hear(); say(id=hear()['id'], result={})")
    sent = [record for record in driven.records if isinstance(record, Frame) and record.stream == 0]
    assert driven.lines == [tool_call(1), cancelled(1), request(2), result(2)]
    assert sent[1].at_ns - sent[0].at_ns >= 190_000_000  # 200, but for the way from the clock to the record


def test_a_question_that_was_never_recorded_is_noted_and_refused() -> None:
    recorded = Dialogue().client(tool_call(1)).server(result(1)).closes()
    driven = Driven(recorded, "one = hear(); say(id=7, method='sampling/createMessage'); hear(); say(id=one['id'], result={})")
    assert [record.topic for record in driven.records if isinstance(record, Note)] == ["miss"]
    assert driven.lines[2]["error"]["code"] == -32601
    assert driven.lines[3] == result(1)


def test_a_batch_of_answers_is_heard() -> None:
    recorded = Dialogue().client(tool_call(1)).client(tool_call(2)).server(result(1)).server(result(2)).client(notification())
    server = "print(json.dumps([{'jsonrpc': '2.0', 'id': hear()['id'], 'result': {}} for _ in 'ab']), flush=True)\nhear()"
    driven = Driven(recorded.closes(), server)
    assert driven.report.late == []
    assert json.loads(driven.data[-1]) == notification()


def test_a_server_that_reads_no_more_is_gone_and_what_it_did_not_take_was_not_sent() -> None:
    recorded = Dialogue().client(tool_call(1)).server(result(1)).wait(600).client(tool_call(2)).server(result(2)).closes()
    driven = Driven(recorded, "import os; say(id=hear()['id'], result={}); os._exit(5)", speed=1.0)
    assert driven.report.lost == "the server exited with status 5"
    assert [message.row for message in driven.report.unsent] == [2]
