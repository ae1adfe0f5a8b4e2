"""A tap with intercepts: the receiver gets what the capture says, no other byte changes, and nothing hangs."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live import waiting_messages
from mcpspy.live.stdio import intercepting
from mcpspy.live.stdio.intercepting import InterceptingPump
from mcpspy.live.stdio.pump import Readiness
from mcpspy.platform.descriptors import POLLIN
from mcpspy.records import CLIENT, SERVER, Exit, Frame, Intercept, Note, Record
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import Exchange, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.intercept.making import call, intercepts, line, result
from tests.live.client import Client, stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpspy.records import Side

ANSWERER = """
import json, sys
for text in sys.stdin:
    try:
        message = json.loads(text)
    except ValueError:
        continue
    if "method" in message and "id" in message:
        answer = {"content": [{"type": "text", "text": json.dumps(message["params"])}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""
SERVER_COMMAND = [sys.executable, "-I", "-S", "-c", ANSWERER]
FAR_NS = 10**15
ID = re.compile(rb'"id": \d+')


# With real programs


def played(
    *options: str, calls: Sequence[bytes] = (call(1), call(2, tool="other"))
) -> tuple[list[bytes], list[Record], Transcript]:
    """Send calls through a tap with these options; return what the client got, the records and the transcript."""
    with Client(SERVER_COMMAND, *options) as client:
        for data in calls:
            client.send(data)
        client.close(client.stdin)
        lines = client.rest().splitlines(keepends=True)
        client.wait()
        records = client.records()
    return lines, records, transcribe(records)


def rows_of(transcript: Transcript) -> list[Exchange]:
    return [row for row in transcript.rows if isinstance(row, Exchange)]


def sent_on(records: list[Record], number: int) -> list[bytes]:
    """Return the frames that the receiver of a stream got, as the capture says."""
    frames = [record for record in records if isinstance(record, Frame) and record.stream == number]
    return [data for frame in frames if (data := frame.data if frame.forwarded is None else frame.forwarded)]


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("remove params.arguments.city", "the message has no params.arguments.city"),
        ("set params.name.city=1", "params.name.city has no place in the message"),
        ('set $.params.name="search"', "$.params.name has this value already"),
        ("remove params.arguments", ""),
        ("set params.extra=1", ""),
    ],
)
def test_an_intercept_that_changes_nothing_says_so_once(action: str, why: str) -> None:
    text = f"tool:search => {action}"
    with Client(SERVER_COMMAND, "--intercept", text) as client:
        client.send(call(1))
        client.send(call(2))
        client.close(client.stdin)
        client.rest()
        said = client.rest(client.stderr).decode()
        client.wait()
        records = client.records()
    words = f"{why}, so the intercept {text} changed nothing"
    notes = [record.text for record in records if isinstance(record, Note) and record.topic == "not-intercepted"]
    assert (said.count(f"mcpspy: {words}\n"), notes) == ((1, [words]) if why else (0, []))
    assert [record.sent for record in records if isinstance(record, Intercept)] == ([] if why else ["changed", "changed"])


def test_what_changes_nothing_does_not_count() -> None:
    calls = [call(1), call(2, city="Rome"), call(3, city="Rome")]
    _, records, _ = played("--intercept", "tool:search => remove params.arguments.city max=1", calls=calls)
    assert sent_on(records, 0) == [call(1), call(2), calls[2]]


@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        (["tool:search => duplicate"], call(1)),
        (["tool:search => duplicate", 'tool:search => set params.name="x"'], call(1, tool="x")),
        (['tool:search => set params.name="x"', "id:1 => duplicate"], call(1, tool="x")),
        (["tool:search => delay 50ms", "tool:search => duplicate"], call(1)),
    ],
)
def test_a_call_is_sent_twice_and_answered_once(texts: list[str], sent: bytes) -> None:
    options = [word for text in texts for word in ("--intercept", text)]
    lines, records, transcript = played(*options, calls=[call(1)])
    assert sent_on(records, 0) == [sent, sent]
    kept = [record.data for record in records if isinstance(record, Frame) and record.forwarded == b""]
    assert lines == kept  # the server answers both alike
    acts = [
        (record.action, record.sent) for record in records if isinstance(record, Intercept) and record.action == "duplicate"
    ]
    assert acts == [("duplicate", "unchanged"), ("duplicate", "nothing")]
    assert all_findings(transcript) == []


@pytest.mark.parametrize("then", ["drop", "error -32000", "disconnect"])
def test_what_is_not_sent_is_not_sent_twice(then: str) -> None:
    _, records, _ = played("--intercept", "tool:search => duplicate", "--intercept", f"tool:search => {then}", calls=[call(1)])
    assert sent_on(records, 0) == []


def test_a_delayed_call_is_overtaken_by_others_and_answered_later() -> None:
    lines, records, transcript = played("--intercept", "tool:search => delay 300ms")
    assert [b'"id": 2' in text for text in lines] == [True, False]
    first, second = rows_of(transcript)
    assert (first.duration_ns or 0) >= 300_000_000 > (second.duration_ns or 0)
    (record,) = [record for record in records if isinstance(record, Intercept)]
    (frame,) = [frame for frame in records if isinstance(frame, Frame) and frame.number == record.frame]
    assert frame.data == call(1)
    assert first.request.flaws == ("intercepted: delay 0.3 s",)


def test_an_error_is_answered_and_the_server_never_sees_the_call() -> None:
    lines, records, transcript = played("--intercept", 'tool:search => error -32000 "try later"')
    assert sorted(lines) == sorted(sent_on(records, 1))
    assert sent_on(records, 0) == [call(2, tool="other")]
    assert stream(records, 0) == call(1) + call(2, tool="other")
    first, _ = rows_of(transcript)
    assert first.response is not None
    assert first.response.error == {"code": -32000, "message": "try later"}


def test_a_file_answers(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"content":[],\n"isError":true}', encoding="utf-8")
    lines, _, _ = played("--intercept", f"tool:search => respond {tmp_path / 'answer.json'}")
    assert b'{"jsonrpc":"2.0","id":1,"result":{"content":[], "isError":true}}\n' in lines


def test_a_recorded_row_answers() -> None:
    with Client(SERVER_COMMAND) as client:
        client.send(call(5, q="earlier"))
        client.line()
        capture = client.capture
    lines, _, _ = played("--intercept", f"tool:search => respond {capture}:1", calls=[call(6)])
    assert [b"earlier" in text and b'"id": 6' in text for text in lines] == [True]


def test_the_server_gets_the_value_that_is_set() -> None:
    lines, records, transcript = played("--intercept", 'tool:search => set params.arguments.q="x"', calls=[call(1, q="y")])
    assert sent_on(records, 0) == [call(1, q="x")]
    assert stream(records, 0) == call(1, q="y")
    assert rows_of(transcript)[0].request.params["arguments"] == {"q": "x"}
    assert b'"x' in lines[0]


def test_an_answer_waits_for_the_next_one() -> None:
    lines, records, transcript = played("--intercept", "tool:search => reorder max=1", calls=[call(1), call(2), call(3)])
    ids = [json.loads(data)["id"] for data in lines]
    assert (ids[0], sorted(ids)) == (2, [1, 2, 3])
    assert [record.action for record in records if isinstance(record, Intercept)] == ["reorder"]
    assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


def test_an_answer_that_no_other_follows_goes_on_and_the_next_can_be_reordered() -> None:
    with Client(SERVER_COMMAND, "--intercept", "tool:search => reorder 500ms max=1") as client:
        client.send(call(1))
        assert json.loads(client.line())["id"] == 1
        client.send(call(2) + call(3))
        assert [json.loads(client.line())["id"] for _ in range(2)] == [3, 2]
        client.close(client.stdin)
        client.wait()
        actions = [record.action for record in client.records() if isinstance(record, Intercept)]
    assert actions == ["reorder, no other answer came", "reorder"]


def test_a_connection_is_closed_within_an_answer() -> None:
    lines, records, transcript = played("--intercept", "tool:search => disconnect 20", calls=[call(1)])
    assert lines == [b'{"jsonrpc": "2.0", "id"'[:20]]
    assert sent_on(records, 1) == lines
    assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


def test_a_server_is_killed() -> None:
    lines, records, transcript = played("--intercept", "tool:search => kill", calls=[call(1)])
    (exit,) = [record for record in records if isinstance(record, Exit)]
    assert (lines, exit.signal, all_findings(transcript)) == ([], "SIGKILL", [])


def test_stderr_and_what_is_no_message_pass() -> None:
    lines, records, _ = played("--intercept", "method:* => drop", calls=[b"no json\n", call(1)])
    assert (lines, sent_on(records, 0)) == ([], [b"no json\n"])


def test_the_same_seed_does_the_same() -> None:
    calls = [call(number) for number in range(30)]
    options = ("--seed", "7", "--intercept", "tool:search => drop p=0.5")
    first, second = (played(*options, calls=calls) for _ in range(2))
    acts = [[record.frame for record in records if isinstance(record, Intercept)] for _, records, _ in (first, second)]
    assert first[0] == second[0]
    assert 0 < len(acts[0]) == len(acts[1]) < 30


@pytest.mark.grid(5)
@pytest.mark.parametrize("side", ["", "kind:result "])
@pytest.mark.parametrize(
    "action",
    [
        "delay 200ms", "drop", "error -32000", "truncate 9", 'garbage "hm"', "duplicate", "set params.name=7",
        "set result.content=7", "remove result.content", "remove params.name", "disconnect", "stall", "kill", "disconnect 9",
        "reorder 50ms",
    ],
)  # fmt: skip
def test_nobody_is_blamed_for_what_an_intercept_did(action: str, side: str) -> None:
    lines, records, transcript = played("--intercept", f"{side}tool:search => {action}")
    if f"{side}{action}" == "kind:result remove params.name":  # there is none
        assert not any(isinstance(record, Intercept) for record in records)
        return
    assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}
    marked = {row.row for row in rows_of(transcript) if any("intercepted" in flaw for flaw in row.request.flaws)}
    assert not any(marked.intersection(finding.rows) for finding in all_findings(transcript))
    assert sorted(lines) == sorted(sent_on(records, 1))[: len(lines)]


def test_a_wrong_intercept_is_refused_before_the_server_starts() -> None:
    with Client(["/no/such/server"], "--intercept", "tool:search => delay") as client:
        assert b"column 21: the time is missing" in client.rest(client.stderr)
        assert client.wait() == 2


def test_intercepts_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("# all\n\nmethod:* => drop\n", encoding="utf-8")
    assert played("--intercepts", str(tmp_path / "faults"))[0] == []


# Between pipes of a test


class Channel:
    """The two pumps of a tap with intercepts between four pipes. Nothing that is delayed is sent before `flush`."""

    def __init__(self, *texts: str) -> None:
        self.records: list[Record] = []
        self._ends: dict[int, int] = {}
        self.ready = Readiness()
        self.done: list[str] = []
        self._bell, ringer = os.pipe()
        os.write(ringer, b"!")
        self.ready.watch(self._bell, POLLIN, self._ring)
        self.to_server, self.client_end, self.server_reads = self._pump(0, CLIENT)
        self.to_client, self.server_end, self.client_reads = self._pump(1, SERVER)
        decide = intercepts(*texts).decide
        self.to_server.connect(decide, self.to_client, self.done.append)
        self.to_client.connect(decide, self.to_server, self.done.append)
        self._fds = [self._bell, ringer, self.client_end, self.server_reads, self.server_end, self.client_reads]

    def _pump(self, number: int, writer: Side) -> tuple[InterceptingPump, int, int]:
        source, ours = os.pipe()
        reads, target = os.pipe()
        os.set_blocking(reads, False)
        self._ends |= {end: os.fstat(end).st_ino for end in (source, target)}
        pump = InterceptingPump(
            number, source, target, writer=writer, reader=SERVER if writer == CLIENT else CLIENT,
            sink=self.records.extend, ready=self.ready, begin_ns=0, on_change=lambda: None,
        )  # fmt: skip
        return pump, ours, reads

    def _ring(self, events: int) -> None:
        self.ready.interrupted = True

    def write(self, fd: int, data: bytes) -> None:
        os.write(fd, data)
        self.ready.turn()

    def flush(self) -> None:
        """Let all time pass."""
        for _ in range(2):
            for pump in (self.to_server, self.to_client):
                if pump.due_ns:
                    pump.on_time(FAR_NS)
            self.ready.turn()

    def read(self, fd: int) -> bytes:
        received = b""
        while True:
            self.ready.turn()
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                return received
            if not data:
                return received
            received += data

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        for fd, pipe in self._ends.items():  # a pump closes its target itself if it gets to its end
            with suppress(OSError):
                if os.fstat(fd).st_ino == pipe:
                    os.close(fd)


SCENARIO = st.lists(
    st.one_of(
        st.builds(lambda id, tool: (0, call(id, tool)), st.integers(1, 4), st.sampled_from(["search", "other"])),
        st.builds(lambda id: (1, result(id)), st.integers(1, 4)),
        st.sampled_from([
            (0, b"no json\n"),
            (1, b"noise\n"),
            (1, line({"method": "notifications/message", "params": {}})),
            (0, line({"method": "notifications/cancelled", "params": {"requestId": 1}})),
        ]),
    ),
    max_size=12,
)  # fmt: skip
TEXTS = st.lists(
    st.builds(
        "{}tool:search => {}{}".format,
        st.sampled_from(["", "kind:result ", "kind:request "]),
        st.sampled_from([
            "delay 1s", "delay 1s..3s", "drop", "error -32000", "respond x", "set params.arguments.q=1", "set result.a=1",
            "remove result.content", "truncate 9", 'garbage "hm"', "stall",
        ]),
        st.sampled_from(["", " p=0.5", " nth=2", " max=1"]),
    ),
    max_size=3,
)  # fmt: skip


@given(SCENARIO, TEXTS, st.integers(1, 60))
def test_the_capture_has_what_was_received_and_what_was_sent(
    scenario: list[tuple[int, bytes]], texts: list[str], size: int
) -> None:
    channel = Channel(*texts)
    try:
        for number, data in scenario:
            for at in range(0, len(data), size):
                channel.write((channel.client_end, channel.server_end)[number], data[at : at + size])
        channel.flush()
        got = [channel.read(channel.server_reads), channel.read(channel.client_reads)]
        for number in (0, 1):
            frames = [record for record in channel.records if isinstance(record, Frame) and record.stream == number]
            assert b"".join(frame.data for frame in frames if not frame.injected) == b"".join(
                data for sender, data in scenario if sender == number
            )
            assert sorted(got[number].splitlines(keepends=True)) == sorted(sent_on(channel.records, number))
        if not any("stall" in text for text in texts):
            # A message waits behind a delayed one with its id: whatever has the id of a search may be overtaken.
            ids = [ID.search(data) for sender, data in scenario if sender == 0 and b"search" in data]
            others = [
                data for sender, data in scenario
                if sender == 0 and b"cancelled" not in data and not any(id and id[0] in data for id in ids)
            ]  # fmt: skip
            assert [data for data in got[0].splitlines(keepends=True) if data in others] == others
    finally:
        channel.close()


@pytest.mark.parametrize("ends", [b"", b"half a line"])
def test_what_is_delayed_is_sent_before_the_end(ends: bytes) -> None:
    channel = Channel("tool:search => delay 1s")
    try:
        channel.write(channel.client_end, call(1) + ends)
        os.close(channel.client_end)
        channel._fds.remove(channel.client_end)
        channel.ready.turn()
        assert (channel.to_server.over, channel.to_server.finished) == (True, False)
        channel.flush()
        assert channel.read(channel.server_reads) == ends + call(1)
        assert channel.to_server.finished
    finally:
        channel.close()


def test_a_cancellation_does_not_overtake_its_request() -> None:
    channel = Channel("tool:search => delay 1s")
    try:
        cancel = line({"method": "notifications/cancelled", "params": {"requestId": 1}})
        channel.write(channel.client_end, call(1) + cancel + call(2, "other"))
        assert channel.read(channel.server_reads) == call(2, "other")
        channel.flush()
        assert channel.read(channel.server_reads) == call(1) + cancel
    finally:
        channel.close()


def test_nothing_more_is_read_while_much_is_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_messages, "MAX_DELAYED", 2)
    channel = Channel("tool:search => delay 1s")
    try:
        for id in range(4):
            channel.write(channel.client_end, call(id))
        assert sum(isinstance(record, Frame) for record in channel.records) == 2
        channel.flush()
        channel.flush()
        assert channel.read(channel.server_reads) == b"".join(call(id) for id in range(4))
    finally:
        channel.close()


def test_a_message_that_is_too_long_passes_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intercepting, "MAX_MESSAGE_BYTES", 1 << 20)
    channel = Channel("tool:search => drop")
    try:
        long = call(1, q="x" * (3 << 20))
        received = b""
        for at in range(0, len(long), 1 << 14):
            channel.write(channel.client_end, long[at : at + (1 << 14)])
            received += channel.read(channel.server_reads)
        assert received == long
        assert [record.topic for record in channel.records if isinstance(record, Note)] == ["not-intercepted"]
    finally:
        channel.close()
