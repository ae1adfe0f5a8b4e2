"""The cost of a round trip of 200 bytes with a thread for each pipe, as on Windows, against `poll`.

    taskset -c 0 .venv/bin/python -m benchmarks.pipe_threads --rounds 6

Direct, with `poll` and with threads take turns; each row has the least median of the rounds, and what it adds to direct.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.processes import tree, usage

WITH_POLL = "from mcpspy.__main__ import main; main()"
WITH_THREADS = f"""
import os, sys
set_blocking = os.set_blocking
def of_signals_alone(fd, blocking):
    if sys._getframe(1).f_globals["__name__"] == "mcpspy.platform.signals":
        set_blocking(fd, blocking)
os.set_blocking = of_signals_alone
from mcpspy.platform import descriptors, pipe_threads
for name in ("POLLERR", "POLLHUP", "POLLIN", "POLLOUT", "poll", "read", "release", "rest_of", "sender"):
    setattr(descriptors, name, getattr(pipe_threads, name))
{WITH_POLL}
"""
MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}\n' % (b"y" * 141)
WARM_UP = 200


def measured(command: list[str], count: int, home: str) -> tuple[float, float]:
    """Return the median of the round trips, and the processor time of what is between for each, in µs."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"MCPSPY_HOME": home}, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    writing, reading = process.stdin.fileno(), process.stdout.fileno()
    took_s, before_s, pids = [], 0.0, [process.pid]
    for turn in range(WARM_UP + count):
        if turn == WARM_UP:
            pids = [pid for pid in tree(process.pid) if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") != "cat\n"]
            before_s = usage(pids).cpu_s
        began_s = time.perf_counter()
        os.write(writing, MESSAGE)
        left = len(MESSAGE)
        while left:
            left -= len(os.read(reading, 65536))
        took_s.append(time.perf_counter() - began_s)
    cpu_s = usage(pids).cpu_s - before_s
    process.stdin.close()
    process.wait()
    return median(took_s[WARM_UP:]) * 1e6, cpu_s / count * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--count", type=int, default=10_000)
    arguments = parser.parse_args()
    ways = {"direct": ["cat"]}
    for name, code in (("poll", WITH_POLL), ("threads", WITH_THREADS)):
        ways[name] = [sys.executable, "-c", code, "run", "--quiet", "--no-control", "--", "cat"]
    least = dict.fromkeys(ways, (float("inf"), float("inf")))
    with TemporaryDirectory() as home:
        for _ in range(arguments.rounds):
            for name, command in ways.items():
                latency_us, cpu_us = measured(command, arguments.count, home)
                least[name] = min(least[name][0], latency_us), min(least[name][1], cpu_us)
    for name, (latency_us, cpu_us) in least.items():
        print(
            f"{name:8} {latency_us:7.1f} µs, added {latency_us - least['direct'][0]:6.1f} µs, processor time {cpu_us:6.1f} µs"
        )


if __name__ == "__main__":
    main()
