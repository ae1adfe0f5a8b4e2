"""Lines of a stdio stream, the framing of MCP's stdio transport in every revision: chunks in, lines out, the same bytes.

Only byte 0x0A ends a line. U+2028, U+2029, NEL and a lone CR are legal inside a message, so `splitlines` would corrupt it
(MCP specification, basic/transports, stdio). `framing` says what members the class shares with others.
"""

MAX_HELD_BYTES = 1 << 20
"""A longer line is returned in parts as it arrives, so that memory stays bounded."""

UNENDED = "no-final-newline"
"""The flaw of the last line of a stream that ended within it."""

_LF = b"\n"


class Lines:
    """Lines with their terminators, from chunks cut anywhere.

    `feed` and `close` return pieces; joined, the pieces are the stream. A piece that ends in LF completes a line, any other
    piece is a part: more of the same line follows, unless `close` returned it. A part ends on a character boundary where the
    bytes are UTF-8, so that each part can be kept as text.
    """

    name = "lines"
    frame_name = "a line"
    end_name = "line end"

    __slots__ = ("_held", "held_bytes", "is_part")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self.held_bytes = 0
        """The number of bytes that wait for the end of their line."""
        self.is_part = False
        """True if the last piece returned is a part."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of their line, without those of earlier parts."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` completes."""
        cut = data.rfind(_LF) + 1
        if not cut:
            return self._hold(data)
        self.is_part = False
        if self._held:
            self._held.append(data[:cut])
            whole = b"".join(self._held)
            self._held.clear()
            self.held_bytes = 0
        else:
            whole = data[:cut]
        if cut < len(data):
            parts = self._hold(data[cut:])
        else:
            parts = []
        if whole.find(_LF) == len(whole) - 1:
            return [whole, *parts]
        pieces = [line + _LF for line in whole.split(_LF)]
        pieces.pop()
        return pieces + parts

    @property
    def is_between(self) -> bool:
        """True while the next bytes begin a line."""
        return not self.held_bytes and not self.is_part

    def close(self) -> list[bytes]:
        """Return the last line if it has no terminator; otherwise nothing."""
        rest = self.held
        self._held.clear()
        self.held_bytes = 0
        self.is_part = False
        return [rest] if rest else []

    def _hold(self, data: bytes) -> list[bytes]:
        self._held.append(data)
        self.held_bytes += len(data)
        if self.held_bytes < MAX_HELD_BYTES:
            return []
        part = self.held
        cut = character_boundary(part)
        self._held = [part[cut:]] if cut < len(part) else []
        self.held_bytes = len(part) - cut
        self.is_part = True
        return [part[:cut]]


def flaw_of(line: bytes) -> str:
    """Return `crlf` or `no-final-newline` for a line that does not end in LF alone, else nothing."""
    if line[-1:] != _LF:
        return UNENDED
    return "crlf" if line[-2:] == b"\r\n" else ""


def one_line(payload: bytes) -> bytes:
    """Write a payload as one line: it may come on several, which JSON allows between its tokens alone."""
    if payload.endswith(_LF) and payload.find(_LF) == len(payload) - 1:
        return payload
    return payload.strip(b"\r\n").replace(b"\r\n", b"  ").replace(_LF, b" ") + _LF


def character_boundary(data: bytes) -> int:
    """Return the offset of the last UTF-8 character if the end of `data` cuts it in two; otherwise the length of `data`."""
    for back in range(1, 4):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(data) - back if needs > back else len(data)
    return len(data)
