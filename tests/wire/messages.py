"""What the tests of the HTTP framing share: feeding a whole direction, and pieces put together again."""

from mcpspy.wire.http import Piece, Requests, Responses
from mcpspy.wire.http_body import BlankLines, Body, OpaqueBytes, RefusedBytes


def of_requests(data: list[bytes]) -> list[Piece]:
    """The pieces of these reads from a client, and of its close."""
    machine = Requests()
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


def of_responses(data: list[bytes], *methods: bytes) -> list[Piece]:
    """The pieces of these reads from a server that was sent requests with these methods, and of its close."""
    machine = Responses()
    for method in methods:
        machine.expect(method)
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


def merged(pieces: list[Piece]) -> list[Piece]:
    """The pieces as if all had come in one read: neighbours that only the reads had cut are one again."""
    found: list[Piece] = []
    for piece in pieces:
        match found[-1:], piece:
            case [Body(raw, payload, chunks)], Body():
                found[-1] = Body(raw + piece.raw, payload + piece.payload, chunks + piece.chunks)
            case [BlankLines(raw)], BlankLines():
                found[-1] = BlankLines(raw + piece.raw)
            case [OpaqueBytes(raw)], OpaqueBytes():
                found[-1] = OpaqueBytes(raw + piece.raw)
            case [RefusedBytes(raw, reason)], OpaqueBytes():
                found[-1] = RefusedBytes(raw + piece.raw, reason)
            case _:
                found.append(piece)
    return found


def raw(pieces: list[Piece]) -> bytes:
    return b"".join(piece.raw for piece in pieces)
