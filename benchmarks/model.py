"""Cost of `mcpspy proxy --model`: time to first token, a prompt of 1 MB, a stream of 10,000 deltas.

    python -m benchmarks.model [--rounds 200]

Direct and through mcpspy take turns on connections that stay; the client is a socket, the model is tests/peers/modelserver.py on the
same machine, and no model thinks: what is measured is the way. Then the captures are read: twice as much in twice the time.
"""

import argparse
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import mcpspy
from captures.serving import PEERS
from mcpspy.transcript.model import Transcript

FIRST = b'"content":"'
END = b"0\r\n\r\n"
DELTAS = 10_000
PROMPT_BYTES = 1_000_000
STORY = {
    "answers": [
        {"to": "many", "text": "x" * DELTAS, "pieces": 1},
        {"to": "more", "text": "x" * 2 * DELTAS, "pieces": 1},
        {"to": "", "text": "one two three", "pieces": 4},
    ]
}


@contextmanager
def started(words: list[str]) -> Iterator[int]:
    """A program that prints an address or a port first. Yields the port."""
    with Popen([sys.executable, *words], stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().strip().rpartition(":")[2].partition("/")[0])
        finally:
            process.terminate()


def prompt(text: str, port: int) -> bytes:
    """Make a request that asks for a stream."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """One connection that stays."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, text: str) -> tuple[float, float]:
        """Seconds from the request's first byte to the first token, and to the end of the stream."""
        request = prompt(text, self.port)
        begin_s, first_s, data = time.perf_counter(), 0.0, b""
        self.socket.sendall(request)
        while not data.endswith(END):
            data = data[-64:] + self.socket.recv(1 << 20)
            if not first_s and data.count(FIRST) and not data.rstrip().endswith(b'"content":""'):
                first_s = time.perf_counter() - begin_s
        return first_s, time.perf_counter() - begin_s


def turns(
    direct: Client, tapped: Client, text: str, rounds: int
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Time the direct and the tapped client in turns."""
    both: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for _ in range(rounds):
        for client, took in zip((direct, tapped), both, strict=True):
            took.append(client.ask(text))
    return both


def median_ms(values: list[float]) -> float:
    """Return the median of seconds, in milliseconds."""
    return statistics.median(values) * 1e3


def row(name: str, direct: list[float], tapped: list[float]) -> None:
    """Print a line of the table."""
    before, after = median_ms(direct), median_ms(tapped)
    print(f"| {name} | {before:.3f} ms | {after:.3f} ms | {after - before:+.3f} ms |")


def read_s(capture: Path) -> float:
    """Seconds of processor time to read a capture and put its answers together, the best of three."""
    return min(timed(lambda: mcpspy.transcribe(mcpspy.read(capture))) for _ in range(3))


def timed(made: Callable[[], Transcript]) -> float:
    """Seconds of processor time."""
    begin_s = time.process_time()
    for call in made().model_calls:
        assert call.prompt.turns
        assert call.answer is not None
        assert call.answer.is_whole
    return time.process_time() - begin_s


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        model = running.enter_context(started([str(PEERS / "modelserver.py"), json.dumps(STORY)]))
        tap = [
            "-m",
            "mcpspy",
            "proxy",
            "--model",
            f"http://127.0.0.1:{model}",
            "--listen",
            "127.0.0.1:0",
            "--quiet",
            "--capture",
        ]
        port = running.enter_context(started([*tap, f"{folder}/first.mcpspy"]))
        print("| | direct | through mcpspy | added |\n| --- | --- | --- | --- |")
        direct, tapped = Client(model), Client(port)
        for name, text, times in (
            ("time to first token", "hi", rounds),
            ("for 1 MB", "x" * PROMPT_BYTES, rounds // 5),
        ):
            before, after = turns(direct, tapped, text, times)
            row(name, [first for first, _ in before], [first for first, _ in after])
        before, after = turns(direct, tapped, "many", max(3, rounds // 20))
        row(f"{DELTAS:,} deltas, to the end", [whole for _, whole in before], [whole for _, whole in after])
        print("\n| to read and put together | processor time |\n| --- | --- |")
        texts = {f"{DELTAS:,} deltas": "many", f"{2 * DELTAS:,} deltas": "more"}
        texts |= {f"a prompt of {size} MB": "x" * size * PROMPT_BYTES for size in (1, 2)}
        for number, (name, text) in enumerate(texts.items()):
            capture = Path(folder) / f"{number}.mcpspy"
            with started([*tap, str(capture)]) as own:
                Client(own).ask(text)
            print(f"| {name} | {read_s(capture) * 1e3:.0f} ms |")


if __name__ == "__main__":
    main()
