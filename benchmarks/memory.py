"""Memory that one large message takes, by its contents: the peak of `mcpspy run` above its peak while idle.

    python -m benchmarks.memory --mib 16 --rounds 3

What the text is made of matters, because the capture holds it escaped: a quote takes two bytes there, an ESC six. Linux only.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from benchmarks.processes import usage
from benchmarks.report import median, number, table

TEXTS = {
    "ASCII": b"0123456789abcdef",
    "Chinese": "天気".encode(),
    "emoji": "🎉".encode(),
    "JSON": b'"a":"b",',
    "JSON in JSON": rb"\"a\":\"b\",",
    "quotes alone": b'"',
    "text with tabs": b"word\tword ",
    "text in colours": b"\x1b[31mred\x1b[0m ",
    "no UTF-8": bytes(range(0x80, 0x100)),
    "ESC alone": b"\x1b",
}

MCPSPY = [sys.executable, "-m", "mcpspy", "run", "--redact", "none", "--quiet", "--"]
ECHO = [sys.executable, "-c", "import sys; print(flush=True); [print(len(line), flush=True) for line in sys.stdin.buffer]"]
SEND = """
import sys
print(flush=True)
input()
with open(sys.argv[1], "rb") as file:
    sys.stdout.buffer.write(file.read())
sys.stdout.flush()
sys.stdin.read()  # until it has been measured: who has ended has no memory
"""


def growth_mib(message: bytes, store: str, *, upward: bool) -> float:
    """Measure the growth for one message, to the server (`upward`) or from it; captures go to `store`.

    Raises:
        RuntimeError: if it does not arrive whole.
    """
    path = os.path.join(store, "message")
    with open(path, "wb") as file:
        file.write(message)
    server = ECHO if upward else [sys.executable, "-c", SEND, path]
    variables = {**os.environ, "MCPSPY_HOME": store}
    with subprocess.Popen([*MCPSPY, *server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        idle_mib = usage([process.pid]).peak_mib
        process.stdin.write(message if upward else b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        peak_mib = usage([process.pid]).peak_mib
        process.stdin.close()
    if (int(line) if upward else len(line)) != len(message):
        raise RuntimeError("the message did not arrive whole")
    return peak_mib - idle_mib


def main(arguments: list[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Peak memory of one large message, by what it is made of.")
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    rows = []
    for name, unit in TEXTS.items():
        message = unit * ((options.mib << 20) // len(unit)) + b"\n"
        cells = [name]
        for upward in (True, False):
            with tempfile.TemporaryDirectory() as store:
                growths_mib = [growth_mib(message, store, upward=upward) for _ in range(options.rounds)]
            cells.append(number(median(growths_mib)))
        rows.append(cells)
    print(table([f"one message of {options.mib} MiB", "to the server: MiB", "from it: MiB"], rows), end="")


if __name__ == "__main__":
    main()
