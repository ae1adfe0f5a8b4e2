"""While a large capture is read, a terminal shows how far that is; a pipe and a program's output do not."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copy, rmtree
from threading import Timer

import pytest

from benchmarks.shapes import frames, write
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

AT_ONCE = "import sys, mcpspy.cli.progress as p, mcpspy.cli.main as m; p.PATIENCE_S = 0; sys.exit(m.main())"
WORDS = [sys.executable, "-c", AT_ONCE]
"""mcpspy, which waits no second before it shows a bar."""

SHOWN = b"reading"

ERASE_LINE = b"\x1b[2K"
CURSOR_SHOWN = b"\x1b[?25h"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that is read in several pieces."""
    path = tmp_path_factory.mktemp("large") / "large.mcpspy"
    write(path, frames(12_000), messages=12_000)
    return path


def on_a_terminal(*words: str, until: bytes = b"") -> tuple[int, bytes]:
    """Run mcpspy on a terminal, up to the first of these words if there are any; return its exit status and all that it printed."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*WORDS, *words], stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    (deadline := Timer(DEADLINE_S, process.kill)).start()
    printed = b""
    try:
        while data := os.read(master, 1 << 16):
            printed += data
            if until and until in printed:
                process.send_signal(signal.SIGINT)
                until = b""
    except OSError:  # the terminal's other end is closed
        pass
    status = process.wait()
    deadline.cancel()
    os.close(master)
    return status, printed


def test_a_terminal_shows_how_far_reading_is_and_then_only_the_result(large: Path) -> None:
    status, printed = on_a_terminal("show", "--stats", str(large))
    assert status == 0
    shown, _, left = printed.rpartition(ERASE_LINE)
    assert SHOWN in shown
    assert SHOWN not in left
    assert b"6,000 calls" in left


def test_one_bar_is_for_all_captures_that_are_written_as_columns(large: Path, tmp_path: Path) -> None:
    others = [str(tmp_path / name) for name in ("a.mcpspy", "b.mcpspy")]
    for path in others:
        copy(ROOT / "captures" / "time.mcpspy", path)
    status, printed = on_a_terminal("export", "parquet", str(large), *others, "-o", str(tmp_path / "columns"))
    shown, _, left = printed.rpartition(ERASE_LINE)
    assert (status, SHOWN in shown, SHOWN in left) == (0, True, False)
    assert printed.count(CURSOR_SHOWN) == 1


def test_a_query_as_a_table_has_a_bar_while_captures_are_read(large: Path, store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(large, store / "captures")
    for options, is_shown in (((), True), (("--json",), False)):
        status, printed = on_a_terminal("query", "SELECT count(*) AS calls FROM calls", *options)
        assert (status, SHOWN + b" " in printed, b"6000" in printed) == (0, is_shown, True)
        rmtree(store / "columns")


@pytest.mark.parametrize("words", [("show", "--json"), ("check", "--format", "json")])
def test_output_for_programs_has_no_bar(large: Path, words: tuple[str, ...]) -> None:
    _, printed = on_a_terminal(*words, str(large))
    assert SHOWN not in printed.replace(str(large).encode(), b"")


def test_a_pipe_has_no_bar(large: Path) -> None:
    done = subprocess.run([*WORDS, "show", "--stats", str(large)], capture_output=True, timeout=DEADLINE_S, check=True)
    assert done.stderr == b""
    assert SHOWN not in done.stdout


def test_an_interrupt_leaves_nothing_half_written(large: Path, tmp_path: Path) -> None:
    page = tmp_path / "out" / "page.html"
    page.parent.mkdir()
    status, printed = on_a_terminal("export", "html", str(large), "-o", str(page), until=SHOWN)
    assert (status, CURSOR_SHOWN in printed) == (130, True)
    assert list(page.parent.iterdir()) == []
