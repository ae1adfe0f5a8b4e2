"""A capture that others have removed or cut while it was recorded: the file in which recording goes on, and what it begins with.

A removed file is not restored, for somebody wanted it gone: a new one gets its name. What another program has put in its place is
left alone. Imported when it is needed, by a tap that forwards: so this uses no more than the writer does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...plain_lines import message_lines
from ...platform.files import read_at
from ...records import Open
from ..store.folder import create_again
from .format import record_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...records import Gap

MAX_KEPT_BYTES = 1 << 26  # a file that was cut to nothing and is longer than this by now stays as it is, and a new one begins

_RECORD, _FRAME = b'{"n":', b',"kind":"frame","stream":'


def mended(
    fd: int, path: str, header: bytes, streams: Mapping[int, Open | tuple[int, str]], number: int, lost: Gap
) -> tuple[str, bytes, int, int] | None:
    """Make of `fd` the file in which recording goes on with the record `number`, and which begins with `header` again.

    `streams` are those that are open, as records, or as time and text for `message_lines`. `lost` counts all frames so far: a gap
    that follows the header counts those that are gone. Returns the path, the lines that go first, how many frames are in them, and
    how many of these are no message's last. None if the file still has its header: its missing numbers say what is gone.
    Raises: OSError: if no new file can be made.
    """
    facts, first, kept = os.fstat(fd), number, b""
    lost.why = "the file was removed while it was recorded"
    has_place = False
    if facts.st_nlink:
        if read_at(fd, len(header), 0) == header:
            if read_at(fd, 1, facts.st_size - 1) != b"\n":
                os.write(fd, b"\n")  # so that the next line can be read
            return None
        lost.why = "another program cut the file while it was recorded"
        before, mark, after = read_at(fd, MAX_KEPT_BYTES, 0).partition(_RECORD)
        digits = after[:20].partition(b",")[0] if mark else b"%d" % number
        has_place = header.startswith(before) and digits.isdigit() and int(digits) <= number and facts.st_size < MAX_KEPT_BYTES
    if has_place:
        first, kept = int(digits), mark + after
        os.ftruncate(fd, 0)
    else:
        new, path = create_again(path)
        os.dup2(new, fd, inheritable=False)  # the thread that syncs may be using it
        os.close(new)
    frames = kept.count(_FRAME)  # quotes within a payload are escaped
    has_log = getattr(streams.get(2), "name", "") == "stderr"
    silent = kept.count(b',"part":true,') + (kept.count(b"%b2," % _FRAME) if has_log else 0)
    last = first - 1 - len(streams)
    if last < 1:
        return path, header + kept, frames, silent
    lost.frames, lost.missing = lost.frames - frames, last - 1
    lines = [header, record_line(last, lost)]
    for place, (stream, opened) in enumerate(streams.items(), last + 1):
        if isinstance(opened, Open):
            lines.append(record_line(place, opened))
        else:
            lines.append(message_lines(place, stream, opened[0], opened[1], [], "", False))
    return path, b"".join(lines) + kept, frames, silent
