"""Helpers of the tests of the HTTP framing: they feed a whole direction, and merge pieces."""

from mcpspy.wire.http import HttpMessages, Piece
from mcpspy.wire.http_body import BlankLines, Body, OpaqueBytes, RefusedBytes


def of_requests(data: list[bytes]) -> list[Piece]:
    """Return the pieces of these reads from a client, and of its close."""
    machine = HttpMessages.of_requests()
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


def of_responses(data: list[bytes], *methods: bytes) -> list[Piece]:
    """Return the pieces of these reads from a server that got requests with these methods, and of its close."""
    machine = HttpMessages.of_responses()
    for method in methods:
        machine.expect(method)
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


def merged(pieces: list[Piece]) -> list[Piece]:
    """Merge neighbours that only the reads had cut, as if all had come in one read."""
    joined: list[Piece] = []
    for piece in pieces:
        match joined[-1:], piece:
            case [Body(raw, payload, chunks)], Body():
                joined[-1] = Body(raw + piece.raw, payload + piece.payload, chunks + piece.chunks)
            case [BlankLines(raw)], BlankLines():
                joined[-1] = BlankLines(raw + piece.raw)
            case [OpaqueBytes(raw)], OpaqueBytes():
                joined[-1] = OpaqueBytes(raw + piece.raw)
            case [RefusedBytes(raw, reason)], OpaqueBytes():
                joined[-1] = RefusedBytes(raw + piece.raw, reason)
            case _:
                joined.append(piece)
    return joined


def raw(pieces: list[Piece]) -> bytes:
    return b"".join(piece.raw for piece in pieces)
