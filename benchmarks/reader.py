"""Time to read and check a capture of a million messages, compared with `json.loads` on each line; and time to write it.

    python -m benchmarks.reader
    python -m benchmarks.reader --messages 100000 --rounds 5

The capture is made by mcpspy's own writer: requests and results in turns, 200 bytes each. `pair` is the reader and the exchanges,
`check` these and the findings, `live` the former line by line, as they come while somebody follows. Each measure has a process of
its own, and they take turns; times are of the processor, memory is the peak. `mixed` is another capture, with a bit of everything.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks import mixed
from benchmarks.report import median
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import CHUNK_BYTES, Reader, read
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, SERVER, Frame, Header, Open
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import Transcriber, transcribe

PAYLOAD_BYTES = 200
MICROSECONDS = 1e6
SAMPLE = 100_000
"""So many lines are enough to measure writing."""

MAX_PAIR_RATIO = 1.0
MAX_CHECK_RATIO = 1.5
MAX_LIVE_US = 30.0
MIN_RATE = 1.0
MAX_PEAK_MIB = 400


def payload(message: dict[str, object], filler: dict[str, object]) -> bytes:
    """`message` as a line of 200 bytes, by the length of the text in `filler`, which is a part of it."""
    filler["text"] = ""
    filler["text"] = "x" * (PAYLOAD_BYTES - 1 - len(json.dumps(message, separators=(",", ":"))))
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def request(id: int) -> bytes:
    """Make a call of a tool."""
    arguments: dict[str, object] = {"page": id}
    params = {"name": "search", "arguments": arguments}
    return payload({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}, arguments)


def result(id: int) -> bytes:
    """Its result."""
    content: dict[str, object] = {"type": "text"}
    return payload({"jsonrpc": "2.0", "id": id, "result": {"content": [content], "isError": False}}, content)


def frames(messages: int) -> Iterator[Frame]:
    """Requests and results in turns, a millisecond apart."""
    for id in range(messages // 2):
        at_ns = id * 2_000_000
        yield Frame(0, at_ns, at_ns, request(id))
        yield Frame(1, at_ns + 1_000_000, at_ns + 1_000_000, result(id))


def opened(path: Path, *, wall_ns: int = 0) -> Writer:
    """Open a writer to a new capture, with the streams of a tap."""
    header = Header(
        capture_id=path.stem, wall_ns=wall_ns, monotonic_ns=0, pid=1, tapped={"transport": "stdio", "argv": ["server"]}
    )
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), header_line(header))
    writer((Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")))
    return writer


def write(path: Path, made: Iterable[Frame], *, messages: int) -> None:
    """Write a capture of so many messages, each with a write of its own, as a tap does."""
    writer = opened(path)
    for frame in made:
        writer.frame(frame.stream, frame.at_ns, frame.data)
    writer.close(messages * 1_000_000)


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


def read_us(path: Path) -> float:
    """Measure the reader: the file to records, which are thrown away."""
    start = time.process_time()
    count = sum(1 for _ in read(path))
    return (time.process_time() - start) / count * MICROSECONDS


def pair_us(path: Path) -> float:
    """Reader and transcript: the file to exchanges, which are kept."""
    start = time.process_time()
    transcriber = Transcriber()
    for batch in read(path).batches():
        transcriber.feed_lines(batch)
    took = time.process_time() - start
    return took / transcriber.transcript.captures[0].messages * MICROSECONDS


def check_us(path: Path) -> float:
    """Measure the same and the findings: all that `mcpspy check` does before it prints."""
    start = time.process_time()
    transcript = transcribe(read(path))
    all_findings(transcript)
    took = time.process_time() - start
    return took / transcript.captures[0].messages * MICROSECONDS


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
    "read": read_us,
    "pair": pair_us,
    "check": check_us,
    "live": live_us,
    "json.dumps": dumps_us,
    "write": write_us,
    "write many": write_many_us,
}

OF_MIXED = ("json.loads", "pair", "check", "live")
"""The measures that are taken of the mixed capture too."""


def measured(name: str, path: Path) -> tuple[float, float]:
    """Take one measure in a process of its own: microseconds, and the peak of its memory in MiB."""
    command = [sys.executable, "-m", "benchmarks.reader", "--measure", name, "--capture", str(path)]
    us, peak_mib = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return float(us), float(peak_mib)


Samples = dict[str, list[tuple[float, float]]]


def report(samples: Samples, of_mixed: Samples) -> int:
    """Print the medians and their ratios; 1 where a target is missed."""
    us, us_mixed = medians(samples), medians(of_mixed)
    peak_mib = max(mib for column in (samples["check"], of_mixed["check"]) for _, mib in column)
    for name, value in us.items():
        print(f"{name:12} {value:6.2f} µs a line, peak {max(mib for _, mib in samples[name]):5.0f} MiB{beside(us_mixed, name)}")
    missed = []
    live = max(us["live"], us_mixed["live"])
    for name, target in (("pair", MAX_PAIR_RATIO), ("check", MAX_CHECK_RATIO)):
        ratio, mixed_ratio = us[name] / us["json.loads"], us_mixed[name] / us_mixed["json.loads"]
        print(f"{name} / json.loads: {ratio:.2f}; mixed {mixed_ratio:.2f} (target: at most {target})")
        missed.append(max(ratio, mixed_ratio) > target)
    print(f"live: {us['live']:.1f} µs a message; mixed {us_mixed['live']:.1f} (target: at most {MAX_LIVE_US})")
    line_by_line, many = us["json.dumps"] / us["write"], us["json.dumps"] / us["write many"]
    print(
        f"rate of write / rate of json.dumps: {line_by_line:.2f} line by line, {many:.2f} by the read (target: at least {MIN_RATE})"
    )
    print(f"peak memory of check: {peak_mib:.0f} MiB (target: below {MAX_PEAK_MIB})")
    missed += [live > MAX_LIVE_US, line_by_line < MIN_RATE, peak_mib >= MAX_PEAK_MIB]
    return int(any(missed))


def medians(samples: Samples) -> dict[str, float]:
    """Return the median time of each measure."""
    return {name: median(taken_us for taken_us, _ in column) or 0.0 for name, column in samples.items()}


def beside(us_mixed: dict[str, float], name: str) -> str:
    """Format the same measure of the mixed capture."""
    return f"; mixed {us_mixed[name]:6.2f} µs" if name in us_mixed else ""


def main(arguments: list[str] | None = None) -> int:
    """Make the capture, and let the measures take turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=MEASURES, help="one measure alone, of --capture; prints microseconds and MiB")
    parser.add_argument("--capture", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        us = MEASURES[chosen.measure](chosen.capture)
        print(us, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mcpspy"
        write(path, frames(chosen.messages), messages=chosen.messages)
        other = Path(folder) / "mixed.mcpspy"
        write(other, mixed.frames(chosen.messages), messages=chosen.messages)
        megabytes = path.stat().st_size / 1e6
        print(f"{chosen.messages:,} messages of {PAYLOAD_BYTES} bytes, {megabytes:.0f} MB, Python {sys.version.split()[0]}")
        samples: Samples = {name: [] for name in MEASURES}
        of_mixed: Samples = {name: [] for name in OF_MIXED}
        for _ in range(chosen.rounds):
            for name, column in samples.items():
                column.append(measured(name, path))
            for name, column in of_mixed.items():
                column.append(measured(name, other))
    return report(samples, of_mixed)


if __name__ == "__main__":
    sys.exit(main())
