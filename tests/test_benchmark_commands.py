"""The benchmark of commands measures what it says it does. Its figures are no test's business."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import commands, reading
from benchmarks.startup import environment


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_runs_and_takes_time(name: str, tmp_path: Path) -> None:
    commands.fill(tmp_path)
    assert commands.cost(commands.COMMANDS[name], environment(str(tmp_path))).processor_s > 0


def test_a_command_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with 2"):
        commands.cost((sys.executable, "-c", "import sys; sys.exit(2)"), {})


def test_show_of_many_rows_is_measured_with_its_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ROWS", 100)
    assert commands.main(["--rounds", "0"]) == 0
    assert re.fullmatch(r"show, 100 rows +processor +\d+\.\d\d s, peak +\d+ MiB\n", capsys.readouterr().out)


@pytest.mark.parametrize("name", sorted({words[0] for words, _ in reading.PROGRAMS}))
def test_what_is_run_for_reading_is_a_benchmark(name: str) -> None:
    assert callable(import_module(f"benchmarks.{name}").main)
