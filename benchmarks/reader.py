"""Time and memory to read and check captures, compared with `json.loads` on each line; and the time to write them.

    python -m benchmarks.reader
    python -m benchmarks.reader --messages 100000 --rounds 5
    python -m benchmarks.reader --shape "POSTs, JSON"

The captures are those of `benchmarks.shapes`: a million messages on stdio, 400,000 over HTTP. `fold` reads and pairs, `check` adds
all findings, `live` folds line by line, as lines come while somebody follows. Each measure has a process of its own, and they take
turns; times are of the processor, memory is the peak.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from benchmarks.report import median
from benchmarks.shapes import SHAPES, frames, opened
from mcpspy.capture.file.reader import CHUNK_BYTES, Reader, read
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import Transcriber, transcribe

MICROSECONDS = 1e6
SAMPLE = 100_000
"""So many lines are enough to measure writing."""

OF_HTTP = 0.4
"""The share of messages that captures of HTTP have: they take three lines each, and those of stdio one."""

MAX_FOLD_RATIO = 1.3
MAX_CHECK_RATIOS = {"in turn": 2.2, "all in flight": 2.2, "mixed": 2.2}
MAX_CHECK_RATIO_HTTP = 4.0
MAX_FOLD_MIB = {"all in flight": 400}
MAX_FOLD_MIB_ANSWERED = 300
MAX_CHECK_MIB = 700
MAX_LIVE_US = 30.0
MIN_RATE = 1.0


# --- The measures: microseconds of the processor for each line ---


def write_us(path: Path) -> float:
    """Measure the writer for lines that come one by one: a write each, into a file beside the capture."""
    made = [(frame.stream, frame.at_ns, frame.data) for frame in frames(SAMPLE)]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        writer = opened(Path(folder) / "written.mcpspy")
        start = time.process_time()
        for stream, at_ns, data in made:
            writer.frame(stream, at_ns, data)
        took = time.process_time() - start
        writer.close(0)
    return took / SAMPLE * MICROSECONDS


def write_many_us(path: Path) -> float:
    """Measure the writer for lines that come 50 in a read: one write for all of them."""
    made = [frame.data for frame in frames(SAMPLE)]
    reads = [made[at : at + 50] for at in range(0, SAMPLE, 50)]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        writer = opened(Path(folder) / "written.mcpspy")
        start = time.process_time()
        for at_ns, lines in enumerate(reads):
            writer.frames(0, at_ns, lines)
        took = time.process_time() - start
        writer.close(0)
    return took / SAMPLE * MICROSECONDS


def dumps_us(_: Path) -> float:
    """`json.dumps` for the same lines, which are not written, and have no checksum of their own."""
    made = [
        {
            "n": number,
            "at_ns": frame.at_ns,
            "kind": "frame",
            "stream": frame.stream,
            "text": frame.data.decode(),
            "crc": "01234567",
        }
        for number, frame in enumerate(frames(SAMPLE))
    ]
    start = time.process_time()
    for fields in made:
        json.dumps(fields)
    return (time.process_time() - start) / SAMPLE * MICROSECONDS


def loads_us(path: Path) -> float:
    """`json.loads` on each line. Lines come by the chunk, because a million at once would be memory of the measure's own."""
    took, count, held = 0.0, 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            *lines, held = (held + chunk).split(b"\n")
            start = time.process_time()
            for line in lines:
                json.loads(line)
            took += time.process_time() - start
            count += len(lines)
    return took / count * MICROSECONDS


def fold_us(path: Path) -> float:
    """Reader and transcript: the file to rows, which are kept. Per line, as what it is compared with."""
    start = time.process_time()
    transcribe(read(path), with_findings=False)
    return (time.process_time() - start) / _lines(path) * MICROSECONDS


def check_us(path: Path) -> float:
    """Measure the same and the findings: all that `mcpspy check` does before it prints."""
    start = time.process_time()
    all_findings(transcribe(read(path)))
    return (time.process_time() - start) / _lines(path) * MICROSECONDS


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK_BYTES), b""))


def live_us(path: Path) -> float:
    """Reader and transcript, for lines that come one by one."""
    reader, transcriber = Reader(str(path)), Transcriber()
    with path.open("rb") as file:
        lines = list(islice(file, SAMPLE))
    start = time.process_time()
    for line in lines:
        for record in reader.feed(line):
            transcriber.feed(record)
    return (time.process_time() - start) / len(lines) * MICROSECONDS


MEASURES: dict[str, Callable[[Path], float]] = {
    "json.loads": loads_us,
    "fold": fold_us,
    "check": check_us,
    "live": live_us,
    "json.dumps": dumps_us,
    "write": write_us,
    "write many": write_many_us,
}

OF_EACH_SHAPE = ("json.loads", "fold", "check", "live")
OF_ONE_SHAPE = ("json.dumps", "write", "write many")
"""Measurements of every shape, and those of the first alone: of the writer."""


def measured(name: str, path: Path) -> tuple[float, float]:
    """Take one measure in a process of its own: microseconds, and the peak of its memory in MiB."""
    command = [sys.executable, "-m", "benchmarks.reader", "--measure", name, "--capture", str(path)]
    us, peak_mib = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return float(us), float(peak_mib)


Samples = dict[str, list[tuple[float, float]]]


def report(shape: str, samples: Samples) -> bool:
    """Print the medians of a shape and their ratios. Return whether a target is missed."""
    us = {name: median(taken_us for taken_us, _ in column) or 0.0 for name, column in samples.items()}
    mib = {name: max(peak for _, peak in column) for name, column in samples.items()}
    fold, check = us["fold"] / us["json.loads"], us["check"] / us["json.loads"]
    limits = (MAX_FOLD_RATIO, MAX_CHECK_RATIOS.get(shape, MAX_CHECK_RATIO_HTTP), MAX_FOLD_MIB.get(shape, MAX_FOLD_MIB_ANSWERED))
    figures: list[float] = [fold, check, mib["fold"], mib["check"], us["live"]]
    targets: list[float] = [*limits, MAX_CHECK_MIB, MAX_LIVE_US]
    print(
        f"{shape:14} json.loads {us['json.loads']:5.2f} µs a line; fold ÷ that {fold:.2f} (target {targets[0]}), "
        f"check ÷ that {check:.2f} ({targets[1]}); fold {mib['fold']:.0f} MiB ({targets[2]}), check {mib['check']:.0f} MiB "
        f"({targets[3]}); live {us['live']:.1f} µs ({targets[4]:.0f})",
        flush=True,
    )
    if "write" in us:
        rates = us["json.dumps"] / us["write"], us["json.dumps"] / us["write many"]
        print(f"{'':14} rate of write ÷ json.dumps {rates[0]:.2f} by the line, {rates[1]:.2f} by the read (target {MIN_RATE})")
        figures.append(MIN_RATE)
        targets.append(rates[0])
    return any(figure > target for figure, target in zip(figures, targets, strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Make the captures, and let the measures take turns. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", choices=SHAPES, action="append", help="only this shape; can be repeated")
    parser.add_argument("--measure", choices=MEASURES, help="one measure alone, of --capture; prints microseconds and MiB")
    parser.add_argument("--capture", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        us = MEASURES[chosen.measure](chosen.capture)
        print(us, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return 0
    missed = []
    for number, shape in enumerate(chosen.shape or SHAPES):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.mcpspy"
            is_http = shape not in MAX_CHECK_RATIOS
            messages = int(chosen.messages * OF_HTTP) if is_http else chosen.messages
            SHAPES[shape](path, messages)
            print(
                f"{shape}: {messages:,} messages, {path.stat().st_size / 1e6:.0f} MB, Python {sys.version.split()[0]}",
                flush=True,
            )
            samples: Samples = {name: [] for name in (*OF_EACH_SHAPE, *(() if number else OF_ONE_SHAPE))}
            for _ in range(chosen.rounds):
                for name, column in samples.items():
                    column.append(measured(name, path))
        missed.append(report(shape, samples))
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
