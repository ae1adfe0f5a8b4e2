"""`--since`, as a user gives it to `show`, `check` and `list`: a recorder that is always on is asked about its last hour."""

import json
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mcpspy.cli.capture_options import UsageError
from mcpspy.cli.since import moment_ns
from tests.capture.making import SECOND_NS, WALL_NS, stored
from tests.cli.recording import Recording
from tests.cli.terminal import on_pipe, run

HOUR_S = 3600
NOW = datetime.fromisoformat("2026-11-21T09:00:30+00:00")
NOW_NS = int(NOW.timestamp()) * SECOND_NS
LATE = "0.001s"
"""An age that all is beyond which ended before a command began, for it takes 50 ms to begin."""


def aged(name: str, hours: float, **facts: Any) -> str:
    """Make a capture in the store, so many hours old and one second long, of a client of its own unless one is named."""
    age_ns = int(hours * HOUR_S * SECOND_NS)
    parent = {"pid": int(hours * 10) + 100, "name": "client", "start": 2}
    begin_s = (time.time_ns() - age_ns - WALL_NS) / SECOND_NS
    return stored(name, begin_s=begin_s, **{"parent": parent, **facts})


def labels(*words: str) -> list[str]:
    output = json.loads(run("show", "--json", *words).stdout)
    return [capture["label"] for capture in output["captures"]]


def rows(*words: str) -> list[tuple[int, int, str]]:
    output = json.loads(run("show", "--json", *words).stdout)["rows"]
    return [(item["row"], item["id"], item["outcome"]) for item in output if item["kind"] == "exchange"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-11-21T08:59:00Z"),
        ("1h30m", "2026-11-21T07:30:30Z"),
        ("2d", "2026-11-19T09:00:30Z"),
        ("08:30", "2026-11-21T08:30:00Z"),
        ("22:30", "2026-11-20T22:30:00Z"),
        ("2026-11-21", "2026-11-21T00:00:00Z"),
        ("2026-11-21T08:30", "2026-11-21T08:30:00Z"),
        ("2026-11-21 08:30:05", "2026-11-21T08:30:05Z"),
        ("2026-11-21T08:30Z", "2026-11-21T08:30:00Z"),
        ("2026-11-21T09:30+01:00", "2026-11-21T08:30:00Z"),
    ],
)
def test_a_moment_is_an_age_or_a_time(monkeypatch: pytest.MonkeyPatch, text: str, moment: str) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert moment_ns(text, now_ns=NOW_NS) == int(datetime.fromisoformat(moment).timestamp()) * SECOND_NS


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    moments = [moment_ns(text, now_ns=NOW_NS) for text in ("2026-11-21T17:30", "17:30")]
    monkeypatch.undo()
    time.tzset()
    assert moments == [int(datetime.fromisoformat("2026-11-21T08:30:00Z").timestamp()) * SECOND_NS] * 2


def test_a_time_that_a_clock_showed_twice_is_the_later_one_that_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    days = [
        int(datetime.fromisoformat(f"2026-10-25T{clock}Z").timestamp()) * SECOND_NS for clock in ("00:30", "01:15", "01:30")
    ]
    moments = [moment_ns("02:30", now_ns=now_ns) for now_ns in days[1:]]
    monkeypatch.undo()
    time.tzset()
    assert moments == [days[0], days[2]]


@pytest.mark.parametrize(
    "text", ["", "soon", "90", "1x", "25:00", "2026-13-01", "-1h", "0s", "12", "9" * 300 + "d", "1h\x1b[2J"]
)
def test_a_wrong_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"it takes an age like 90s, 1h or 2d, or a time like 09:30, 2026-11-21") as raised:
        moment_ns(text, now_ns=NOW_NS)
    assert "\x1b" not in str(raised.value)


def test_a_moment_in_the_future_is_refused() -> None:
    done = run("show", "--since", "2999-01-01")
    assert (done.returncode, "2999-01-01 is in the future" in done.stderr) == (2, True)


def test_without_a_what_it_is_all_recordings_into_which_was_recorded_since_then() -> None:
    aged("old", 5)
    aged("middle", 2)
    aged("young", 1)
    assert labels("--since", "3h") == ["middle", "young"]
    assert labels("--since", "90m") == ["young"]
    assert labels() == ["young"]


def test_a_recording_is_read_whole_so_that_its_rows_keep_their_numbers() -> None:
    client = {"pid": 5, "name": "client", "start": 2}
    aged("first", 4, parent=client, lasted_s=1.5 * HOUR_S)
    aged("second", 3, parent=client, lasted_s=2 * HOUR_S)
    assert rows("--since", "2h") == [(2, 1, "unanswered")]
    assert labels("--since", "2h") == ["first", "second"]


def test_a_call_that_hangs_belongs_to_it_however_long_ago_it_began() -> None:
    live = Recording().ask(1).ask(2).answer(2)
    done = run("show", "--since", LATE)
    assert "… 1 call since " in done.stdout
    assert "1 pending" in done.stdout
    live.kill()


def test_a_filter_chooses_among_what_is_left() -> None:
    live = Recording().ask(1, "ping").ask(2, "tools/list").ask(3, "tools/list").answer(3)
    assert rows("--since", LATE, "-F", "method:tools/list") == [(2, 2, "pending")]
    assert "1 of 2 rows matches" in run("show", "--since", LATE, "-F", "method:tools/list").stdout
    live.kill()


def test_the_json_says_since_when() -> None:
    live = Recording().ask(1)
    for verb in ("show", "check"):
        output = json.loads(run(verb, "--json", "--since", "2026-01-01T00:00Z").stdout)
        assert output["since_wall_ns"] == int(datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()) * SECOND_NS
    live.kill()


def test_numbers_are_those_of_what_was_alive() -> None:
    live = Recording().ask(1).answer(1).ask(2, "ping")
    (server,) = json.loads(run("show", "--stats", "--json", "--since", LATE).stdout)["servers"]
    assert [(call["method"], call["count"]) for call in server["calls"]] == [("ping", 1)]
    live.kill()


@pytest.mark.parametrize(("since", "status"), [("3h", 1), ("90m", 0)])
def test_a_check_fails_on_what_was_then_and_not_before(since: str, status: int) -> None:
    aged("cut", 2, ended=False)
    aged("well", 1, messages=0)
    aged("talks", 1, parent={"pid": 77, "name": "client", "start": 2})
    done = run("check", "--since", since, "--select", "capture-incomplete", "--fail-on", "note")
    assert (done.returncode, "capture-incomplete" in done.stdout) == (status, bool(status))
    assert f"of {status + 1} capture" in done.stdout


def test_of_one_recording_a_check_names_rows_as_show_takes_them() -> None:
    aged("old", 5)
    Recording().line(1, b"noise\n").kill()
    assert "@:1" in run("check", "--since", "1h", "--select", "stdout-noise").stdout


@pytest.mark.parametrize("verb", ["show", "check", "list"])
def test_if_nothing_was_recorded_that_is_reported_and_no_error(verb: str) -> None:
    aged("old", 5)
    done = run(verb, "--since", "1h")
    assert (done.returncode, "othing was recorded since " in done.stderr) == (0, True)
    output = json.loads(run(verb, "--since", "1h", "--json").stdout)
    assert (output.get("captures"), output.get("recordings")) in (([], None), (None, []))


def test_list_keeps_the_addresses_that_verbs_take() -> None:
    aged("old", 5)
    newest = aged("newest", 1)
    middle = aged("middle", 2, lasted_s=2 * HOUR_S)
    output = json.loads(run("list", "--since", "30m", "--json").stdout)
    assert [(recording["address"], recording["captures"][0]["path"]) for recording in output["recordings"]] == [("@1", middle)]
    output = json.loads(run("list", "--since", "2h", "--json").stdout)
    assert [recording["captures"][0]["path"] for recording in output["recordings"]] == [newest, middle]


def test_since_is_refused_with_row_numbers() -> None:
    aged("one", 1)
    done = run("show", "--since", "2h", "@:1")
    assert (done.returncode, "cannot be combined with rows" in done.stderr) == (2, True)


def test_since_works_with_a_file_and_with_standard_input() -> None:
    path = Path(aged("one", 1))
    assert rows("--since", "2h", str(path)) == [(1, 1, "unanswered")]
    assert rows("--since", "30m", str(path)) == []
    for since, count in (("2h", 1), ("30m", 0)):
        done = run("show", "--json", "--since", since, "-", stdin=path.read_bytes())
        assert json.loads(done.stdout)["summary"]["calls"] == count


def test_a_capture_whose_machine_slept_is_as_young_as_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    awake_s = HOUR_S
    facts = {"boot_id": boot, "monotonic_ns": time.monotonic_ns() - awake_s * SECOND_NS, "lasted_s": awake_s}
    path = aged("slept", 9, **facts)
    assert labels("--since", "30m") == ["slept"]
    os.utime(path, (time.time() - 8 * HOUR_S,) * 2)  # it fell silent before the machine slept
    assert labels("--since", "7h") == []
    os.utime(path, (time.time() + HOUR_S,) * 2)  # a file that was copied is no younger than the clocks allow
    assert labels("--since", "1m") == ["slept"]
    aged("copied", 20)
    assert labels("--since", "10h") == ["slept"]


def test_following_begins_there_and_with_what_still_hangs() -> None:
    live = Recording().ask(1).answer(1).ask(2)
    with on_pipe("show", "-f", "--json", "--since", LATE) as shown:
        shown.wait_for('"row":2')
        live.ask(3).answer(3)
        words = shown.wait_for('"row":3')
        shown.end()
    live.kill()
    assert '"row":1,' not in words


def test_following_says_where_there_is_nothing_yet() -> None:
    aged("old", 5)
    with on_pipe("show", "-f", "--since", "1h") as shown:
        shown.wait_for("waiting for new captures")
        live = Recording().ask(1).answer(1)
        words = shown.wait_for("tools/call")
        shown.end()
    live.kill()
    assert "old" not in words
