"""Rows since a time, and the findings about them."""

import pytest

from mcpspy.records import CLIENT, SERVER, Close, End, Exit, Frame, Open, Record, Spawn
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.model import ChannelEvent, Exchange, Log, Numbered, Transcript
from mcpspy.transcript.recent import RecentRows
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.capture.making import header

SECOND_NS = 10**9


def ask(second: float, id: int, method: str = "tools/list", params: str = "{}") -> Frame:
    return line_frame(
        0, second, b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' % (id, method.encode(), params.encode())
    )


def answer(second: float, id: int, result: str = "{}") -> Frame:
    return line_frame(1, second, b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (id, result.encode()))


def line_frame(stream: int, second: float, data: bytes) -> Frame:
    at_ns = int(second * SECOND_NS)
    return Frame(stream, at_ns, at_ns, data)


def opened() -> list[Record]:
    return [
        header(),
        Open(at_ns=1, stream=0, sender=CLIENT, name="stdin"),
        Open(at_ns=1, stream=1, sender=SERVER, name="stdout"),
        Open(at_ns=1, stream=2, sender=SERVER, name="stderr"),
        Spawn(at_ns=1, pid=13, start=4),
    ]


def growing(*records: Record) -> Transcript:
    """Return the transcript of a capture that a tap still writes."""
    transcriber = Transcriber()
    for record in (*opened(), *records):
        transcriber.feed(record)
    return transcriber.transcript


def numbers(transcript: Transcript, second: float) -> list[int]:
    """Return the numbers of the rows since a time."""
    rows = RecentRows(transcript, {0: int(second * SECOND_NS)}).rows
    return [row.row for row in rows if isinstance(row, Numbered)]


TALK = [ask(1, 1), answer(2, 1), ask(10, 2), answer(30, 2), ask(25, 3), answer(26, 3)]


def test_what_ended_before_is_left_out_and_what_ended_after_is_there() -> None:
    transcript = transcribe([*opened(), *TALK])
    assert (numbers(transcript, 0), numbers(transcript, 20), numbers(transcript, 26), numbers(transcript, 27)) == (
        [1, 2, 3],
        [2, 3],
        [2, 3],
        [2],
    )


def test_a_call_that_hangs_since_long_before_belongs_to_it() -> None:
    assert numbers(growing(ask(1, 1), ask(2, 2), answer(3, 2)), 100) == [1]


def test_a_call_without_an_answer_waited_until_the_server_ended() -> None:
    gone = Exit(at_ns=50 * SECOND_NS, pid=13, code=1)
    transcript = transcribe(
        [*opened(), ask(1, 1), gone, End(at_ns=60 * SECOND_NS, frames=1, bytes=0, messages=1, gaps=0, why="")]
    )
    assert (numbers(transcript, 49), numbers(transcript, 51)) == ([1], [])


def test_a_call_that_was_cut_off_waited_until_the_last_record() -> None:
    transcript = transcribe([*opened(), ask(1, 1), line_frame(2, 50, b"still here\n")])
    assert (numbers(transcript, 49), numbers(transcript, 51)) == ([1], [])


def test_progress_keeps_a_call_alive() -> None:
    call = ask(1, 1, "tools/call", '{"name":"a","_meta":{"progressToken":1}}')
    progress = line_frame(
        1, 40, b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'
    )
    gone = Exit(at_ns=41 * SECOND_NS, pid=13, code=1)
    assert numbers(transcribe([*opened(), call, progress, gone]), 40) == [1]


def test_a_task_that_works_belongs_to_it_and_so_does_one_that_was_asked_about() -> None:
    made = answer(2, 1, '{"task":{"taskId":"t","status":"working"}}')
    call = ask(1, 1, "tools/call", '{"name":"a","task":{}}')
    assert numbers(growing(call, made), 100) == [1]
    poll = [ask(90, 2, "tasks/get", '{"taskId":"t"}'), answer(91, 2, '{"taskId":"t","status":"completed"}')]
    ended = [ask(92, 3, "tasks/result", '{"taskId":"t"}'), answer(93, 3, '{"content":[]}')]
    assert numbers(growing(call, made, *poll, *ended), 92) == [1, 3]
    assert numbers(growing(call, made, *poll, *ended), 94) == []


@pytest.mark.parametrize(
    ("second", "kinds"), [(0, {ChannelEvent, Log, Exchange}), (29, {ChannelEvent, Log}), (31, {ChannelEvent}), (41, set())]
)
def test_lines_and_events_count_by_their_time(second: float, kinds: set[type]) -> None:
    records: list[Record] = [
        ask(1, 1),
        answer(2, 1),
        line_frame(2, 30, b"hm\n"),
        Close(at_ns=40 * SECOND_NS, stream=0, by="client", how="eof"),
    ]
    assert {type(row) for row in RecentRows(growing(*records), {0: int(second * SECOND_NS)}).rows} == kinds


def test_a_capture_for_which_no_moment_is_named_is_there_with_all_its_rows() -> None:
    transcript = growing(*TALK)
    assert RecentRows(transcript, {}).rows == transcript.rows


def test_what_repeats_is_counted_from_then_on_and_points_at_the_first_since() -> None:
    noise = [line_frame(1, second, b"Debug: loaded\n") for second in (1, 2, 30, 40)]
    transcript = growing(*noise)
    (whole,) = [finding for finding in findings(transcript) if finding.rule == "stdout-noise"]
    kept = RecentRows(transcript, {0: 20 * SECOND_NS})
    (late,) = [finding for finding in findings(transcript, kept.is_about) if finding.rule == "stdout-noise"]
    assert ((whole.count, whole.at_ns), (late.count, late.at_ns)) == ((4, SECOND_NS), (2, 30 * SECOND_NS))


def test_the_finding_about_a_cut_off_capture_counts_by_its_time() -> None:
    transcript = transcribe([*opened(), *TALK])
    recent = [RecentRows(transcript, {0: second * SECOND_NS}).is_about(transcript.findings[-1]) for second in (29, 31)]
    assert (transcript.findings[-1].rule, recent) == ("capture-incomplete", [True, False])
