"""Measure stdio proxies against each other in one run: the same client and server for all, taking turns within each round.

    python -m benchmarks.bench_stdio --peers direct,tee,mcpspy --rounds 5 --cells lat1c,p200,p4k,b16,b64,idle

Results go to `--out` (JSON, every sample) and beside it as a Markdown table of medians. README.md has the rest.
"""

import argparse
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import executable, tree, usage
from benchmarks.programs import OUT, STDIO_DRIVE, STDIO_SERVER, build
from benchmarks.report import Results, Sample, figure, median, number, table

Count = Callable[[Path], int]

DRIVER_TIMEOUT_S = 20
IDLE_SETTLE_S = 1.0
IDLE_SAMPLE_S = 3.0

MCPSPY = str(Path(sys.executable).with_name("mcpspy"))
# One line per frame record, members in the order the writer gives them. Streams 0 and 1 are the server's input and output;
# a frame in parts is counted at its last.
FRAME = re.compile(rb'^\{"n":\d+,"at_ns":\d+,"kind":"frame","stream":[01](?:,"first_ns":\d+)?(?!,"first_ns"|,"part":true)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Program between the client and the server. `{cap}` is the path that it may record to, `{srv}` the server.

    `count` tells how many of the frames that passed were recorded. `watcher` is a second process that reads the recording while
    it grows; it starts as soon as there is one.
    """

    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    count: Count | None = None
    watcher: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One scene of the driver, on all processors or on the first alone. Large ones are measured in fewer rounds."""

    scene: str
    one_core: bool = False
    large: bool = False


def count_lines(*files: Path) -> int:
    """Count the newlines of some files; one that does not exist has none."""
    return sum(line_count(file) for file in files if file.exists())


def line_count(file: Path) -> int:
    """Count the newlines of one file, which may be larger than memory."""
    with file.open("rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))


def count_tee(capture: Path) -> int:
    """Frames in the two files that the tees write."""
    return count_lines(capture.with_name(capture.name + ".in"), capture.with_name(capture.name + ".out"))


def count_mcpspy(capture: Path) -> int:
    """Whole frames of the server's input and output in a capture."""
    with capture.open("rb") as lines:
        return sum(1 for line in lines if FRAME.match(line))


def count_mcphawk(capture: Path) -> int:
    """Rows of MCPHawk's table of messages."""
    with sqlite3.connect(capture) as database:
        rows: int = database.execute("select count(*) from messages").fetchone()[0]
    return rows


def count_by_command(command: str) -> Count:
    """Return a counter that runs a shell command and reads the number it prints."""

    def count(capture: Path) -> int:
        shell = command.replace("{cap}", shlex.quote(str(capture)))
        return int(subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout)

    return count


def built_in_peers() -> dict[str, Peer]:
    """Return the peers that need no `--add`."""
    mcpspy = [MCPSPY, "run", "--quiet", "--capture", "{cap}", "--", "{srv}"]
    store = {"MCPSPY_HOME": str(OUT / "store")}
    peers = {
        "direct": Peer(argv=["{srv}"]),
        "tee": Peer(argv=["sh", "-c", "tee {cap}.in | {srv} | tee {cap}.out"], count=count_tee),
        "mcpspy": Peer(argv=mcpspy, environment=store, count=count_mcpspy),
        "mcpspy+show": Peer(argv=mcpspy, environment=store, count=count_mcpspy, watcher=[MCPSPY, "show", "-f", "{cap}"]),
    }
    if hawk := os.environ.get("MCPHAWK"):  # its executable; `pip install mcphawk` in an environment of its own
        environment = {"MCPHAWK_DB": "{cap}", "MCPHAWK_HOME": str(OUT / "hawk")}
        peers["mcphawk"] = Peer(argv=[hawk, "wrap", "--", "{srv}"], environment=environment, count=count_mcphawk)
    return peers


CELLS = {
    "lat": Cell(scene="lat 200 {secs} 0"),
    "lat1c": Cell(scene="lat 200 {secs} 0", one_core=True),
    "p200": Cell(scene="pipe 200 {secs} 64"),
    "p4k": Cell(scene="pipe 4096 {secs} 64"),
    "b16": Cell(scene="big 16777216 3 s2c", large=True),
    "b16up": Cell(scene="big 16777216 3 c2s", large=True),
    "b64": Cell(scene="big 67108864 3 s2c", large=True),
    "idle": Cell(scene="idle 0 0 0"),
}


def read_driver(driver: subprocess.Popen[bytes]) -> Sample:
    """Read the driver's line. An error is on a line of its own, after a line that it cut short."""
    assert driver.stdout is not None
    for _ in range(2):
        try:
            sample: Sample = json.loads(driver.stdout.readline())
        except ValueError:
            continue
        return sample
    return {"error": "no output"}


def proxy_usage(driver: subprocess.Popen[bytes], sample: Sample, *, idle: bool) -> None:
    """Add what the processes cost that are neither the driver nor the server."""
    ours = {str(STDIO_DRIVE), str(STDIO_SERVER)}
    pids = [pid for pid in tree(driver.pid) if pid != driver.pid and executable(pid) not in ours]
    used = usage(pids)
    sample["cpu_us_msg"] = used.cpu_s / max(1, sample["msgs"]) * 1e6
    sample.update(hwm=used.peak_mib, rss=used.resident_mib, procs=len(pids))
    if idle:
        time.sleep(IDLE_SETTLE_S)
        before = usage(pids)
        time.sleep(IDLE_SAMPLE_S)
        after = usage(pids)
        sample["idle_ms_s"] = (after.cpu_s - before.cpu_s) / IDLE_SAMPLE_S * 1e3
        sample["rss"] = after.resident_mib


@contextmanager
def watching(argv: list[str], capture: Path) -> Iterator[None]:
    """Run a second process on the capture, once that exists, for as long as the block lasts."""
    if not argv:
        yield
        return
    deadline = time.monotonic() + DRIVER_TIMEOUT_S
    while not capture.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:
        try:
            yield
        finally:
            watcher.terminate()


def measure(peer: Peer, cell: Cell, name: str, *, seconds: float, sockets: bool) -> Sample:
    """Take one sample: one driver, one proxy, one server, from start to end."""
    capture = OUT / "cap.bin"
    for old in OUT.glob("cap.bin*"):
        old.unlink()

    def filled(text: str) -> str:
        return text.replace("{cap}", str(capture)).replace("{srv}", str(STDIO_SERVER))

    environment = {**os.environ, **{key: filled(value) for key, value in peer.environment.items()}}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # it would make every start compile what an installed package has compiled
    if sockets:
        environment["SOCK"] = "1"
    pin = ["taskset", "-c", "0"] if cell.one_core else []
    command = [*pin, str(STDIO_DRIVE), *cell.scene.format(secs=seconds).split(), "--", *map(filled, peer.argv)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as driver:
        with watching([filled(word) for word in peer.watcher], capture):
            sample = read_driver(driver)
        if "error" not in sample:
            proxy_usage(driver, sample, idle=name == "idle")
        end(driver)
    if "error" not in sample and peer.count and name != "idle":
        sample["rec"] = peer.count(capture) / (2 * sample["msgs"] - 1)  # every request has an answer; one is a notification
    return sample


def end(driver: subprocess.Popen[bytes]) -> None:
    """Tell the driver that it may go, and see that it does."""
    assert driver.stdin is not None
    try:
        driver.stdin.close()
    except BrokenPipeError:
        pass
    try:
        driver.wait(DRIVER_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        driver.kill()


HEAD = [
    "peer",
    "lat p50 µs",
    "p99",
    "1-core p50",
    "p99",
    "200B msg/s",
    "CPU µs/msg",
    "4K msg/s",
    "16M↓ MB/s",
    "16M↑",
    "64M↓",
    "idle RSS MiB",
    "peak@16M",
    "peak@64M",
    "startup ms",
    "idle CPU ms/s",
    "recorded",
]
FIGURES = [
    ("lat", "p50_us", 1),
    ("lat", "p99_us", 1),
    ("lat1c", "p50_us", 1),
    ("lat1c", "p99_us", 1),
    ("p200", "msgs_s", 0),
    ("p200", "cpu_us_msg", 2),
    ("p4k", "msgs_s", 0),
    ("b16", "MB_s", 0),
    ("b16up", "MB_s", 0),
    ("b64", "MB_s", 0),
    ("idle", "rss", 1),
    ("b16", "hwm", 1),
    ("b64", "hwm", 1),
]


def summary(results: Results) -> str:
    """Make the table with one row of medians per peer; `recorded` is the worst sample of all."""
    rows = []
    for peer, cells in results.items():
        samples = [sample for cell in cells.values() for sample in cell]
        recorded = [sample["rec"] for sample in samples if "rec" in sample]
        row = [peer, *(number(figure(results, peer, cell, name), decimals) for cell, name, decimals in FIGURES)]
        row.append(number(median(sample.get("startup_ms") for sample in samples)))
        row.append(number(figure(results, peer, "idle", "idle_ms_s"), 2))
        row.append(f"{min(recorded) * 100:.1f}%" if recorded else "–")
        rows.append(row)
    return table(HEAD, rows)


def run(options: argparse.Namespace, peers: dict[str, Peer]) -> Results:
    """Run all rounds; the results are written after each."""
    results: Results = {name: {} for name in peers}
    for turn in range(options.rounds):
        for cell_name in options.cells.split(","):
            cell = CELLS[cell_name]
            if (cell.large and turn >= options.big_rounds) or (cell_name == "idle" and turn >= 1):
                continue
            for name, peer in peers.items():
                sample = measure(peer, cell, cell_name, seconds=options.secs, sockets=options.sock)
                results[name].setdefault(cell_name, []).append(sample)
                if "error" in sample:
                    print("error:", name, cell_name, sample, file=sys.stderr, flush=True)
        options.out.write_text(json.dumps(results))
        print(time.strftime("%T"), "round", turn + 1, "of", options.rounds, file=sys.stderr, flush=True)
    return results


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Measure stdio proxies against each other.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--big-rounds", type=int, default=3, help="rounds of the 16 and 64 MiB cells")
    parser.add_argument("--secs", type=float, default=0.6, help="how long a latency or throughput cell lasts")
    parser.add_argument("--peers", default="direct,tee,mcpspy", help="names, separated by commas")
    parser.add_argument("--cells", default=",".join(CELLS), help=f"of {','.join(CELLS)}")
    parser.add_argument("--add", action="append", default=[], metavar="NAME=COMMAND", help="a peer; {cap}, {srv} are filled in")
    parser.add_argument("--count", help="shell command that prints how many frames an added peer recorded in {cap}")
    parser.add_argument("--sock", action="store_true", help="UNIX sockets instead of pipes, as Node clients give")
    parser.add_argument("--out", type=Path, default=OUT / "stdio.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Build, measure, report. Returns 1 if any sample was an error."""
    options = parse(arguments)
    build()
    known = built_in_peers()
    names = options.peers.split(",")
    for added in options.add:
        name, _, command = added.partition("=")
        known[name] = Peer(argv=shlex.split(command), count=count_by_command(options.count) if options.count else None)
        names += [name] if name not in names else []
    results = run(options, {name: known[name] for name in names})
    text = summary(results)
    options.out.with_suffix(".md").write_text(text)
    print(text, end="")
    return int(any("error" in sample for cells in results.values() for samples in cells.values() for sample in samples))


if __name__ == "__main__":
    sys.exit(main())
