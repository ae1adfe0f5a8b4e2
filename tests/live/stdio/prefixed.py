"""A framing that MCP does not have, four hexadecimal digits of length before each payload; run as a program, mcpspy with it.

python -m tests.live.stdio.prefixed run --framing prefixed --capture FILE -- COMMAND
"""

import sys

from mcpspy.__main__ import main
from mcpspy.wire.framing import STDIO_FRAMINGS

DIGITS = 4


class Prefixed:
    """Frames of four digits and a payload that may hold line ends. Noise is lines that begin with `#`."""

    name = "prefixed"
    frame_name = "a message"
    end_name = "end of a message"
    unended = "wrong-length"
    terminator = b""
    is_part = False

    def __init__(self) -> None:
        self.held = b""

    @property
    def held_bytes(self) -> int:
        return len(self.held)

    @property
    def is_between(self) -> bool:
        return not self.held

    def feed(self, data: bytes) -> list[bytes]:
        self.held += data
        frames = []
        while (size := self._size()) and len(self.held) >= size:
            frames.append(self.held[:size])
            self.held = self.held[size:]
        return frames

    def _size(self) -> int:
        if self.held.startswith(b"#"):
            return self.held.find(b"\n") + 1
        return DIGITS + int(self.held[:DIGITS], 16) if len(self.held) >= DIGITS else 0

    def close(self) -> list[bytes]:
        rest, self.held = self.held, b""
        return [rest] if rest else []

    @staticmethod
    def payload_of(frame: bytes) -> bytes:
        return frame if frame.startswith(b"#") else frame[DIGITS:]

    @staticmethod
    def frame_of(payload: bytes) -> bytes:
        payload = payload.rstrip(b"\n")
        return b"%04x%b" % (len(payload), payload)

    @staticmethod
    def flaw_of(frame: bytes) -> str:
        return "" if len(frame) == DIGITS + int(frame[:DIGITS] or b"0", 16) else "wrong-length"


if __name__ == "__main__":
    STDIO_FRAMINGS[Prefixed.name] = Prefixed
    sys.exit(main())
