"""What passed on the connections of an HTTP scene, as byte loggers kept it and as a capture holds it, in one form to compare.

Cuts connections into messages by itself, with nothing of mcpspy's: it is the referee. It takes well-formed HTTP/1.1 with
Content-Length or chunks, as real servers send it, and bodies that were cut short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy.records import CLIENT, SERVER, Close, Frame, Open, Record

if TYPE_CHECKING:
    from mcpspy.records import Side

MARK = b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Message:
    """A request or a response: its head and its body, without chunk sizes. `is_whole`: its end came too."""

    head: bytes
    body: bytes
    is_whole: bool


Connection = tuple[tuple[Message, ...], tuple[Message, ...]]
"""The requests and the responses of a connection, in order."""

Disagreement = tuple[Message | None, Message | None]


def logged(folder: Path) -> list[Connection]:
    """What a TCP logger kept, one pair per connection that carried anything."""
    requests = {path.stem: path.read_bytes() for path in folder.glob("*.client")}
    pairs = [(requests[path.stem], path.read_bytes()) for path in folder.glob("*.server")]
    return sorted((tuple(cut(sent)), tuple(cut(got))) for sent, got in pairs if sent or got)


def cut(data: bytes) -> list[Message]:
    """The messages that are in one direction of a connection."""
    messages = []
    while data:
        head, mark, data = data.partition(MARK)
        body, is_whole, data = _body(head.lower(), data)
        messages.append(Message(head=head + mark, body=body, is_whole=is_whole))
    return messages


def _body(fields: bytes, data: bytes) -> tuple[bytes, bool, bytes]:
    """The body that these lower-case fields announce, whether all of it is there, and what follows it."""
    if b"\r\ntransfer-encoding: chunked" in fields:
        return _dechunked(data)
    length = int(fields.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0] or 0)
    return data[:length], len(data) >= length, data[length:]


def _dechunked(data: bytes) -> tuple[bytes, bool, bytes]:
    body = b""
    while data:
        size, mark, data = data.partition(b"\r\n")
        length = int(size or b"0", 16)
        if mark and not length:
            assert data.startswith(b"\r\n"), "a server with trailers"
            return body, True, data[2:]
        body, data = body + data[:length], data[length + 2 :]
    return body, False, b""


def recorded(records: Sequence[Record], end: Side) -> list[Connection]:
    """The same from a capture: what it says was on the wire at the client's end, or at the server's.

    A stream is there as it came at its sender's end, and as it was sent on at the other.
    """
    senders = {one.stream: one.sender for one in records if isinstance(one, Open)}
    whole = {one.stream for one in records if isinstance(one, Close) and one.how == "eof"}
    bodies: dict[int, bytes] = defaultdict(bytes)
    sides: dict[int, tuple[list[Message], list[Message]]] = defaultdict(lambda: ([], []))
    for one in records:
        if isinstance(one, Frame):
            is_sent_on = one.forwarded is not None and senders[one.stream] != end
            bodies[one.stream] += (one.forwarded or b"") if is_sent_on else one.data
    for one in records:
        if isinstance(one, Open):
            head = one.head if one.forwarded is None or one.sender == end else one.forwarded
            message = Message(head=head, body=bodies[one.stream], is_whole=one.stream in whole)
            sides[one.connection][one.sender != CLIENT].append(message)
    return sorted((tuple(requests), tuple(responses)) for requests, responses in sides.values())


def disagreements(folder: Path, records: Sequence[Record]) -> list[Disagreement]:
    """Where a capture says anything else than the loggers on either side of mcpspy: FOLDER/outer and FOLDER/inner.

    None means too that each request reached the server once, and each response the client.
    """
    outer, inner = logged(folder / "outer"), logged(folder / "inner")
    client_end, server_end = recorded(records, CLIENT), recorded(records, SERVER)
    assert outer, "nothing passed"
    return [
        *_differences(outer, client_end, CLIENT),
        *_differences(server_end, inner, CLIENT),
        *_differences(inner, server_end, SERVER),
        *_differences(client_end, outer, SERVER),
    ]


def _differences(near: Sequence[Connection], far: Sequence[Connection], sender: Side) -> list[Disagreement]:
    """Where two places on the way of the same bytes disagree; `near` is the one nearer to their sender.

    Of a message that did not reach the far place whole, since somebody left, the near one may have more.
    """
    first, second = ([message for one in place for message in one[sender != CLIENT]] for place in (near, far))
    return [(one, other) for one, other in zip_longest(first, second) if not _agree(one, other)]


def _agree(near: Message | None, far: Message | None) -> bool:
    if near is None or far is None or near.head != far.head:
        return False
    return near.body == far.body if far.is_whole else near.body.startswith(far.body)
