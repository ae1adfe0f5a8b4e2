"""All benchmarks of commands that read captures, one after another: what docs/performance.md says of reading.

    python -m benchmarks.reading
    python -m benchmarks.reading --quick

They take about an hour and up to 3 GB in the folder for temporary files; `--quick` takes some minutes, with smaller captures, and
shows only that all of them run. Each begins with the command that runs it alone, and the load of the machine.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence

PROGRAMS: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
    (("commands",), ("--rounds", "1")),
    (("reader",), ("--rounds", "1", "--messages", "20000")),
    (("large",), ("--rounds", "1", "--messages", "100000")),
    (("large", "--http"), ("--rounds", "1", "--messages", "40000")),
    (("filters",), ("--rounds", "1", "--messages", "20000")),
)
"""The programs with their arguments, and those that `--quick` adds."""


def main(arguments: list[str] | None = None) -> int:
    """Run them all. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)
    print(f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} processors", flush=True)
    missed = []
    for (name, *words), quick in PROGRAMS:
        command = [f"benchmarks.{name}", *words, *(quick if chosen.quick else ())]
        print(f"\npython -m {' '.join(command)}    # load average {os.getloadavg()[0]:.1f}", flush=True)
        missed.append(subprocess.run([sys.executable, "-m", *command], check=False).returncode)
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
