"""What bodies and events of HTTP hold: messages, or something else, which belongs to its transaction.

A body is read as JSON-RPC if it is JSON-RPC, whatever its content type says; pages, metadata and what OAuth needs are no malformed
messages. Refuses to raise: what cannot be read is no message.
"""

from __future__ import annotations

from typing import Final

from ...wire.json_spans import WHITESPACE
from ...wire.jsonrpc import Piece, cut

DONE: Final = b"[DONE]"
"""The end mark of another protocol (chat completions), which some servers send here too."""

_UNREADABLE: Final = ("not JSON", "nested too deep", "more than one value")


def body_pieces(data: bytes, *, is_json: bool, answers: bool) -> list[Piece]:
    """The messages in a body; none if it holds none.

    `is_json` says that it is announced as JSON, `answers` that it is due to be JSON-RPC: the body of a POST, or the answer to
    one that was. Then one that should be a message and is broken is a malformed one.
    """
    if not data.strip(WHITESPACE):
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
    """Whether an object is meant as JSON-RPC. `{"error": "invalid_token"}` is not: so OAuth spells its errors."""
    if piece.kind == "malformed" or "no-jsonrpc" not in piece.flaws:
        return piece.kind != "malformed"
    return answers and (piece.kind in ("request", "notification") or bytes(piece.content)[:1] == b"{")
