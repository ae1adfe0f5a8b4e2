"""Time that commands take from their start to their end, of small captures; and what a check of 1 GB takes.

    python -m benchmarks.commands
    python -m benchmarks.commands --rounds 40
    python -m benchmarks.commands --messages 3230000

The store has the recordings of `captures/`. Each command is a process; commands take turns, and a figure is the least of the rounds,
in milliseconds of the processor and by the clock. `--messages` sets how many messages the check of a large capture reads, plain ones
and mixed ones as `benchmarks.reader` has them: without it 3,230,000, which are 1 GB; with 0 none.
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

from benchmarks import mixed
from benchmarks.reader import MAX_PEAK_MIB, frames, write
from benchmarks.startup import MCPSPY, environment

STDIO_MESSAGES = 3_230_000
"""Those of 1 GB."""

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


def large(store: Path, messages: int) -> bool:
    """Measure `show` of many rows, and a check of a large capture; print times and peaks. Return whether a target is missed."""
    variables = environment(str(store))
    rows, missed = store / "rows.mcpspy", False
    write(rows, frames(2 * ROWS), messages=2 * ROWS)
    shown = cost((MCPSPY, "show", str(rows)), variables)
    print(f"{f'show, {ROWS:,} rows':24} processor {shown.processor_s:6.2f} s, peak {shown.peak_mib:5.0f} MiB")
    rows.unlink()
    for name, made in (("plain", frames), ("mixed", mixed.frames)):
        path = store / f"{name}.mcpspy"
        write(path, made(messages), messages=messages)
        checked = cost((MCPSPY, "check", str(path)), variables)
        size_mb, us = path.stat().st_size / 1e6, checked.processor_s / messages * 1e6
        print(
            f"{f'check, {size_mb:,.0f} MB {name}':24} processor {checked.processor_s:6.2f} s ({us:.2f} µs a message), "
            f"peak {checked.peak_mib:5.0f} MiB (target: below {MAX_PEAK_MIB})"
        )
        missed = missed or checked.peak_mib >= MAX_PEAK_MIB
        path.unlink()
    return missed


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print a line for each figure. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--messages", type=int, default=STDIO_MESSAGES)
    chosen = parser.parse_args(arguments)
    missed = []
    if chosen.rounds:
        with tempfile.TemporaryDirectory() as store:
            missed.append(small(Path(store), chosen.rounds))
    if chosen.messages:
        with tempfile.TemporaryDirectory() as store:
            missed.append(large(Path(store), chosen.messages))
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
