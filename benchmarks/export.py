"""What the formats of `mcpspy export` take: processor time and memory of the process, beside `show --stats` of the same capture.

python -m benchmarks.export [FORMAT]…
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mcpspy.capture.format import header_line
from mcpspy.capture.writer import Writer
from mcpspy.records import CLIENT, SERVER, Frame, Header, Open

FORMATS = ["mermaid", "plantuml", "svg", "text", "html", "perfetto", "jsonl", "markdown"]
SIZES = [10_000, 20_000]
"""So many exchanges, each of a call with 100 letters and a result with 300."""

RUNS = 3


def record(path: Path, exchanges: int) -> None:
    """A capture of one session on stdio, a call a millisecond."""
    header = Header(
        capture_id="big", wall_ns=0, monotonic_ns=0, pid=1, label="big", tapped={"transport": "stdio", "argv": ["big"]}
    )
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    writer = Writer(fd, header_line(header))
    writer([Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")])
    for id in range(exchanges):
        call = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
        call["params"] = {"name": f"tool_{id % 17}", "arguments": {"text": "x" * 100}}
        result = {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "y" * 300}]}}
        for stream, value in enumerate((call, result)):
            at_ns = (2 * id + stream) * 500_000
            writer([Frame(stream, at_ns, at_ns, json.dumps(value).encode() + b"\n")])
    writer.close(exchanges * 1_000_000)


def cost(*words: str) -> tuple[float, float]:
    """The least processor time of a few runs, in seconds, and the memory of the last, in MB."""
    least, peak_kb = float("inf"), 0
    for _ in range(RUNS):
        process = subprocess.Popen([sys.executable, "-m", "mcpspy", *words], stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        least, peak_kb = min(least, used.ru_utime + used.ru_stime), used.ru_maxrss
    return least, peak_kb / 1000


def main(formats: list[str]) -> None:
    """Print a line for each size and format."""
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.mcpspy"
            record(path, size)
            least_s, _ = cost("show", "--stats", str(path))
            print(f"{size:,} exchanges: show --stats takes {least_s:.2f} s")
            for format in formats:
                took_s, peak_mb = cost("export", format, str(path))
                print(f"  {format:<9} {took_s:5.2f} s  {took_s / least_s:4.1f} ×  {peak_mb:4.0f} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or FORMATS)
