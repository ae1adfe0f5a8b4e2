"""`mcpspy show -f`: rows as they end, from captures that grow under it and from those that appear."""

import json
import os
import re
import signal
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import read
from mcpspy.cli.show.follow import Follower
from mcpspy.platform.watch import Watch
from mcpspy.records import Frame, Header
from tests.capture.making import stored
from tests.cli.recording import Recording
from tests.cli.terminal import Running, on_pipe, on_terminal, run
from tests.deadlines import DEADLINE_S, eventually
from tests.findings.account import captures as captures_of
from tests.transcript.llm.traffic import ModelTraffic, delta, sse

TIME = str(Path(__file__).parents[3] / "captures" / "time.mcpspy")
SOUND = TIME.replace("time", "memory")


def states(running: Running) -> list[dict[str, Any]]:
    """Return the objects printed so far."""
    return [json.loads(line) for line in running.words.splitlines(keepends=True) if line.endswith("\n")]


def test_a_row_is_printed_when_it_ends_and_not_before() -> None:
    recording = Recording().ask(1, name="first").answer(1)
    with on_pipe("show", "-f") as shown:
        shown.wait_for("tools/call first")
        recording.ask(2, name="slow").ask(3, name="quick").answer(3)
        assert "slow" not in shown.wait_for("tools/call quick")
        recording.answer(2)
        shown.wait_for("tools/call slow")
    recording.end()


def test_stderr_noise_and_the_end_are_printed_as_they_come() -> None:
    recording = Recording()
    with on_pipe("show", "-f") as shown:
        shown.wait_for("server started")
        recording.line(2, b"a word\n")
        shown.wait_for("stderr a word")
        recording.line(1, b"not a message\n")
        shown.wait_for("noise on stdout: not a message")
        recording.end()
        shown.wait_for("server exited 0")


def test_it_moves_on_to_the_next_capture_of_another_client() -> None:
    with on_pipe("show", "-f", TIME) as shown:
        shown.wait_for("server exited 0")
        recording = Recording("weather", client=8).ask(1, name="forecast").answer(1)
        shown.wait_for(lambda words: "claude → weather" in words and "forecast" in words)
        assert re.search(r"^ +1 .*forecast", shown.words, re.MULTILINE)
        recording.end()


def test_a_capture_of_the_same_client_joins_with_a_lane_of_its_own() -> None:
    first = Recording("weather", client=8).ask(1, name="forecast").answer(1)
    with on_pipe("show", "-f") as shown:
        shown.wait_for("forecast")
        second = Recording("files", client=8).ask(1, name="read_file").answer(1)
        shown.wait_for("read_file")
        assert re.search(r"^ +2 .*files +→ tools/call read_file", shown.words, re.MULTILINE)
        first.end()
        second.end()


def test_a_call_that_passed_a_gateway_is_joined_with_what_became_of_it(tmp_path: Path) -> None:
    call = '→ tools/call 1 {"name":"%s","arguments":{"a":%d}}\n· %s s later\n← result 1 {"content":[]}\n'
    begin = "· handshake 2025-11-25, server: tools\n"
    accounts = {
        "gateway": f"{begin}{call % ('demo_add', 1, '0.9')}",
        "behind": f"{begin}· 0.2 s later\n{call % ('add', 2, '0.1')}",
    }
    for name, account in accounts.items():
        (data,) = captures_of(account, name)
        (tmp_path / f"{name}.mcpspy").write_bytes(data)
    with on_pipe("show", "-f", *(str(tmp_path / f"{name}.mcpspy") for name in accounts)) as shown:
        shown.wait_for("gateway changed the params: $.arguments.a")
        assert re.search(r"^row \d+ → behind row \d+: 101 ms, gateway 800 ms, 89 %$", shown.words, re.MULTILINE)


def test_a_label_is_followed_to_newer_captures_of_that_label_alone() -> None:
    first = Recording("weather", client=8).ask(1, name="forecast").answer(1)
    with on_pipe("show", "-f", "weather") as shown:
        shown.wait_for("forecast")
        other, newer = Recording("files", client=9), Recording("weather", client=10)
        other.ask(1, name="read_file").answer(1)
        newer.ask(1, name="again").answer(1)
        assert "read_file" not in shown.wait_for("again")
        for recording in (first, other, newer):
            recording.end()


def test_it_waits_for_the_first_capture_of_all(store: Path) -> None:
    with on_pipe("show", "-f") as shown:
        assert str(store) in shown.wait_for("nothing has been recorded yet; waiting")
        recording = Recording().ask(1, name="forecast").answer(1)
        shown.wait_for("forecast")
        recording.end()


def test_a_call_is_unanswered_once_the_tap_is_killed() -> None:
    recording = Recording().ask(1, name="forecast")
    with on_pipe("show", "-f") as shown:
        shown.wait_for("server started")
        recording.kill()
        assert re.search(r"forecast +unanswered", shown.wait_for("forecast"))


def test_json_is_an_object_for_each_change_of_state_keyed_by_row() -> None:
    recording = Recording()
    with on_pipe("show", "-f", "--json") as shown:
        shown.wait_for('"spawn"')
        recording.ask(1, name="forecast")
        shown.wait_for('"pending"')
        recording.answer(1)
        shown.wait_for('"ok"')
        exchanges = [state for state in states(shown) if state["kind"] == "exchange"]
        assert [(item["row"], item["outcome"]) for item in exchanges] == [(1, "pending"), (1, "ok")]
        assert {item["capture_id"] for item in exchanges} == {os.path.basename(recording.path)}
        recording.end()


def test_a_streamed_answer_is_shown_when_it_is_requested_at_its_first_token_and_at_its_end(tmp_path: Path) -> None:
    traffic = ModelTraffic()
    pieces = [sse(delta(text)) for text in ("Good", " day", " to", " you")]
    call = traffic.ask("user: hello", stream=True).stream()
    for piece in pieces:
        call.raw(piece)
    call.raw(sse(delta(".", "stop"))).raw(sse(b"[DONE]")).close()
    header, *records = traffic.records
    assert isinstance(header, Header)
    lines = [header_line(header), *(record_line(at, record) for at, record in enumerate(records, 1))]
    path = tmp_path / "model.mcpspy"
    path.write_bytes(b"".join(lines[:5]))  # to the head of the response
    with path.open("ab", buffering=0) as file:
        flock(file, LOCK_EX)  # as a tap that records
        with on_pipe("show", "-f", "--json", str(path)) as shown:
            shown.wait_for('"model_call"')
            for line in lines[5:-1]:
                file.write(line)
            shown.wait_for('"is_whole":false,"deltas":')
            file.write(lines[-1])
            shown.wait_for('"is_whole":true')
            outcomes = [(state["outcome"], state["duration_ns"] is not None) for state in states(shown)]
    assert outcomes[0] == ("pending", False)
    assert outcomes[-1] == ("ok", True)
    assert len(outcomes) <= 3, "one of each delta"


def test_stderr_can_be_left_out() -> None:
    recording = Recording().line(2, b"a word\n").ask(1, name="forecast").answer(1)
    for words in (("-f",), ("-f", "--json")):
        with on_pipe("show", *words, "--no-stderr") as shown:
            assert "a word" not in shown.wait_for("forecast")
    recording.end()


@pytest.mark.parametrize("words", [("-f",), ("-f", "--json")], ids=" ".join)
def test_control_c_ends_it_well(words: tuple[str, ...]) -> None:
    recording = Recording().ask(1, name="forecast").answer(1)
    with on_pipe("show", *words) as shown:
        shown.wait_for("forecast")
        assert shown.end(signal.SIGINT) == 0
        assert "Traceback" not in shown.words
    recording.end()


def test_a_termination_ends_it_with_the_status_of_that() -> None:
    with on_pipe("show", "-f", TIME) as shown:
        shown.wait_for("server exited")
        assert shown.end(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_reader_that_goes_away_ends_it_though_nothing_happens() -> None:
    with on_pipe("show", "-f", TIME) as shown:
        shown.wait_for("server exited")
        shown.stop_reading()
        assert shown.process.wait(DEADLINE_S) == 0


def test_standard_input_is_followed_to_its_end() -> None:
    data = Path(TIME).read_bytes()
    reading, writing = os.pipe()
    half = data.index(b"\n", len(data) // 2) + 1
    with on_pipe("show", "-f", "-", stdin=reading) as shown:
        os.close(reading)
        os.write(writing, data[:half])
        shown.wait_for("initialize")
        os.write(writing, data[half:])
        os.close(writing)
        assert shown.rest() == 0
    assert "server exited 0" in shown.words


def test_rows_cannot_be_followed() -> None:
    done = run("show", "-f", f"{TIME}:3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "leave out the rows" in done.stderr


def test_a_terminal_shows_what_is_pending_with_a_running_timer_and_leaves_a_summary() -> None:
    recording = Recording().ask(1, name="forecast")
    with on_terminal("show", "-f") as shown:
        timers = re.compile(r"(\d+ ms|\d\.\d+ s) +\d+ B +→ tools/call forecast +pending")
        shown.wait_for(lambda words: len(set(timers.findall(words))) >= 3)
        assert "● recording weather" in shown.words
        recording.answer(1)
        shown.wait_for(lambda words: re.search(r"→ tools/call forecast +ok", words))
        recording.end()
        shown.wait_for("○ waiting for the next capture")
        assert shown.end(signal.SIGINT) == 0
    last = shown.words.rstrip().splitlines()[-1]
    assert re.fullmatch(r"✓ 1 call in .*, ok · capture complete", last)
    assert last == run("show", "@").stdout.splitlines()[0]


@pytest.mark.parametrize(("line", "sign"), [(None, "✓"), (b"Listening on stdio\n", "✗")], ids=["sound", "noise"])
def test_the_last_line_knows_the_findings_as_show_does(line: bytes | None, sign: str) -> None:
    recording = Recording()
    recording.write([record for record in read(SOUND) if isinstance(record, Frame)])
    if line is not None:
        recording.line(1, line)
    with on_terminal("show", "-f", columns=120) as shown:
        shown.wait_for("Ctrl-C ends")
        assert shown.end(signal.SIGINT) == 0
    last = shown.words.rstrip().splitlines()[-1]
    assert last == run("show", "@").stdout.splitlines()[0]
    assert last.startswith(sign)


def test_the_last_summary_counts_what_the_status_line_counted_over_all_recordings() -> None:
    first = Recording("weather", client=8).ask(1, name="forecast").answer(1)
    with on_terminal("show", "-f", columns=120) as shown:
        shown.wait_for("recording weather · 1 call · ")
        second = Recording("files", client=9).ask(1, name="read_file").answer(1, error={"code": 1, "message": "no"})
        shown.wait_for("recording weather, files · 2 calls · 1 error · ")
        first.end()
        second.end()
        shown.wait_for("waiting for the next capture · 2 calls · 1 error · ")
        assert shown.end(signal.SIGINT) == 0
    assert re.fullmatch(r"⚑ 2 calls in .* · 1 error · captures complete", shown.words.rstrip().splitlines()[-1])


def test_a_task_that_works_is_pending_until_it_has_ended() -> None:
    recording = Recording().ask(1, name="report", task={"ttl": 60_000})
    working = {"taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": 60_000}
    with on_terminal("show", "-f", columns=120) as shown:
        shown.wait_for("1 pending")
        recording.answer(1, result={"task": working})
        shown.wait_for("task working")
        assert "1 call · 1 pending" in shown.words
        recording.ask(2, "tasks/get", taskId="t").answer(2, result={**working, "status": "completed"})
        shown.wait_for("2 calls · Ctrl-C")
    recording.end()


def test_a_terminal_shows_progress_of_what_is_pending() -> None:
    recording = Recording().ask(1, name="forecast", _meta={"progressToken": 1})
    with on_terminal("show", "-f", columns=120) as shown:
        shown.wait_for("pending")
        params = {"progressToken": 1, "progress": 3, "total": 17, "message": "asking Lissabon"}
        recording.line(1, {"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        shown.wait_for("3/17 asking Lissabon")
    recording.end()


def test_a_terminal_that_cannot_redraw_gets_lines() -> None:
    recording = Recording().ask(1, name="forecast").answer(1)
    with on_terminal("show", "-f", term="dumb") as shown:
        shown.wait_for("forecast")
        assert shown.end(signal.SIGINT) == 0
    assert "\x1b" not in shown.text
    recording.end()


def test_it_ends_though_the_exception_of_the_signal_was_lost() -> None:
    class Lost:
        redraw_s = None

        def row(self, *_: Any, **__: Any) -> None: ...
        def close(self, _: Any) -> None: ...
        def rest(self, _: Any) -> None:
            follower.ended_by = signal.SIGINT

    watch = Watch()
    follower = Follower(Lost(), watch, lambda _: True, keeps_frames=False, since=None, live_filter=None)
    follower.run()
    watch.close()


def test_waiting_costs_next_to_nothing() -> None:
    stored("weather")
    for follow in (on_pipe, on_terminal):
        with follow("show", "-f") as shown:
            shown.wait_for("server started")
            status = Path(f"/proc/{shown.process.pid}/status")

            def switches(status: Path = status) -> int:
                match = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(encoding="utf-8"), re.MULTILINE)
                assert match is not None
                return int(match[1])

            seen: list[int] = []

            def asleep(seen: list[int] = seen) -> bool:
                seen.append(switches())
                return len(seen) > 100 and seen[-1] == seen[-100]  # half a second without waking up

            assert eventually(asleep, "a follower that sleeps")


def test_all_clients_that_run_are_followed_though_a_newer_recording_has_ended() -> None:
    first = Recording("weather", client=8).ask(1, name="forecast").answer(1)
    second = Recording("time", client=9).ask(1, name="now").answer(1)
    ended = Recording("git", client=10).ask(1, name="log").answer(1)
    ended.end()
    with on_pipe("show", "-f") as shown:
        shown.wait_for(lambda words: "forecast" in words and "now" in words)
        first.ask(2, name="tomorrow").answer(2)
        second.ask(2, name="later").answer(2)
        words = shown.wait_for(lambda words: "tomorrow" in words and "later" in words)
    assert "git" not in words
    first.end()
    second.end()


def test_where_nothing_runs_the_newest_recording_is_shown() -> None:
    for label in ("weather", "time"):
        Recording(label, client=ord(label[0])).ask(1, name=label).answer(1).end()
    with on_pipe("show", "-f") as shown:
        words = shown.wait_for("server exited 0")
    assert ("tools/call time" in words, "weather" in words) == (True, False)


def test_a_file_that_a_killed_tap_left_empty_is_waited_for_no_longer(store: Path) -> None:
    recording = Recording().ask(1).answer(1)
    empty = store / "captures" / "empty.mcpspy"
    empty.touch()
    os.utime(empty, (0, 0))
    with on_pipe("show", "-f") as shown:
        shown.wait_for("tools/call")
        late = store / "captures" / "late.mcpspy"
        late.touch()
        os.utime(late, (0, 0))
        recording.ask(2, name="again").answer(2)
        shown.wait_for("again")
        late.write_bytes(Path(TIME).read_bytes())
        recording.ask(3, name="more").answer(3)
        assert "stepclient" not in shown.wait_for("more")
    recording.end()


@pytest.mark.parametrize("others", ["none", "one that goes on", "one that has ended", "an empty one"])
def test_a_capture_that_has_no_header_yet_when_it_begins_is_followed(others: str, store: Path) -> None:
    early = store / "captures" / "early.mcpspy"
    early.parent.mkdir(parents=True, exist_ok=True)
    other = Recording().ask(1, name="before").answer(1) if others.startswith("one") else None
    if other is not None and others == "one that has ended":
        other.end()
    if others == "an empty one":
        (store / "captures" / "another.mcpspy").touch()
    early.touch()
    with on_pipe("show", "-f") as shown:
        shown.wait_for("before" if other is not None else "waiting for the first capture")
        early.write_bytes(Path(TIME).read_bytes())
        shown.wait_for("stepclient")
        assert shown.words.count("→ initialize") == 1
    if other is not None and others == "one that goes on":
        other.end()


def test_rows_of_several_clients_have_a_word_between_them_and_no_more() -> None:
    both = [Recording(label, client=client).ask(1, name=label).answer(1) for client, label in ((8, "weather"), (9, "time"))]
    with on_pipe("show", "-f") as shown:
        shown.wait_for("tools/call time")
        for number in range(2, 5):
            for recording, label in zip(both, ("weather", "time"), strict=True):
                recording.ask(number, name=f"{label}{number}").answer(number)
                shown.wait_for(f"tools/call {label}{number}")
        lines = shown.words.splitlines()
    for recording in both:
        recording.end()
    assert lines[-4:-1:2] == ["  claude → weather", "  claude → time"]
    assert sum("row id" in line for line in lines) == 1


def test_where_many_servers_run_the_status_line_counts_them_and_says_what_is_pending() -> None:
    taps = [Recording(f"a-server-with-a-name-{number}").ask(1) for number in range(6)]
    with on_terminal("show", "-f", columns=80) as shown:
        words = shown.wait_for("6 pending")
        shown.end()
    for tap in taps:
        tap.end()
    assert "recording 6 servers · 6 calls · 6 pending · Ctrl-C ends" in words


def test_a_recording_that_has_ended_does_not_run_because_a_models_leg_beside_it_does() -> None:
    leg = Recording("model", client=1, tapped={"transport": "http", "url": "http://127.0.0.1:1", "leg": "model"})
    leg.write([])
    Recording("git", client=8).ask(1, name="log").answer(1).end()
    running = [Recording(label, client=client).ask(1, name=label).answer(1) for client, label in ((9, "weather"), (10, "time"))]
    with on_pipe("show", "-f") as shown:
        words = shown.wait_for(lambda words: "tools/call weather" in words and "tools/call time" in words)
        assert ("git" in words, words.count("http://127.0.0.1:1")) == (False, 1)
    for recording in (*running, leg):
        recording.close()


def test_a_filter_by_duration_shows_a_pending_call_when_it_has_waited_that_long() -> None:
    recording = Recording("weather").ask(1, name="forecast")
    with on_terminal("show", "-f", "-F", "dur>300ms", columns=100) as shown:
        words = shown.wait_for("tools/call forecast")
        shown.end()
    recording.end()
    assert "pending" in words
