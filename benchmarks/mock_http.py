"""Speed of `mcpspy mock --listen`: requests a second and latency, with 1, 16 and 200 clients, and its memory.

    python -m benchmarks.mock_http [--clients 1,16,200] [--secs 3] [--capture captures/time.mcpspy]

Each client is a connection that stays, with a session of its own, and asks for the first recorded tool call again as soon as it is
answered. The client is one process of Python, so what it costs itself is in the figures: `client` is its share of one processor.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE, Popen

import mcpspy
from mcpspy.replay.mock.replies import read_replies

HEAD = "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"


def opening_and_call(capture: Path) -> tuple[bytes, bytes]:
    """Find the recorded `initialize` and the first tool call with nothing but its answer."""
    replies = read_replies(mcpspy.transcribe(mcpspy.read(capture)))
    opening = next(exchange for exchange in replies.exchanges if exchange.method == "initialize")
    call = next(
        exchange
        for exchange in replies.exchanges
        if exchange.method == "tools/call" and len(replies.of_request[exchange.row].steps) == 1
    )
    return opening.request.raw.strip(), call.request.raw.strip()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Read one response. Returns its head."""
    head = await reader.readuntil(b"\r\n\r\n")
    lowered = head.lower()
    if b"\r\ncontent-length:" in lowered:
        length = int(lowered.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
    else:
        while (size := int(await reader.readline(), 16)) or await reader.readline() != b"\r\n":
            await reader.readexactly(size + 2)
    return head


async def client(host: str, opening: bytes, call: bytes, until: float, taken_s: list[float]) -> None:
    """Ask until the time is over."""
    reader, writer = await asyncio.open_connection(*host.split(":"))
    head = HEAD.format(host=host)
    writer.write(f"{head}Content-Length: {len(opening)}\r\n\r\n".encode() + opening)
    named = await answer(reader)
    session = named.lower().partition(b"\r\nmcp-session-id:")[2].partition(b"\r\n")[0].strip().decode()
    request = f"{head}Mcp-Session-Id: {session}\r\nContent-Length: {len(call)}\r\n\r\n".encode() + call
    while (begin := time.monotonic()) < until:
        writer.write(request)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200")
        taken_s.append(time.monotonic() - begin)
    writer.close()


async def measured(host: str, clients: int, secs: float, opening: bytes, call: bytes) -> tuple[list[float], float]:
    """Measure the time that each answer took, and the whole."""
    taken_s: list[float] = []
    begin = time.monotonic()
    await asyncio.gather(*(client(host, opening, call, begin + secs, taken_s) for _ in range(clients)))
    return taken_s, time.monotonic() - begin


def peak_mib(pid: int) -> float:
    """Return the peak of a process's memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def bench(capture: Path, clients: int, secs: float, options: list[str]) -> list[str]:
    """Make a row of the table: a mock of its own, and so many clients."""
    opening, call = opening_and_call(capture)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "own.mcpspy"
        words = [sys.executable, "-m", "mcpspy", "mock", str(capture), "--listen", "127.0.0.1:0", "--capture", str(own)]
        before_s = children_s()
        with Popen([*words, *options], stderr=PIPE, text=True) as mock:
            try:
                assert mock.stderr is not None
                host = mock.stderr.readline().split("/")[2]
                client_s = time.process_time()
                taken_s, whole_s = asyncio.run(measured(host, clients, secs, opening, call))
                client_s = time.process_time() - client_s
                peak = peak_mib(mock.pid)
            finally:
                mock.terminate()
        mock_s = children_s() - before_s
        size = own.stat().st_size
    count = len(taken_s)
    percentile_ms = [second * 1e3 for second in statistics.quantiles(taken_s, n=100)]
    return [
        str(clients), f"{count / whole_s:,.0f}", f"{percentile_ms[49]:.2f} ms", f"{percentile_ms[98]:.2f} ms", f"{peak:.0f} MiB",
        f"{client_s / whole_s:.0%}", f"{mock_s / count * 1e6:.0f} µs", f"{size / count:,.0f} B",
    ]  # fmt: skip


def children_s() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,16,200")
    parser.add_argument("--secs", type=float, default=3.0)
    parser.add_argument("--capture", type=Path, default=Path("captures/time.mcpspy"))
    parser.add_argument("--option", action="append", default=[], help="one more word for mcpspy mock")
    arguments = parser.parse_args()
    heads = "clients", "requests/s", "median", "99 %", "mock's peak", "client", "mock's CPU per request", "recorded per request"
    for row in (heads, ["---"] * len(heads)):
        print(f"| {' | '.join(row)} |")
    for clients in map(int, arguments.clients.split(",")):
        print(f"| {' | '.join(bench(arguments.capture, clients, arguments.secs, arguments.option))} |", flush=True)


if __name__ == "__main__":
    main()
