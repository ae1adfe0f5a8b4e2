"""A capture that others have removed or cut while it was recorded: the file in which recording goes on, and what it begins with.

A removed file is not restored, for somebody wanted it gone: a new one gets its name. What another program has put in its place is
left alone. Imported when it is needed, by a tap that forwards: so this uses no more than the writer does.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from ...plain_lines import message_lines
from ...platform.files import read_at
from ..store.folder import create_again
from .format import record_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...records import Gap, Open

    Streams = Mapping[int, Open | tuple[int, str]]

MAX_KEPT_BYTES = 1 << 26
"""Of a file that was cut to nothing and has grown longer since, the rest stays as it is, and a new file begins."""

_RECORD = b'{"n":'
_FRAME = b',"kind":"frame","stream":'
_HEAD_BYTES = 200
"""Before so many bytes are all members of a frame's line that are not its text."""


class MendedFile(NamedTuple):
    """The file to go on in. `lines` go first; they have so many `frames`, and so many of these are `messages`."""

    path: str
    lines: bytes
    frames: int
    messages: int


def mended(fd: int, path: str, header: bytes, streams: Streams, number: int, lost: Gap) -> MendedFile | None:
    """Make of `fd` the file in which recording goes on with the record `number`, and which begins with `header` again.

    `streams` are those that are open, as records, or as time and text for `message_lines`. `lost` counts all frames so far: a gap
    that follows the header counts those that are gone. None if the file still has its header: its missing numbers say what is gone.
    Raises: OSError: if no new file can be made.
    """
    facts = os.fstat(fd)
    kept, lost.why = b"", "the file was removed while it was recorded"
    if facts.st_nlink:
        if read_at(fd, len(header), 0) == header:
            _end_line(fd, facts.st_size)
            return None
        before, mark, after = read_at(fd, MAX_KEPT_BYTES, 0).partition(_RECORD)
        kept, lost.why = mark + after, "another program cut the file while it was recorded"
        is_ours = header.startswith(before) and facts.st_size < MAX_KEPT_BYTES and _number(kept, number) <= number
    if facts.st_nlink and is_ours:
        os.ftruncate(fd, 0)
    else:
        new, path = create_again(path)
        os.dup2(new, fd, inheritable=False)  # the thread that syncs may be using it
        os.close(new)
        kept = b""
    first = _number(kept, number)
    if first <= len(streams) + 1:
        streams = {}
    heads = [line[:_HEAD_BYTES] for line in kept.split(b"\n")]
    frames = [head for head in heads if _FRAME in head]
    logs = [b"%b%d," % (_FRAME, stream) for stream, opened in streams.items() if getattr(opened, "name", "") == "stderr"]
    silent = sum(b',"part":true' in head or any(log in head for log in logs) for head in frames)
    lines = [header]
    last = first - 1 - len(streams)
    if last > 0:
        lost.frames, lost.missing = lost.frames - len(frames), last - 1
        lines.append(record_line(last, lost))
    for place, (stream, opened) in enumerate(streams.items(), last + 1):
        if isinstance(opened, tuple):
            lines.append(message_lines(place, stream, *opened, [], "", False))
        else:
            lines.append(record_line(place, opened))
    return MendedFile(path, b"".join(lines) + kept, len(frames), len(frames) - silent)


def _number(lines: bytes, number: int) -> int:
    """Return the number of the first of these lines, else `number`; a very large one if it is no record of ours."""
    if not lines:
        return number
    digits = lines[len(_RECORD) : len(_RECORD) + 20].partition(b",")[0]
    return int(digits) if digits.isdigit() else sys.maxsize


def _end_line(fd: int, size_bytes: int) -> None:
    """End a line that was cut, so that the next one can be read. Raises: OSError."""
    if read_at(fd, 1, size_bytes - 1) != b"\n":
        os.write(fd, b"\n")
