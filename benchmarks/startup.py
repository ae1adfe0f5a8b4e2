"""Time until a client gets the first byte through `mcpspy run`, compared with a bare start of the same interpreter.

    python -m benchmarks.startup --rounds 40
    python -m benchmarks.startup -- mcpspy run --quiet -- echo x

The command is timed from spawn to the first byte that it prints, `python -c pass` from spawn to its end; they take turns.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import median

MCPSPY = str(Path(sys.executable).with_name("mcpspy"))
DEFAULT = [MCPSPY, "run", "--quiet", "--", "echo", "x"]
BARE = [sys.executable, "-c", "pass"]
WARM_UP_ROUNDS = 2
MS_PER_S = 1e3


def environment(store: str) -> dict[str, str]:
    """Ours, with a store of its own, and with compiled modules kept: an installed package has them, a checkout may not."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "MCPSPY_HOME": store}


def to_the_first_byte_ms(command: list[str], variables: dict[str, str]) -> float:
    """From spawn to the first byte that comes out.

    Raises:
        RuntimeError: if none does.
    """
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        took = time.perf_counter() - start
    if not first:
        raise RuntimeError(f"no output from {command}")
    return took * MS_PER_S


def to_the_end_ms(command: list[str], variables: dict[str, str]) -> float:
    """From spawn to the end."""
    start = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, env=variables)
    return (time.perf_counter() - start) * MS_PER_S


def interleaved(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """Return the median of each measure; they take turns, and the first rounds do not count."""
    samples = [[measure() for measure in measures] for _ in range(WARM_UP_ROUNDS + rounds)][WARM_UP_ROUNDS:]
    return [median(column) or 0.0 for column in zip(*samples, strict=True)]


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description="Time to the first byte, against a bare start of the interpreter.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("command", nargs="*", default=DEFAULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        variables = environment(store)
        command, bare = interleaved(
            options.rounds,
            lambda: to_the_first_byte_ms(options.command, variables),
            lambda: to_the_end_ms(BARE, variables),
        )
    print(f"first byte {command:.1f} ms, python -c pass {bare:.1f} ms, ratio {command / bare:.2f}")


if __name__ == "__main__":
    main()
