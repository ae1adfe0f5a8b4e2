"""Time to a mock's first answer, compared with a server through `mcpspy run`; and the requests that it answers in a second.

    python -m benchmarks.mock --rounds 20
    python -m benchmarks.mock --requests 60000 --exchanges 1000
    python -m benchmarks.mock --python FILE      with the mcpspy of another interpreter, as of a plain installation

The start is timed from spawn to the first line of an answer, of a mock of `captures/everything.mcpspy` and of `mcpspy run -- cat`;
they take turns. Requests go into a pipe as fast as it takes them, and are counted as their answers come.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.report import median
from benchmarks.startup import MS_PER_S, environment
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.folder import create
from mcpspy.records import CLIENT, SERVER, Frame, Header, Open

CAPTURES = Path(__file__).parents[1] / "captures"
OPENING = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n'
WARM_UP_ROUNDS = 2


def to_the_first_answer_ms(command: list[str], variables: dict[str, str]) -> float:
    """From spawn to the first whole line.

    Raises:
        RuntimeError: if none comes.
    """
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(OPENING)
        process.stdin.flush()
        line = process.stdout.readline()
        took = time.perf_counter() - start
        process.stdin.close()
        process.stdout.read()
    if not line.endswith(b"\n"):
        raise RuntimeError(f"no answer from {command}")
    return took * MS_PER_S


def recorded(path: str, exchanges: int) -> None:
    """Write a capture of so many calls that differ, each answered with about 150 bytes."""
    header = Header(
        capture_id="0" * 16, wall_ns=time.time_ns(), monotonic_ns=0, pid=1, label="bench", tapped={"transport": "stdio"}
    )
    writer = Writer(create(path, "", wall_ns=0)[0], header_line(header))
    writer([Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")])
    for at in range(exchanges):
        answer = {"jsonrpc": "2.0", "id": at, "result": {"content": [{"type": "text", "text": f"file {at} " + "x" * 80}]}}
        writer([Frame(0, at, at, call_line(at, at)), Frame(1, at, at, json.dumps(answer).encode() + b"\n")])
    writer.close(exchanges)


def call_line(id: int, number: int) -> bytes:
    """Make the call with this number, under this id."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/%d"}}}\n' % (
        id,
        number,
    )


def rate(command: list[str], variables: dict[str, str], requests: int, exchanges: int) -> tuple[float, float]:
    """Answers a second, from the first to the last, to requests that wait in a pipe; and µs of processor time for each.

    Raises:
        RuntimeError: if answers are missing.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    sent = b"".join(call_line(id, id % exchanges) for id in range(requests))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def send() -> None:
            stdin.write(sent)
            stdin.close()

        sender = threading.Thread(target=send)
        sender.start()
        lines = os.read(stdout.fileno(), 1 << 20).count(b"\n")
        start = time.perf_counter()
        while chunk := os.read(stdout.fileno(), 1 << 20):
            lines += chunk.count(b"\n")
        took = time.perf_counter() - start
        sender.join()
    if lines != requests:
        raise RuntimeError(f"{requests} requests got {lines} answers")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return requests / took, (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / requests * 1e6


def main() -> None:
    """Measure and print two lines."""
    parser = argparse.ArgumentParser(description="A mock's first answer against that of run, and its rate.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=60_000)
    parser.add_argument("--exchanges", type=int, default=1000)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--capture", default=str(CAPTURES / "everything.mcpspy"))
    options = parser.parse_args()
    mcpspy = str(Path(options.python).with_name("mcpspy"))
    with tempfile.TemporaryDirectory() as store:
        variables = environment(store)
        commands = ([mcpspy, "mock", "--quiet", options.capture], [mcpspy, "run", "--quiet", "--", "cat"])
        samples = [
            [to_the_first_answer_ms(command, variables) for command in commands] for _ in range(WARM_UP_ROUNDS + options.rounds)
        ]
        mock, run = (list(column) for column in zip(*samples[WARM_UP_ROUNDS:], strict=True))
        middle = median(a / b for a, b in zip(mock, run, strict=True)) or 0
        medians = median(mock) or 0, median(run) or 1
        print(
            f"first answer {medians[0]:.1f} ms, of run {medians[1]:.1f} ms: {medians[0] / medians[1]:.2f};"
            f" round by round {middle:.2f}; of the fastest {min(mock):.1f} / {min(run):.1f} = {min(mock) / min(run):.2f}"
        )
        path = f"{store}/bench.mcpspy"
        recorded(path, options.exchanges)
        per_s, cost_us = rate([mcpspy, "mock", "--quiet", path], variables, options.requests, options.exchanges)
        print(
            f"{per_s:,.0f} requests/s of {options.exchanges:,} recorded exchanges, {cost_us:.1f} µs of processor each, with the start"
        )


if __name__ == "__main__":
    main()
