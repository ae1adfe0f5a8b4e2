r"""HTTP/1.1 as plain text: what Wireshark's "Follow stream" saves as ASCII, UTF-8 or raw, or somebody copied. A file in, pieces out.

Nothing in the text says who sent what, so heads tell it. The CR of line ends may be lost, or spelled `\r\n` by who explains the text;
other lines between messages are passed over. A chunk after a whole response continues the response that is still open, as it does
where HTTP+SSE is explained in the order of time:

    GET /sse HTTP/1.1 …          connection 1
    HTTP/1.1 200 OK …
    51                           its first chunk, and no end
    event: endpoint …
    POST /messages/?… HTTP/1.1   connection 2, because the response on 1 is open
    HTTP/1.1 202 Accepted …
    e9                           a chunk on 1
    event: message …
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import Final

import msgspec

_REQUEST: Final = re.compile(rb"(?:GET|POST|DELETE|OPTIONS|HEAD|PUT) [!-~]{1,8000} HTTP/1\.[01]\r?\n")
_RESPONSE: Final = re.compile(rb"HTTP/1\.[01] \d{3}[^\n]{0,1000}\n")
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}:[^\n]*\n")
_LENGTH: Final = re.compile(rb"(\r\ncontent-length:\s*)\d+", re.IGNORECASE)
_LINE_END: Final = re.compile(rb"\r?\n")
_SIZE: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})(?:;[^\n]*)?\r?\n")
_BLANK: Final = re.compile(rb"(?:[ \t]*\r?\n)+")
_HEAD: Final = rb"(?:GET|POST|DELETE|OPTIONS|HEAD|PUT) [!-~]{1,8000} HTTP/1\.[01]\n|HTTP/1\.[01] \d{3}"
_NEXT: Final = re.compile(rb"\s*(?:$|" + _HEAD + rb")|(?:\r?\n){1,4}(?:[0-9A-Fa-f]{1,8}\r?\n|\s*\Z)")
_NEXT_PART: Final = re.compile(rb"\n(?=[0-9A-Fa-f]{1,8}\n)|(?:" + _HEAD + rb")")
_SPELLED: Final = re.compile(rb"\\r\\n[ \t]*(?=\n|$)")


class PlainPiece(msgspec.Struct):
    """Bytes of one side on a connection, counted from 1."""

    connection: int
    is_client: bool
    data: bytes


def is_plain_http(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is HTTP as text, and looks like MCP's."""
    begin = head[: 1 << 16].lstrip(b"\xef\xbb\xbf \t\r\n")
    begin = _SPELLED.sub(b"", begin)
    if _REQUEST.match(begin) is None and _RESPONSE.match(begin) is None:
        return False
    return b"jsonrpc" in head or b"text/event-stream" in begin


class PlainHttp:
    """The pieces of such a file, in its order. `passed_over` counts lines that belong to no message."""

    __slots__ = ("_at", "_connections", "_data", "_has_no_cr", "_is_open", "_last", "_newlines", "passed_over", "pieces")

    def __init__(self, data: bytes) -> None:
        self._data = _SPELLED.sub(b"", data)
        self._has_no_cr = b"\r\n" not in self._data
        self._newlines = array("I", (found.start() for found in re.finditer(b"\n", self._data)) if self._has_no_cr else ())
        self._at = 0
        self._connections = 1
        self._last = 1
        self._is_open: dict[int, None] = {}  # connections whose response has chunks to come, in order
        self.passed_over = 0
        self.pieces: list[PlainPiece] = []
        while self._at < len(self._data):
            self._next()

    def _next(self) -> None:
        """Take a message, a chunk, blank lines or a line of anything else."""
        data, at = self._data, self._at
        if (blank := _BLANK.match(data, at)) is not None:
            self._at = blank.end()
        elif _REQUEST.match(data, at) is not None:
            if self._last in self._is_open:
                self._connections += 1
                self._last = self._connections
            self._message(is_client=True)
        elif _RESPONSE.match(data, at) is not None:
            self._message(is_client=False)
        elif self._is_open and _SIZE.match(data, at) is not None:
            self._last = next(reversed(self._is_open))
            self._chunks()
        else:
            self._at = end if (end := data.find(b"\n", at) + 1) else len(data)
            self.passed_over += 1

    def _message(self, *, is_client: bool) -> None:
        """Take a head and its body."""
        data, begin = self._data, self._at
        at = data.find(b"\n", begin) + 1
        length, is_chunked = 0, False
        while (field := _FIELD.match(data, at)) is not None:
            name, _, value = field.group().lower().partition(b":")
            if name == b"content-length" and value.strip().isdigit() and len(value) < 14:
                length = int(value)
            is_chunked = is_chunked or (name == b"transfer-encoding" and b"chunked" in value)
            at = field.end()
        lines = [line.rstrip(b"\r") for line in data[begin:at].split(b"\n")]
        head = b"\r\n".join(lines) + b"\r\n"
        end_of_head = _LINE_END.match(data, at)
        self._at = end_of_head.end() if end_of_head is not None else at
        if is_chunked:
            self._keep(head, is_client=is_client)
            if not is_client:
                self._is_open[self._last] = None
            self._chunks(is_client=is_client)
            return
        body = self._take(length) if length else b""
        if len(body) != length:
            head = _LENGTH.sub(b"\\g<1>%d" % len(body), head)
        self._keep(head + body, is_client=is_client)

    def _chunks(self, *, is_client: bool = False) -> None:
        """Take chunks, up to the last one or to what is none."""
        while (size := _SIZE.match(self._data, self._at)) is not None:
            self._at = size.end()
            count = int(size[1], 16)
            text = self._take(count) if count else b""
            self._keep(b"%x\r\n%b\r\n" % (len(text), text), is_client=is_client)
            if self._data[self._at : self._at + 2] == b"\r\n":
                self._at += 2
            elif self._data[self._at : self._at + 1] == b"\n":
                self._at += 1
            if not count:
                self._is_open.pop(self._last, None)
                return

    def _take(self, count: int) -> bytes:
        """Return the next `count` bytes. A text that has lost its CRs has fewer: `count` is right, and they are put back."""
        data, begin = self._data, self._at
        end = begin + count
        text = data[begin:end]
        if self._has_no_cr:
            stop = self._end_without_cr(begin, count)
            if stop is not None:
                end, text = stop, data[begin:stop].replace(b"\n", b"\r\n")
            elif _NEXT.match(data, end) is None:  # somebody edited the text
                following = _NEXT_PART.search(data, begin)
                end = following.start() if following is not None else len(data)
                text = data[begin:end]
        self._at = min(end, len(data))
        return text

    def _end_without_cr(self, begin: int, count: int) -> int | None:
        """Return where `count` bytes end of which each line has lost its CR; None if that is not so."""
        newlines = self._newlines
        first = bisect_left(newlines, begin)

        def size(index: int) -> int:
            return newlines[index] - begin + index - first

        index = bisect_left(range(len(newlines)), count, lo=first, key=size)
        if index in (first, len(newlines)) or size(index) != count:
            return None
        return newlines[index] if _NEXT.match(self._data, newlines[index]) is not None else None

    def _keep(self, data: bytes, *, is_client: bool) -> None:
        self.pieces.append(PlainPiece(self._last, is_client, data))
