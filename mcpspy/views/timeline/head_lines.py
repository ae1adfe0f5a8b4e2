"""The head of an HTTP message as lines: what was received, what was redacted in it, and what was forwarded instead.

The lines are shown as they are, without parsing.
"""

from collections import Counter, deque

from ...records import Open
from ...transcript.http.head import meaning
from ..text.cells import cells, chopped
from ..text.escape import decoded, safe_text
from ..text.line import Line, Piece


def head_lines(opened: Open, room: int | None) -> list[Line]:
    """Return the lines of a head, in `room` cells. Below each changed line is what was forwarded, at the end what was added."""
    received = _lines(opened.head)
    sent = [line for _, line in (received if opened.forwarded is None else _lines(opened.forwarded))]
    gone = Counter(line for _, line in received) - Counter(sent)
    new = _by_name(sent, Counter(sent) - Counter(line for _, line in received))
    lines: list[Line] = []
    for number, (offset, raw) in enumerate(received):
        lines += _line(raw, offset, opened, room, style="strong" if number == 0 else "")
        value = raw.partition(b":")[2].strip()
        if value.startswith(b"=?base64?") and (means := meaning(decoded(value))) != decoded(value):
            lines += _note("  decoded ", means, room)
        if not gone[raw]:
            continue
        gone[raw] -= 1
        instead = new.get(_name(raw, is_first=number == 0))
        if instead:
            lines += _note("  forwarded as ", decoded(instead.popleft()), room)
        else:
            lines.append([("  not forwarded", "warn")])
    for raw in (line for those in new.values() for line in those):
        lines += _note("  added ", decoded(raw), room)
    return lines


def _by_name(sent: list[bytes], new: Counter[bytes]) -> dict[bytes, deque[bytes]]:
    """Group the forwarded lines that were not received by the names of their fields."""
    by_name: dict[bytes, deque[bytes]] = {}
    for number, line in enumerate(sent):
        if new[line]:
            new[line] -= 1
            by_name.setdefault(_name(line, is_first=number == 0), deque()).append(line)
    return by_name


def _lines(head: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not empty, each with its offset in the head."""
    lines: list[tuple[int, bytes]] = []
    offset = 0
    for line in head.split(b"\n"):
        text = line.removesuffix(b"\r")
        if text:
            lines.append((offset, text))
        offset += len(line) + 1
    return lines


def _name(line: bytes, *, is_first: bool) -> bytes:
    """Return the field name of a line, in lower case; empty for the first line."""
    return b"" if is_first else line.partition(b":")[0].strip().lower()


def _line(raw: bytes, offset: int, opened: Open, room: int | None, *, style: str) -> list[Line]:
    """Return one line of the head, with the redacted parts marked."""
    pieces: Line = []
    at = 0
    for begin, length, _ in sorted(opened.redacted):
        start, end = max(begin - offset, at), begin - offset + length
        if start < len(raw) and end > start:
            pieces += [(safe_text(decoded(raw[at:start])), style), (safe_text(decoded(raw[start:end])), "warn")]
            at = min(end, len(raw))
    pieces.append((safe_text(decoded(raw[at:])), style))
    return _broken([piece for piece in pieces if piece[0]], room)


def _note(word: str, text: str, room: int | None) -> list[Line]:
    return _broken([(word, "warn"), (safe_text(text), "dim")], room)


def _broken(line: Line, room: int | None) -> list[Line]:
    """Break `line` into lines of `room` cells."""
    if room is None:
        return [line]
    lines: list[Line] = [[]]
    left = room
    for text, style in line:
        rest = text
        while rest:
            if cells(rest) <= left:
                lines[-1].append((rest, style))
                left -= cells(rest)
                break
            piece = chopped(rest, left)[0] if left > 1 else ""
            if piece:
                lines[-1].append((piece, style))
            rest = rest[len(piece) :]
            lines.append([_INDENT])
            left = room - len(_INDENT[0])
    return lines


_INDENT: Piece = ("    ", "")
