"""A client that starts a server many times in one second and keeps one: real taps, killed in the midst of their start."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Header
from tests.capture.making import stored
from tests.cli.terminal import on_pipe, run
from tests.deadlines import DEADLINE_S, eventually
from tests.tiers import Tier

SERVER = 'while read -r line; do echo \'{"jsonrpc":"2.0","id":1,"result":{}}\'; done'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}\n'
DEAD_MS = 20


@pytest.fixture
def count(tier: Tier) -> int:
    """Choose the number of taps."""
    return tier(sample=4, more=20, full=20)


class Tap:
    """`mcpspy run` before a server that answers every line."""

    def __init__(self, label: str = "weather") -> None:
        words = [sys.executable, "-m", "mcpspy", "run", "--label", label, "--", "sh", "-c", SERVER]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def ask(self, name: str) -> "Tap":
        """Send a call, without waiting for its answer."""
        self.stdin.write(REQUEST % name.encode())
        return self

    def answer(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def leave(self) -> int:
        """Close the server's input, and wait. Return the exit status."""
        with self.process:
            self.stdin.close()
            return self.process.wait(DEADLINE_S)


@contextmanager
def started(count: int, kept: int, number: int) -> Iterator[Tap]:
    """So many taps at once, of which the others are sent this signal 20 ms later, and the one that is kept answered."""
    taps = [Tap().ask("real" if at == kept else "dropped") for at in range(count)]
    others = [tap for tap in taps if tap is not taps[kept]]
    try:
        with suppress(subprocess.TimeoutExpired):
            others[0].process.wait(DEAD_MS / 1000)
        for other in others:
            other.process.send_signal(number)
        for other in others:
            other.process.wait(DEADLINE_S)
        assert taps[kept].answer()
        yield taps[kept]
    finally:
        for tap in taps:
            tap.leave()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("place", ["first", "last"])
def test_those_that_a_client_drops_do_not_hide_the_one_it_keeps(count: int, place: str, number: int) -> None:
    with started(count, 0 if place == "first" else count - 1, number) as kept:
        while_live = [run("show", "--json", *what).stdout for what in ((), ("weather",))]
        kept.leave()
    afterwards = [run("show", "--json", *what).stdout for what in ((), ("weather",))]
    for text in (*while_live, *afterwards):
        output = json.loads(text)
        assert ("real", "ok") in [(row["target"], row["outcome"]) for row in output["rows"] if row["kind"] == "exchange"]
    newest = json.loads(run("list", "--json").stdout)["recordings"][0]
    assert (newest["address"], max(capture["messages"] for capture in newest["captures"])) == ("@", 2)


def test_taps_that_start_in_one_second_have_a_capture_each(count: int, store: Path) -> None:
    taps = [Tap().ask(f"call{number}") for number in range(count)]
    for tap in taps:
        assert tap.answer()
    headers = [next(iter(read(store / "captures" / file))) for file in os.listdir(store / "captures")]
    ids = {header.capture_id for header in headers if isinstance(header, Header)}
    for tap in taps:
        tap.leave()
    output = json.loads(run("show", "--json").stdout)
    assert len(ids) == len(output["captures"]) == count
    assert {row["target"] for row in output["rows"] if row["kind"] == "exchange"} == {
        f"call{number}" for number in range(count)
    }


def test_all_taps_of_a_client_are_followed_on_one_timeline_and_those_that_start_later_join(count: int) -> None:
    taps = [Tap(f"s{number}").ask(f"first{number}") for number in range(count)]
    for tap in taps:
        assert tap.answer()
    with on_pipe("show", "-f") as shown:
        shown.wait_for(lambda words: all(f" first{number} " in words for number in range(count)))
        taps.append(Tap("late").ask("joined"))
        shown.wait_for(" joined ")
        taps[0].ask("again")
        words = shown.wait_for(" again ")
        assert words.count("row id") == 1, "the names of the columns come once"
        for tap in taps:
            tap.leave()
        shown.wait_for(lambda words: words.count("server exited 0") == count + 1)
        next_one = Tap("next").ask("anew")
        shown.wait_for(" anew ")
        next_one.leave()


def test_empty_files_of_killed_taps_are_counted_and_deleted(store: Path) -> None:
    stored("weather")
    for number in range(3):
        path = store / "captures" / f"20261121T000000Z-weather-{number}.mcpspy"
        path.touch()
        os.utime(path, (0, 0))
    listed = run("list")
    assert ("3 empty files" in listed.stderr, "unreadable" in listed.stdout) == (True, False)
    assert "3 empty files deleted" in run("prune", "--keep", "9").stderr
    eventually(lambda: len(os.listdir(store / "captures")) == 1, "the empty files to be gone")
