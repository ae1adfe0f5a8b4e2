"""The time that `mcpspy tui` takes for its first screen, for the first key, for others, and for keys while rows come.

    python -m benchmarks.tui
    python -m benchmarks.tui --messages 1000000

The capture is the one of `benchmarks.large`: 310 bytes a message. The interface runs on a terminal
of 120 columns and 40 lines, and a key counts as answered when the interface begins to draw; the first one, which is pressed when the
first screen is there, when the help that it opens is there. While rows come, 2,000 messages a second are recorded. The figures are
milliseconds by the clock; for the first screen and the first key also those of the processor, since the start.
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

from benchmarks.large import MCPSPY, NAME, lock_path
from benchmarks.shapes import frames, opened, write
from mcpspy.records import Frame

COLUMNS, LINES = 120, 40
UP, END, PAGE_UP, PAGE_DOWN, RIGHT = b"\x1b[A", b"\x1b[F", b"\x1b[5~", b"\x1b[6~", b"\x1b[C"
HELP = b"?"
QUIET_S = 0.2
LONGEST_S = 60.0

RATE = 2_000
LIVE_S = 10.0
TICK_S = 0.05

TARGETS_MS = {"first screen": 400, "a key while rows come, 95 of 100": 50}
BIG_BYTES = 16_000_000


class Screen:
    """The interface on a terminal."""

    def __init__(self, *words: str) -> None:
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.started = time.perf_counter()
        self.process = subprocess.Popen([*MCPSPY, "tui", *words], stdin=child, stdout=child, stderr=child, env=environment)
        os.close(child)

    def until(self, text: bytes) -> float:
        """Wait for a text, and return the seconds since the start."""
        seen = b""
        while text not in seen:
            if not select.select([self.fd], [], [], LONGEST_S)[0]:
                raise SystemExit(f"{text!r} was not shown")
            seen += os.read(self.fd, 1 << 16)
        return time.perf_counter() - self.started

    def rest(self, seconds: float = QUIET_S) -> None:
        """Read until nothing comes for a while."""
        while select.select([self.fd], [], [], seconds)[0]:
            os.read(self.fd, 1 << 16)

    def drain(self) -> None:
        """Read what is there."""
        while select.select([self.fd], [], [], 0)[0]:
            os.read(self.fd, 1 << 16)

    def press(self, key: bytes) -> float:
        """Press a key, and return the seconds until something is drawn."""
        self.drain()
        start = time.perf_counter()
        os.write(self.fd, key)
        select.select([self.fd], [], [], LONGEST_S)
        return time.perf_counter() - start

    @property
    def processor_s(self) -> float:
        """The seconds of the processor that its processes have used so far."""
        return sum(_processor_ns(pid) for pid in _with_children(self.process.pid)) / 1e9

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        with suppress(OSError):  # it is closed when the process has ended
            self.rest()
        self.process.wait()
        os.close(self.fd)


def _with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(other for child in children for other in _with_children(int(child)))]


def _processor_ns(pid: int) -> int:
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def first_screen() -> dict[str, float]:
    """Return the seconds until the rows are on the screen, and until a key is answered that is pressed then."""
    screen = Screen(NAME)
    took = {"first screen": screen.until(b"tools/call"), "first screen, processor": screen.processor_s}
    os.write(screen.fd, HELP)
    took |= {"first key": screen.until(b"this help"), "first key, processor": screen.processor_s}
    screen.close()
    return took


def scrolled() -> list[float]:
    """Return the seconds for each of many keys that scroll, in order."""
    screen = Screen(NAME)
    screen.until(b"tools/call")
    screen.rest()
    took = []
    for key in [*[PAGE_DOWN] * 100, END, *[PAGE_UP] * 50]:
        took.append(screen.press(key))
        screen.rest(0.03)
    screen.close()
    return sorted(took)


def while_rows_come(home: Path) -> list[float]:
    """Return the seconds for each key while 2,000 messages a second are recorded, in order."""
    path = home / "captures" / "live.mcpspy"
    recording = opened(path)
    lock_path(path)
    rest = frames(int(RATE * (LIVE_S + 30)))
    recording(tuple(islice(rest, RATE)))
    screen = Screen("live")
    screen.until(b"tools/call")
    screen.rest(TICK_S)
    took, begun, sent = [], time.perf_counter(), 0
    pressed = begun
    while (now := time.perf_counter()) < begun + LIVE_S:
        due = int((now - begun) * RATE) - sent
        recording(tuple(islice(rest, due)))
        sent += due
        if now - pressed > TICK_S * 3:
            took.append(screen.press(UP))
            pressed = now
        else:
            time.sleep(0.005)
            screen.drain()
    screen.close()
    return sorted(took)


def opened_answer(home: Path) -> float:
    """Return the seconds from the key to the first lines of an answer of 16 MB."""
    path = home / "captures" / "big.mcpspy"
    items = b'{"number":7,"text":"%b"}' % (b"x" * 100)
    payload = b"[" + b",".join([items] * (BIG_BYTES // (len(items) + 1))) + b"]"
    recording = opened(path)
    recording(tuple(big_frames(payload)))
    recording.close(10)
    screen = Screen("big")
    screen.until(b"tools/call")
    screen.rest()
    start = time.perf_counter() - screen.started
    os.write(screen.fd, RIGHT)
    took = screen.until(b"number") - start
    screen.close()
    return took


def big_frames(payload: bytes) -> list[Frame]:
    """Return a call, and its answer with this payload."""
    call, answer = islice(frames(2), 2)
    data = b'{"jsonrpc":"2.0","id":0,"result":{"content":[],"structuredContent":{"items":%b}}}\n' % payload
    return [call, Frame(answer.stream, answer.at_ns, answer.at_ns, data)]


def main(arguments: list[str] | None = None) -> int:
    """Make the captures, measure, and print a line for each figure. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        os.environ["MCPSPY_HOME"] = home
        path = Path(home) / "captures" / f"{NAME}.mcpspy"
        path.parent.mkdir(mode=0o700)
        write(path, frames(chosen.messages), messages=chosen.messages)
        print(f"{chosen.messages:,} messages, {path.stat().st_size / 1e6:,.0f} MB")
        first = [first_screen() for _ in range(chosen.rounds)]
        took = {name: min(figures[name] for figures in first) for name in first[0]}
        keys, live = scrolled(), while_rows_come(Path(home))
        took |= {"a key that scrolls, 95 of 100": keys[len(keys) * 95 // 100], "a key that scrolls, the slowest": keys[-1]}
        took |= {
            "a key while rows come, 95 of 100": live[len(live) * 95 // 100],
            "a key while rows come, the slowest": live[-1],
        }
        took["an answer of 16 MB"] = opened_answer(Path(home))
    for name, seconds in took.items():
        target = f" (target: at most {TARGETS_MS[name]} ms)" if name in TARGETS_MS else ""
        print(f"{name:36} {seconds * 1e3:7.0f} ms{target}")
    return int(any(took[name] * 1e3 > target_ms for name, target_ms in TARGETS_MS.items()))


if __name__ == "__main__":
    sys.exit(main())
