"""Time that commands take from their start to their end, of small captures; and what `show` of many rows takes.

    python -m benchmarks.commands
    python -m benchmarks.commands --rounds 40

The store has the recordings of `captures/`. Each command is a process; commands take turns, and a figure is the least of the rounds,
in milliseconds of the processor and by the clock.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from benchmarks.shapes import frames, write
from benchmarks.startup import MCPSPY, environment

CAPTURES = Path(__file__).parent.parent / "captures"
STDIO, HTTP, MODEL = (str(CAPTURES / f"{name}.mcpspy") for name in ("time", "streamable", "agent-model"))
BARE = "python -c pass"
COMMANDS: dict[str, Sequence[str]] = {
    BARE: (sys.executable, "-c", "pass"),
    "--version": (MCPSPY, "--version"),
    "list": (MCPSPY, "list"),
    "show, stdio": (MCPSPY, "show", STDIO),
    "show, HTTP": (MCPSPY, "show", HTTP),
    "check, stdio": (MCPSPY, "check", STDIO),
    "check, HTTP": (MCPSPY, "check", HTTP),
    "check, model API": (MCPSPY, "check", MODEL),
}
TARGETS_MS = {"list": 60.0, "show, stdio": 80.0, "show, HTTP": 80.0}
MAX_VERSION_RATIO = 1.5
ROWS = 100_000
MS_PER_S = 1e3
KIB_PER_MIB = 1024
WARM_UP_ROUNDS = 2


class Cost(NamedTuple):
    """Seconds of the processor and by the clock, and the peak of memory in MiB."""

    processor_s: float
    clock_s: float
    peak_mib: float


def cost(command: Sequence[str], variables: dict[str, str]) -> Cost:
    """Run a command to its end and measure it.

    Raises:
        RuntimeError: if it fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=variables)
    _, status, usage = os.wait4(process.pid, 0)  # of this process alone, but a peak is at least what we have ourselves
    took_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # a check that finds something ends with 1
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, took_s, usage.ru_maxrss / KIB_PER_MIB)


def fill(store: Path) -> None:
    """Copy the recordings of the repository into a store."""
    folder = store / "captures"
    folder.mkdir(mode=0o700)
    for path in CAPTURES.glob("*.mcpspy"):
        copyfile(path, folder / path.name)


def small(store: Path, rounds: int) -> bool:
    """Measure the commands in turns and print their times. Return whether a target is missed."""
    fill(store)
    variables = environment(str(store))
    taken: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    for _ in range(WARM_UP_ROUNDS + rounds):
        for name, command in COMMANDS.items():
            taken[name].append(cost(command, variables))
    missed = False
    bare_s = min(each.processor_s for each in taken[BARE][WARM_UP_ROUNDS:])
    for name, costs in taken.items():
        processor_s, clock_s = (min(column) for column in list(zip(*costs[WARM_UP_ROUNDS:], strict=True))[:2])
        target_ms = bare_s * MAX_VERSION_RATIO * MS_PER_S if name == "--version" else TARGETS_MS.get(name)
        words = "" if target_ms is None else f" (target: at most {target_ms:.0f} ms of the processor)"
        print(f"{name:24} processor {processor_s * MS_PER_S:6.1f} ms, clock {clock_s * MS_PER_S:6.1f} ms{words}")
        missed = missed or (target_ms is not None and processor_s * MS_PER_S > target_ms)
    return missed


def many_rows(store: Path) -> None:
    """Measure `show` of many rows, and print its time and its peak."""
    rows = store / "rows.mcpspy"
    write(rows, frames(2 * ROWS), messages=2 * ROWS)
    shown = cost((MCPSPY, "show", str(rows)), environment(str(store)))
    print(f"{f'show, {ROWS:,} rows':24} processor {shown.processor_s:6.2f} s, peak {shown.peak_mib:5.0f} MiB")


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a line for each figure. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as store:
        missed = chosen.rounds and small(Path(store), chosen.rounds)
    with tempfile.TemporaryDirectory() as store:
        many_rows(Path(store))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
