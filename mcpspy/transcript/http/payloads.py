"""Bodies of HTTP to JSON-RPC messages, and frames to the HTTP/1.1 chunks that begin in them.

A body is read as JSON-RPC if it is JSON-RPC, whatever its content type. Pages, metadata and OAuth's bodies are no malformed messages;
they belong to their transaction. Nothing raises: bytes that cannot be read hold no message.
"""

from typing import Final

from ...records import Frame, Note
from ...wire.json_spans import WHITESPACE
from ...wire.jsonrpc import Piece, cut
from ..correlator import appended
from .transaction import HALF_CLOSED, OpenChunk, Stream, Transaction

DONE: Final = b"[DONE]"
"""The end mark of chat completions, which some MCP servers send as well."""

_UNREADABLE: Final = ("not JSON", "nested too deep", "more than one value")


def body_pieces(data: bytes, *, is_json: bool, answers: bool) -> list[Piece]:
    """Return the messages in a body; none if it holds none.

    `is_json` says that its content type is JSON; `answers` says that JSON-RPC is due: it is the body of a POST, or of the answer to a
    JSON-RPC request. Where both hold, a body that cannot be read is a malformed message.
    """
    if not data.strip(WHITESPACE) or (b"{" not in data and not (is_json and answers)):
        return []
    pieces = cut(data)
    if any(_is_message(piece, answers=answers) for piece in pieces):
        return pieces
    if pieces[0].reason == "more than one value":  # newline-delimited JSON, perhaps
        lines = [piece for line in data.split(b"\n") if line.strip(WHITESPACE) for piece in cut(line)]
        if any(_is_message(piece, answers=answers) for piece in lines):
            return lines
    return pieces if is_json and answers and pieces[0].reason in _UNREADABLE else []


def _is_message(piece: Piece, *, answers: bool) -> bool:
    """Return whether an object is meant as JSON-RPC. OAuth's `{"error": "invalid_token"}` is not."""
    if piece.kind == "malformed" or "no-jsonrpc" not in piece.flaws:
        return piece.kind != "malformed"
    return answers and (piece.kind in ("request", "notification") or bytes(piece.content)[:1] == b"{")


def chunk_sizes(frame: Frame, open_chunk: OpenChunk) -> tuple[tuple[int, ...], OpenChunk]:
    """Return the sizes of the chunks that begin in the next frame of a stream, in order, and the chunk that goes on after it.

    `open_chunk` is the one that goes on before it. No chunk begins in a frame that lies within an earlier one: a chunk that holds
    several events is recorded with each of them (docs/capture.md).
    """
    sizes = frame.chunks
    if not sizes:
        return (), open_chunk
    goes_on = open_chunk is not None and sizes[0] == open_chunk[0]
    new = sizes[1:] if goes_on else sizes
    held_bytes = sum(new) + (open_chunk[1] if open_chunk is not None and goes_on else 0)
    # A redacted frame has another length than on the wire: then the next frame shows whether the chunk goes on.
    left_bytes = 1 if frame.redacted else held_bytes - frame.length
    return new, (sizes[-1], left_bytes) if left_bytes > 0 else None


def measure(stream: Stream, frame: Frame, shift_ns: int, *, keeps_frame: bool) -> None:
    """Add a frame to the times, the size and the chunks of its stream, and with `keeps_frame` to its frames."""
    first_ns, last_ns = frame.first_ns, frame.at_ns
    if shift_ns:  # else times are the objects that they are in the record: 36 bytes less each
        first_ns, last_ns = first_ns + shift_ns, last_ns + shift_ns
    if stream.first_ns is None:
        stream.first_ns = first_ns
    stream.last_ns = last_ns
    if not frame.rare:
        stream.body_bytes += len(frame.data)
    else:
        stream.body_bytes += frame.length
        sizes, stream.open_chunk = chunk_sizes(frame, stream.open_chunk) if frame.chunks else ((), stream.open_chunk)
        stream.chunks += len(sizes)
    if keeps_frame:
        stream.kept = appended(stream.kept, frame)


def add_note(transaction: Transaction, record: Note, shift_ns: int) -> bool:
    """Add the tap's note to its transaction. Return whether it says that a side has left, which ends the transaction."""
    transaction.notes = appended(transaction.notes, record)
    if record.topic == HALF_CLOSED:
        transaction.half_closed_ns = record.at_ns + shift_ns
    if record.topic != "left":
        return False
    transaction.left_by = str(record.extra.get("by", ""))
    transaction.left_ns = record.at_ns + shift_ns
    return True
