"""Measure reverse proxies against each other in one run: the same upstream and client for all, taking turns within each round.

    python -m benchmarks.bench_http --peers 'direct,nginx(C)' --rounds 5
    taskset -c 0 python -m benchmarks.bench_http --rounds 3 --cells lat,t16,sselat,ssetput --out benchmarks/out/http1c.json

After the rounds each peer is started afresh for what leaves traces in memory: a thousand idle streams and 16 MiB bodies;
`--cells` skips that. Results go to `--out` (JSON, every sample) and beside it as a Markdown table of medians. README.md has
the rest.
"""

import argparse
import contextlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import listens, mortal, tree, usage
from benchmarks.programs import HTTP_DRIVE, HTTP_UP, OUT, build
from benchmarks.report import Results, Sample, figure, number, table

DRIVER_TIMEOUT_S = 60
START_TIMEOUT_S = 20
END_TIMEOUT_S = 5
SETTLE_S = 0.5
IDLE_SAMPLE_S = 2.0

NGINX = """
worker_processes 1; daemon off; error_log {out}/nginx.err; pid {out}/nginx.pid; worker_rlimit_nofile 20000;
events {{ worker_connections 8000; }}
http {{
  access_log {cap}; client_max_body_size 1g; keepalive_requests 100000000;
  client_body_temp_path {out}/nginx1; proxy_temp_path {out}/nginx2; fastcgi_temp_path {out}/nginx3;
  uwsgi_temp_path {out}/nginx4; scgi_temp_path {out}/nginx5;
  upstream u {{ server 127.0.0.1:{up}; keepalive 128; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_request_buffering off; proxy_read_timeout 1h;
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A reverse proxy that listens on `{port}` before the upstream on `{up}`; it may record to `{cap}`, or into `{out}`.

    No argv: the driver goes straight to the upstream. `path` is the path of the request.
    """

    argv: list[str]
    path: str = "/mcp"


def built_in_peers() -> dict[str, Peer]:
    """Return the peers that need no `--add`."""
    peers = {"direct": Peer(argv=[]), "nginx(C)": Peer(argv=["nginx", "-c", "{out}/nginx.conf"])}
    if mitmdump := os.environ.get("MITMDUMP"):  # its executable; `pip install mitmproxy` in an environment of its own
        listen = ["--listen-host", "127.0.0.1", "-p", "{port}"]
        options = ["--set", "confdir={out}/mitm", "--set", "stream_large_bodies=1"]
        mode = ["--mode", "reverse:http://127.0.0.1:{up}"]
        peers["mitmdump(stream)"] = Peer(argv=[mitmdump, "-q", *mode, *listen, "-w", "{cap}", *options])
    if hawk := os.environ.get("MCPHAWK"):
        variables = ["env", "MCPHAWK_DB={cap}", "MCPHAWK_HOME={out}/hawk"]
        target = ["--target", "http://127.0.0.1:{up}/mcp", "--port", "{port}"]
        peers["mcphawk"] = Peer(argv=[*variables, hawk, "proxy", *target], path="/p/server")
    return peers


CELLS = {
    "lat": "lat {secs}",
    "latv": "latv {secs}",
    "late": "late {secs}",
    "t1": "tput {secs} 1",
    "t16": "tput {secs} 16",
    "t16v": "tputv {secs} 16",
    "t16e": "tpute {secs} 16",
    "t64": "tput {secs} 64",
    "sselat": "sselat 600 1000 200",
    "ssetput": "ssetput 30000 200",
}


def free_port() -> int:
    """Find a port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def comes_up(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the process listens there; False if somebody else does, if it ends first, or if time runs out."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if listens(port, tree(process.pid)):
            return True
        time.sleep(0.01)
    return False


class Running:
    """A peer between its start and its end; without an argv, the upstream itself."""

    def __init__(self, name: str, peer: Peer, upstream_port: int) -> None:
        self.peer = peer
        self.port = upstream_port
        self.process: subprocess.Popen[bytes] | None = None
        self.start_ms = 0.0
        if peer.argv:
            self._start(name, upstream_port)

    def _start(self, name: str, upstream_port: int) -> None:
        self.port = free_port()
        capture = OUT / f"http-{''.join(filter(str.isalnum, name))}.cap"
        for suffix in ("", "-wal", "-shm"):
            capture.with_name(capture.name + suffix).unlink(missing_ok=True)
        values = {"port": self.port, "up": upstream_port, "cap": capture, "out": OUT}
        (OUT / "nginx.conf").write_text(NGINX.format(**values))
        started = time.monotonic()
        with capture.with_suffix(".log").open("wb") as log:
            argv = [word.format(**values) for word in self.peer.argv]
            self.process = subprocess.Popen(mortal(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        if not comes_up(self.port, self.process):
            self.end()
            raise RuntimeError(f"{name} does not listen on port {self.port}; its output is in {capture.with_suffix('.log')}")
        self.start_ms = (time.monotonic() - started) * 1e3

    def pids(self) -> list[int]:
        """Return the processes of the proxy."""
        return tree(self.process.pid) if self.process else []

    def end(self) -> None:
        """Ask it to go; insist after a while, also with what it has started."""
        if self.process is None:
            return
        started = self.pids()
        self.process.terminate()
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            for pid in started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()


def read_driver(driver: subprocess.Popen[bytes]) -> Sample:
    """Read the driver's line. An error is on a line of its own, after a line that it cut short."""
    assert driver.stdout is not None
    ready, _, _ = select.select([driver.stdout], [], [], DRIVER_TIMEOUT_S)
    for _ in range(2 if ready else 0):
        try:
            sample: Sample = json.loads(driver.stdout.readline())
        except ValueError:
            continue
        return sample
    return {"error": "no output"}


def measure(running: Running, scene: str, *, idle: bool = False) -> Sample:
    """Take one sample: a driver's scene, and its cost for the proxy. `idle` waits, and measures the cost of open connections."""
    before = usage(running.pids())
    argv = [str(HTTP_DRIVE), str(running.port), running.peer.path, *scene.split()]
    with subprocess.Popen(mortal(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        try:
            sample = read_driver(driver)
            if idle:
                time.sleep(SETTLE_S)
            after = usage(running.pids())
            sample.update(hwm=after.peak_mib, rss=after.resident_mib, rss0=before.resident_mib, cpu=after.cpu_s - before.cpu_s)
            if idle:
                time.sleep(IDLE_SAMPLE_S)
                sample["idle_ms_s"] = (usage(running.pids()).cpu_s - after.cpu_s) / IDLE_SAMPLE_S * 1e3
        finally:
            driver.kill()
    if sample.get("reqs"):
        sample["cpu_us_req"] = sample["cpu"] / sample["reqs"] * 1e6
    return sample


def note(results: Results, peer: str, cell: str, sample: Sample) -> None:
    """Keep a sample, and say so where it is an error."""
    results[peer].setdefault(cell, []).append(sample)
    if "error" in sample:
        print("error:", peer, cell, sample, file=sys.stderr, flush=True)


def rounds(options: argparse.Namespace, peers: dict[str, Peer], upstream_port: int, results: Results) -> None:
    """Measure all peers in turns. A cell in which a peer failed is not repeated for it."""
    running: dict[str, Running] = {}
    try:
        for name, peer in peers.items():
            running[name] = Running(name, peer, upstream_port)
            note(results, name, "start", {"start_ms": running[name].start_ms})
        for turn in range(options.rounds):
            for cell in options.cells.split(",") if options.cells else CELLS:
                for name, process in running.items():
                    earlier = results[name].get(cell, [])
                    if not earlier or any("error" not in sample for sample in earlier):
                        note(results, name, cell, measure(process, CELLS[cell].format(secs=options.secs)))
            options.out.write_text(json.dumps(results))
            print(time.strftime("%T"), "round", turn + 1, "of", options.rounds, file=sys.stderr, flush=True)
    finally:
        for process in running.values():
            process.end()


def afresh(options: argparse.Namespace, peers: dict[str, Peer], upstream_port: int, results: Results) -> None:
    """Run the scenes that change a process's memory, each in a process of its own."""
    scenes = {"idle": f"idle {options.idle}", "big": "big 16777216 3 down", "bigup": "big 16777216 3 up"}
    for name, peer in peers.items():
        for cell, scene in scenes.items():
            running = Running(name, peer, upstream_port)
            try:
                time.sleep(SETTLE_S)
                note(results, name, cell, measure(running, scene, idle=cell == "idle"))
            finally:
                running.end()


HEAD = [
    "peer",
    "POST p50 µs",
    "p99",
    "lengths vary: p50",
    "an event each: p50",
    "req/s c=1",
    "c=16",
    "lengths vary",
    "an event each",
    "c=64",
    "CPU µs/req",
    "lengths vary",
    "an event each",
    "SSE ev p50 µs",
    "p99",
    "SSE ev/s",
    "16M↓ MB/s",
    "16M↑",
    "peak MiB@16M↓",
    "RSS MiB",
    "KiB/idle SSE",
    "streams ok",
    "idle CPU ms/s",
    "startup ms",
]
FIGURES = [
    ("lat", "p50_us", 1),
    ("lat", "p99_us", 1),
    ("latv", "p50_us", 1),
    ("late", "p50_us", 1),
    ("t1", "req_s", 0),
    ("t16", "req_s", 0),
    ("t16v", "req_s", 0),
    ("t16e", "req_s", 0),
    ("t64", "req_s", 0),
    ("t16", "cpu_us_req", 1),
    ("t16v", "cpu_us_req", 1),
    ("t16e", "cpu_us_req", 1),
    ("sselat", "p50_us", 1),
    ("sselat", "p99_us", 1),
    ("ssetput", "ev_s", 0),
    ("big", "MB_s", 0),
    ("bigup", "MB_s", 0),
    ("big", "hwm", 1),
    ("idle", "rss0", 1),
    ("idle", "kib_per_stream", 1),
    ("idle", "ok", 0),
    ("idle", "idle_ms_s", 2),
    ("start", "start_ms", 0),
]


def summary(results: Results) -> str:
    """Make the table with one row of medians per peer."""
    for cells in results.values():
        for sample in cells.get("idle", []):
            if sample.get("ok"):
                sample["kib_per_stream"] = (sample["rss"] - sample["rss0"]) / sample["ok"] * 1024
    rows = [
        [peer, *(number(figure(results, peer, cell, name), decimals) for cell, name, decimals in FIGURES)] for peer in results
    ]
    return table(HEAD, rows)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Measure reverse proxies against each other.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=float, default=0.6, help="how long a latency or throughput cell lasts")
    parser.add_argument(
        "--peers", default="direct", help="names, separated by commas: direct, nginx(C), mitmdump(stream), mcphawk"
    )
    parser.add_argument("--cells", help=f"of {','.join(CELLS)}; without it also idle streams and 16 MiB bodies")
    parser.add_argument("--add", action="append", default=[], metavar="NAME=COMMAND", help="a peer; {port}, {up}, {cap}, {out}")
    parser.add_argument("--idle", type=int, default=1000, help="how many idle streams")
    parser.add_argument("--out", type=Path, default=OUT / "http.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Build, measure, report. Returns 1 if any sample was an error."""
    options = parse(arguments)
    build()
    known = built_in_peers()
    names = options.peers.split(",")
    for added in options.add:
        name, _, command = added.partition("=")
        known[name] = Peer(argv=shlex.split(command))
        names += [name] if name not in names else []
    peers = {name: known[name] for name in names}
    results: Results = {name: {} for name in peers}
    with subprocess.Popen(mortal([str(HTTP_UP), "0"]), stdout=subprocess.PIPE) as upstream:
        try:
            assert upstream.stdout is not None
            port = int(upstream.stdout.readline())
            rounds(options, peers, port, results)
            if not options.cells:
                afresh(options, peers, port, results)
        finally:
            upstream.kill()
    text = summary(results)
    options.out.write_text(json.dumps(results))
    options.out.with_suffix(".md").write_text(text)
    print(text, end="")
    return int(any("error" in sample for cells in results.values() for samples in cells.values() for sample in samples))


if __name__ == "__main__":
    sys.exit(main())
