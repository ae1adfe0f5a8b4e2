"""The timeline: what each kind of row looks like, at every width, and how long things are folded."""

import re
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.records import Close, Frame, Unknown
from mcpspy.transcript.model import Exchange, Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.page.rows import page_row
from mcpspy.views.text.columns import Lanes
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.summary import summary
from mcpspy.views.timeline.timeline import FOLD_HEAD, FOLD_TAIL, Timeline, timeline, timeline_columns
from tests.transcript.dialogue import Dialogue, notification, request, result
from tests.views.golden import same_as_golden
from tests.views.scenes import busy_scene, call, failed, given_up, opened, progress, refused, three_servers

WIDTHS = (80, 120, 200, None)


def shown(transcript: Transcript, **options: Any) -> list[str]:
    return [plain(line) for line in timeline(transcript, zone=UTC, **options)]


def rows_of(scene: Dialogue, **options: Any) -> list[str]:
    """Return the lines below the column titles."""
    lines = shown(scene.transcript, **options)
    return lines[next(at for at, line in enumerate(lines) if line.startswith("row")) + 1 :]


def line_with(text: str, scene: Dialogue, **options: Any) -> str:
    (line,) = [line for line in rows_of(scene, **options) if text in line]
    return line


@pytest.mark.parametrize("width", WIDTHS)
def test_a_scene_with_everything_looks_as_it_did(width: int | None) -> None:
    transcript = busy_scene().transcript
    assert same_as_golden(f"timeline-{width or 'pipe'}", timeline(transcript, width=width, zone=UTC))


@pytest.mark.parametrize("width", WIDTHS)
def test_three_servers_at_once_look_as_they_did(width: int | None) -> None:
    assert same_as_golden(f"lanes-{width or 'pipe'}", timeline(three_servers(), width=width, zone=UTC))


@pytest.mark.parametrize("width", [1, 10, 20, 33, 40, 52, 60, 72, 80, 100, 110, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    for transcript in (busy_scene().transcript, three_servers()):
        assert all(line_cells(line) <= width for line in timeline(transcript, width=width, zone=UTC))


def test_the_columns_of_wide_letters_are_aligned() -> None:
    scene = Dialogue(begins=False).client(call(1, "天気予報")).server(result(1)).client(call(2, "forecast")).server(result(2))
    starts = {line_cells([(line[: line.index("ok")], "")]) for line in rows_of(scene) if "tools/call" in line}
    assert len(starts) == 1


def test_the_summary_comes_first() -> None:
    parts = "8 calls in 4.29 s", "1 error", "1 tool error", "1 unanswered", "1 cancelled", "5 findings", "capture incomplete"
    assert shown(busy_scene().transcript)[0] == f"✗ {' · '.join(parts)} · 2 rules left to check"


@pytest.mark.parametrize(
    ("count", "words"), [(2, "a killed by SIGTERM · a 2 killed by SIGTERM"), (3, "3 servers killed by SIGTERM")]
)
def test_many_servers_that_ended_in_the_same_way_are_counted(count: int, words: str) -> None:
    scenes = [Dialogue("a").exits(None, signal="SIGTERM") for _ in range(count)]
    assert words in plain(summary(transcribe(*(scene.records for scene in scenes)))[0])


def test_the_summary_says_when_all_is_ok_and_complete_and_all_rules_looked() -> None:
    scene = opened("weather").client(request(1)).server(result(1)).client(request(2, "ping")).server(result(2)).closes()
    transcript = scene.transcript
    assert shown(transcript)[0] == "· 2 calls in 8.00 ms · capture complete · 2 rules left to check"
    transcript.credentials = CredentialSearch()
    assert shown(transcript)[0] == "✓ 2 calls in 8.00 ms, all ok · capture complete"


@pytest.mark.parametrize(
    ("line", "expected"), [(b"{\n", "✗ 1 call in 7.00 ms · 1 finding"), (b"hello\n", "✗ 1 call in 7.00 ms · 1 finding")]
)
def test_a_summary_with_findings_is_not_all_ok(line: bytes, expected: str) -> None:
    scene = opened("weather").client(request(1)).server(result(1)).server(line).closes()
    assert shown(scene.transcript)[0] == f"{expected} · capture complete · 2 rules left to check"


def test_the_summary_says_that_it_is_still_recording() -> None:
    assert shown(opened("weather").client(request(1)).server(result(1)).transcript, live=True)[0].endswith(
        " · recording · 2 rules left to check"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Dialogue.closes, "capture complete, payloads of 2 frames not kept"),
        (Dialogue.server_closes_stdout, "capture incomplete: payloads of 2 frames not kept"),
        (lambda scene: scene.gap().closes(), "capture incomplete: 1 gap, payloads of 2 frames not kept"),
    ],
    ids=["complete", "incomplete", "with a gap"],
)
def test_the_summary_says_that_payloads_were_not_kept(change: Callable[[Dialogue], Dialogue], words: str) -> None:
    scene = opened("weather").client(request(1)).server(result(1))
    for stream in (1, 2):
        scene.add(Frame(stream, 9, 9, b"", length=70_000, sha256="00"))
    assert shown(change(scene).transcript)[0].endswith(f" · {words} · 2 rules left to check · not all messages were checked")


def test_a_live_summary_says_that_payloads_are_not_kept() -> None:
    scene = opened("weather").client(request(1)).add(Frame(1, 9, 9, b"", length=70_000, sha256="00"))
    assert " · recording, payloads of 1 frame not kept · " in shown(scene.transcript, live=True)[0]


def test_the_summary_on_several_transcripts_lasts_from_the_first_beginning_to_the_last_record() -> None:
    first = opened("weather").client(request(1)).server(result(1)).closes()
    second = opened("files", begin_ms=60_000).client(request(1)).server(refused(1, -32601, "no")).closes()
    (line,) = summary(first.transcript, second.transcript)
    assert plain(line).startswith("⚑ 2 calls in 60.0 s · 1 error · ")


def test_the_summary_says_how_a_server_failed() -> None:
    scene = opened("weather").client(request(1)).server(result(1)).exits(3).ends()
    assert "weather exited 3" in shown(scene.transcript)[0]


def test_the_summary_counts_what_was_not_recorded() -> None:
    scene = opened("weather").client(request(1)).server(result(1)).gap().damage()
    assert "incomplete: 1 gap, 1 damaged line" in shown(scene.transcript)[0]


def test_a_transcript_without_a_call_says_so() -> None:
    assert shown(opened("weather").transcript)[0].startswith("· no calls · ")


def test_a_call_shows_its_number_its_id_its_time_and_its_outcome() -> None:
    scene = opened("weather").wait(40).client(call(7, "forecast")).wait(11).server(result(7))
    assert re.sub(" +", " ", line_with("forecast", scene)) == " 1 7 0.041 12.0 ms 143 B → tools/call forecast ok"


def test_a_request_of_the_server_points_the_other_way() -> None:
    scene = opened("weather").server(request(1, "roots/list")).client(result(1))
    assert "← roots/list" in line_with("roots/list", scene)


def test_an_error_comes_with_its_code_and_message() -> None:
    scene = opened("weather").client(request(1)).server(refused(1, -32601, "no such method"))
    assert line_with("tools/list", scene).endswith("error: -32601 no such method")


def test_a_tool_error_comes_with_its_first_text() -> None:
    scene = opened("weather").client(call(1, "forecast")).server(failed(1, "no such\n city"))
    assert line_with("forecast", scene).endswith("tool error: no such city")


def test_a_message_that_does_not_fit_beside_its_outcome_is_below_it() -> None:
    text = "the station of Atlantis did not answer within ten seconds and will not be asked again today"
    lines = rows_of(opened("weather").client(call(1, "forecast")).server(failed(1, text)), width=80)
    at = next(at for at, line in enumerate(lines) if "tools/call" in line)
    assert lines[at].endswith("tool error")
    assert " ".join(line.strip() for line in lines[at + 1 : at + 4]).startswith("the station of Atlantis did not")


def test_a_long_target_is_cut_on_a_screen_and_complete_on_a_pipe() -> None:
    scene = opened("weather").client(call(1, "x" * 100)).server(result(1))
    assert "xxx…  ok" in line_with("tools/call", scene, width=80)
    assert "x" * 100 in line_with("tools/call", scene)


def test_progress_is_one_line_below_its_call_with_the_last_message() -> None:
    scene = opened("weather").client(call(1, "forecast", token="t"))
    for step in (1, 2, 3):
        scene.server(progress("t", step, f"step {step}"))
    lines = rows_of(scene.server(result(1)))
    at = next(at for at, line in enumerate(lines) if "tools/call" in line)
    assert [line.split("  ")[-1] for line in lines if "progress" in line] == [" ← progress ×3: 3/17 step 3"]
    assert "progress" in lines[at + 1]


def test_a_notification_that_belongs_to_no_call_has_a_row_of_its_own() -> None:
    assert re.match(r" +1 .*→ notifications/initialized$", line_with("initialized", opened("weather").client(notification())))


def test_noise_on_stdout_is_shown_with_its_text_and_flagged() -> None:
    scene = opened("weather").client(request(1)).server(b"Listening on 3000\n").server(result(1)).closes()
    assert line_with("← noise", scene).endswith("← noise on stdout ⚑: Listening on 3000")


def test_a_line_of_the_client_that_is_not_a_message_is_malformed() -> None:
    assert "→ malformed on stdin ⚑: {broken" in line_with("malformed on", opened("weather").client(b"{broken\n"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"half\n', '← malformed on stdout ⚑: {"half'),
        (b"\n", "← blank line on stdout"),
        (b"ready\n", "← noise on stdout ⚑: ready"),
    ],
)
def test_a_line_of_the_server_that_is_not_a_message_is_noise_or_malformed(line: bytes, words: str) -> None:
    assert words in line_with("← ", opened("weather").client(request(1)).server(line))


def test_a_message_past_the_size_limit_says_it_was_not_recorded() -> None:
    scene = opened("weather").client(request(1)).add(Frame(1, 9, 9, b"", length=70_000, sha256="00"))
    assert line_with("not recorded on", scene).endswith("← not recorded on stdout")


def test_a_message_past_the_size_limit_is_as_large_as_it_was() -> None:
    scene = opened("weather").client(request(1)).add(Frame(1, 9, 9, b"", length=70_000, sha256="00"))
    assert " 70 kB " in line_with("not recorded on", scene)


def test_stderr_is_in_order_of_time_with_its_indentation() -> None:
    scene = opened("weather").client(request(1)).stderr(b"\tat line 3\r\n").server(result(1))
    assert "stderr     at line 3" in line_with("at line 3", scene)


def test_stderr_can_be_left_out() -> None:
    assert not [line for line in rows_of(busy_scene(), stderr=False) if " stderr " in line]


@pytest.mark.parametrize("count", [1, FOLD_HEAD, FOLD_HEAD + FOLD_TAIL + 1])
def test_a_short_run_of_stderr_is_not_folded(count: int) -> None:
    scene = opened("weather").client(request(1))
    for number in range(count):
        scene.stderr(f"line {number}\n".encode())
    assert len([line for line in rows_of(scene) if "stderr line" in line]) == count


def test_a_long_run_of_stderr_is_folded_but_for_its_ends() -> None:
    scene = opened("weather").client(request(1))
    for number in range(45):
        scene.stderr(f"line {number}\n".encode())
    lines = [line.split("  ")[-1].strip() for line in rows_of(scene.server(result(1))) if "stderr" in line]
    assert lines == [
        "stderr line 0", "stderr line 1", "stderr line 2", "… 40 more lines of stderr", "stderr line 43", "stderr line 44",
    ]  # fmt: skip


def test_selected_rows_include_everything_between_unfolded() -> None:
    lines = rows_of(busy_scene(), rows=(8, 9))
    assert len([line for line in lines if "stderr" in line]) == 46
    assert [line.split()[0] for line in lines if "→ " in line and "notifications" not in line] == ["8", "9"]


def test_rows_that_do_not_exist_show_nothing_below_the_summary() -> None:
    assert not [line for line in shown(busy_scene().transcript, rows=(90, 99)) if line.startswith("row")]


def test_an_answer_that_came_twice_is_noted_below() -> None:
    scene = opened("weather").client(request(1)).server(result(1)).server(result(1))
    assert "← answered again ×1" in line_with("again", scene)


def test_an_answer_without_a_request_says_so() -> None:
    assert "← result without a request" in line_with("without", opened("weather").server(result(9)))


EVENTS = [
    (lambda scene: scene.exits(0), "· server exited 0"),
    (lambda scene: scene.exits(None, signal="SIGKILL"), "· server killed by SIGKILL"),
    (lambda scene: scene.exits(None, error="No such file"), "· server could not be started: No such file"),
    (lambda scene: scene.client_leaves(), "· client closed stdin"),
    (lambda scene: scene.add(Close(at_ns=9, stream=0, by="server", how="broken")), "· server stopped reading stdin"),
    (lambda scene: scene.stall(0), "· server does not read stdin: 66 kB waiting"),
    (lambda scene: scene.stall(1, 2_000_000_000), "· client reads stdout again: after 2.00 s"),
    (lambda scene: scene.partial(1, b'{"half'), '· no line end on stdout yet: 6 B waiting: {"half'),
    (lambda scene: scene.gap(), "· gap: 3 frames, 600 B passed but not recorded: No space left on device"),
    (lambda scene: scene.damage(), "· damage: line 9 of the capture: the line does not match its CRC"),
    (lambda scene: scene.note("signal"), "· signal: SIGTERM received and forwarded"),
    (lambda scene: scene.add(Unknown(at_ns=9, kind="weight")), "· unknown record: of kind weight"),
]


@pytest.mark.parametrize(("happens", "words"), EVENTS, ids=[words for _, words in EVENTS])
def test_a_channel_event_has_a_line(happens: Any, words: str) -> None:
    scene = opened("weather").client(request(1))
    happens(scene)
    assert [line for line in rows_of(scene) if line.endswith(words)]


def test_findings_are_listed_below_the_rows_with_what_to_do() -> None:
    scene = opened("weather").client(request(1)).server(b"hello\n").server(b"hello again\n").server(result(1)).closes()
    lines = shown(scene.transcript)
    at = next(at for at, line in enumerate(lines) if line.startswith("⚑"))
    assert lines[at] == "⚑ Text on stdout that is not a message  stdout-noise  rows 2, 3, ×2"
    assert lines[at + 2] == "    Send logs, banners and debug output to stderr."


def test_notifications_of_a_call_are_shown_in_their_order() -> None:
    scene = opened("weather").client(call(1, "forecast", token=1)).server(progress(1, 3, "asking")).wait(9)
    lines = rows_of(scene.client(given_up(1, "enough")))
    phrases = [line.split("  ")[-1] for line in lines if "asking" in line or "enough" in line]
    assert phrases == [" ← progress: 3/17 asking", " → notifications/cancelled: enough"]


def test_a_pending_call_shows_its_waiting_time_and_its_last_progress() -> None:
    scene = opened("weather").client(call(1, "forecast", token=1)).server(progress(1, 3, "asking"))
    transcript = scene.transcript
    shape = timeline_columns(transcript.rows, Lanes(transcript.captures), None)
    machine = Timeline(shape, Lanes(transcript.captures))
    (row,) = transcript.exchanges
    assert "2.50 s" in plain(machine.pending(row, row.at_ns + 2_500_000_000))
    assert plain(machine.pending(row, row.at_ns)).endswith("3/17 asking")


@pytest.mark.parametrize(
    ("later_bytes", "incomplete_bytes", "ending"),
    [(0, 0, "ok, 3.00 s unread"), (60_000, 0, "ok, 3.00 s unread"), (100_000, 0, "ok"), (60_000, 64_000, "ok")],
    ids=["alone", "behind it", "read long ago", "another that is not complete behind it"],
)
def test_a_request_that_waited_for_its_reader_says_so(later_bytes: int, incomplete_bytes: int, ending: str) -> None:
    scene = (
        opened("weather")
        .client(call(7, "forecast"))
        .client(notification("notifications/x", {"text": "x" * later_bytes}))
        .wait(999)
    )
    scene.stall(0, waiting_bytes=50_000, incomplete_bytes=incomplete_bytes).wait(1_998).stall(0, 3_000_000_000)
    scene.wait(4_000).server(result(7))
    assert line_with("tools/call forecast", scene).endswith(f"  {ending}")


def test_a_request_that_was_answered_meanwhile_did_not_wait_for_its_reader() -> None:
    scene = opened("weather").client(call(7, "forecast")).wait(999).stall(0).wait(1_000).server(result(7))
    scene.wait(1_000).stall(0, 3_000_000_000)
    assert line_with("tools/call forecast", scene).endswith("  ok")


@pytest.mark.parametrize(
    ("stream", "pause_ms", "ending"),
    [(1, 100, "ok, 3.00 s unread"), (1, 900, "ok"), (2, 100, "ok"), (0, 100, "ok")],
    ids=["unread", "late by itself", "of the log", "of the requests"],
)
def test_an_answer_that_waited_for_its_reader_says_so(stream: int, pause_ms: int, ending: str) -> None:
    scene = (
        opened("weather").client(call(7, "forecast")).wait(3_100).stall(stream, 3_000_000_000).wait(pause_ms).server(result(7))
    )
    assert line_with("tools/call forecast", scene).endswith(f"  {ending}")
    transcript = scene.transcript
    row = next(row for row in transcript.rows if isinstance(row, Exchange) and row.method == "tools/call")
    line = page_row(row, transcript.captures[0], flagged=())
    assert line is not None
    assert line.outcome == ending
