"""A replay against a mock of the same capture: the mock generates new ids, and the replay sends them back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from tests.replay.client.plan_playing import Player
from tests.transcript.dialogue import Dialogue, notification, request, result

MOST_TURNS = 400
HEX = "e8c80f95d2aafecc8324fa2f973d3400"


class Talk:
    """Draw a client that gets tasks, cursors and states, and sends them back."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.recorded = Dialogue()
        self.id = 0
        self.tasks: list[str] = []
        self.cursors: list[str] = []
        self.states: list[tuple[str, int]] = []

    def asks(self, method: str, params: Any, answer: Any) -> None:
        self.recorded.client(request(self.id, method, params)).server(result(self.id, answer))

    def goes_on(self) -> None:
        self.id += 1
        match self.draw(st.sampled_from(["call", "poll", "status", "list", "next", "state", "retry"])):
            case "poll" if self.tasks:
                task = self.draw(st.sampled_from(self.tasks))
                self.asks("tasks/get", {"taskId": task}, {"taskId": task, "status": "working"})
            case "status" if self.tasks:
                params = {"taskId": self.draw(st.sampled_from(self.tasks)), "status": "working"}
                self.recorded.server(notification("notifications/tasks/status", params))
            case "list":
                self.cursors.append(self.draw(st.sampled_from(["redacted-aaaaaaaaaaaa", f"c{self.id}", "abc"])))
                self.asks("tools/list", None, {"tools": [], "nextCursor": self.cursors[-1]})
            case "next" if self.cursors:
                self.asks("tools/list", {"cursor": self.cursors[-1]}, {"tools": [], "nextCursor": f"c{self.id}"})
                self.cursors.append(f"c{self.id}")
            case "state":
                state = self.draw(st.sampled_from([f"s{self.id}", "state"]))
                self.states.append((state, self.id))
                needs = {
                    "resultType": "input_required",
                    "requestState": state,
                    "inputRequests": {"who": {"method": "roots/list"}},
                }
                self.asks("tools/call", self._call(self.id), needs)
            case "retry" if self.states:
                state, number = self.states.pop()
                issued = {"requestState": state, "inputResponses": {"who": {"roots": []}}}
                self.asks("tools/call", self._call(number) | issued, {"content": []})
            case _:
                self.tasks.append(self.draw(st.sampled_from([f"t{self.id}", f"{HEX[:-2]}{self.id:02d}"])))
                self.asks(
                    "tools/call", self._call(self.id) | {"task": {}}, {"task": {"taskId": self.tasks[-1], "status": "working"}}
                )

    @staticmethod
    def _call(number: int) -> dict[str, Any]:
        return {"name": "x", "arguments": {"n": number}}


@st.composite
def talks(draw: st.DrawFn) -> Dialogue:
    talk = Talk(draw)
    for _ in range(draw(st.integers(1, 10))):
        talk.goes_on()
    return talk.recorded.closes()


@given(talks())
def test_the_new_ids_of_a_mock_come_back_to_it(recorded: Dialogue) -> None:
    player = Player(recorded, carries=True)
    replies = read_replies(recorded.transcript)
    script, decoder = Script(replies, RequestMatcher(replies.exchanges).cursor()), Decoder(CaptureInfo(0))
    sent = player.due()
    for _ in range(MOST_TURNS):
        frames = [Frame(0, 0, 0, json.dumps(line).encode() + b"\n") for line in sent]
        messages = [message for frame in frames for message in decoder.feed(frame) if isinstance(message, Message)]
        sends = [send for message in messages for send in script.feed(message) if script.is_due(send)]
        assert [send.miss.sentence for send in sends if send.miss] == []
        sent = [message for send in sends if send.data for message in player.hears(send.data)]
        if not sent:
            if player.is_over:
                break
            player.now_ns = max(player.player.next_ns or 0, player.now_ns)
            sent = player.due()
    assert player.is_over
    assert (player.report.late, player.report.unsent) == ([], [])
