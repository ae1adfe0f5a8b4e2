"""The shortest way through an HTTP tap, for events that come one by one. To understand mcpspy, skip this module.

Between two events of a steady stream the machine does other work, so that the next one finds cold caches: then each function that is
called costs a microsecond. So one function reads an event, records it and sends it on; where `speedups.c` was built, without a step
of Python in between. All other reads, and all that goes wrong, are left to `ConnectionPair`. tests/live/http/test_steady.py holds the
two ways against each other.
"""

from __future__ import annotations

from os import read, write
from typing import Final

from ...plain_lines import event_text_line
from ...wire.sse import event_of_chunk

_READ_BYTES: Final = 1 << 16

SHORT_READ: Final = 1 << 12
"""An event in a longer read is not looked for."""

_MAX_SIZES: Final = 1 << 10
_size_lines: dict[int, bytes] = {}
"""The line before the latest event in a read of each size: what follows the same line in a read of this size is one chunk, too."""


def relay_event(
    number: int, stream: int, at_ns: int, source: int, capture: int, target: int
) -> tuple[bytes, bytes, int, int] | None:
    """Read from the socket `source`. If that is one event in one chunk, append its line to `capture`, then send it to `target`.

    Returns None if all of that was done. Else what was read; the event in it, if any; how many bytes of its line were written, and
    of what was read were sent. These are -1 after an error. Events that are not UTF-8 do not count, nor do those with the word
    `endpoint`, which may have to be redacted. Raises: OSError: nothing could be read.
    """
    data = read(source, _READ_BYTES)
    text = _event_text(data) if len(data) <= SHORT_READ else None
    if text is None:
        return data, b"", 0, 0
    event_bytes = len(data) - len(_size_lines[len(data)]) - 2
    line = event_text_line(number, stream, at_ns, text, event_bytes)
    written, sent = -1, 0
    try:
        written = write(capture, line)
        if written == len(line):
            sent = -1
            sent = write(target, data)
    except OSError:
        pass
    return None if sent == len(data) else (data, data[-2 - event_bytes : -2], written, sent)


def _event_text(data: bytes) -> str | None:
    """Return the event, if `data` is one chunk with one event, as a text: one is made of it in any case."""
    size_line = _size_lines.get(len(data))
    try:
        if size_line is not None and data.startswith(size_line) and data.endswith(b"\n\n\r\n"):
            text = data[len(size_line) : -2].decode()
            if text.find("\n\n") != len(text) - 2 or "\r" in text or text[0] == "\n":
                return None
        else:
            event = event_of_chunk(data)
            if event is None:
                return None
            if len(_size_lines) >= _MAX_SIZES:
                _size_lines.clear()
            _size_lines[len(data)] = data[: -2 - len(event)]
            text = event.decode()
    except UnicodeDecodeError:
        return None
    return None if "endpoint" in text else text
