"""Findings about JSON-RPC errors: their members and their codes."""

from collections.abc import Hashable, Iterator
from typing import Final

from ...exchange import shared_answer
from ...mcp.blocks import member
from ...mcp.codes import ERROR_CODES, IMPLEMENTATION_CODES, MODERN_CODES, REQUEST_CANCELLED
from ...mcp.revisions import Era
from ...model import Exchange, Message
from ..facts import CaptureFacts, ErrorKind
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"add"}\n'
_CLEAN: Final = f"{_CALL}← error 1 -32602 Unknown tool: add"

MALFORMED_ERROR: Final = protocol_rule(
    name="malformed-error",
    title="Malformed error",
    severity=Severity.ERROR,
    what="An error has no integer code, or no message that is a string.",
    why="SDKs do not accept it as a response, and the request waits until it times out.",
    blame="The answering side: JSON-RPC 2.0, section 5.1, requires both members.",
    example=f'{_CALL}← {{"jsonrpc":"2.0","id":1,"error":"unknown tool"}}',
    clean=_CLEAN,
    advice='Send {"code": -32603, "message": "…"}, and put further details into data.',
)

RESERVED_ERROR_CODE: Final = protocol_rule(
    name="reserved-error-code",
    title="Undefined error code in a reserved range",
    severity=Severity.NOTE,
    what="An error has a code in JSON-RPC's reserved range (-32768 to -32000) that is not defined.",
    why="A later revision may define the code, and clients will then misread the error.",
    blame="The answering side: it chose the code.",
    example=f"{_CALL}← error 1 -32199 The printer is on fire",
    clean=_CLEAN,
    advice="Use a defined code, a code from -32019 to -32000, or one outside the reserved range.",
)

ERROR_CODE_NOT_IN_REVISION: Final = protocol_rule(
    name="error-code-not-in-revision",
    title="Error code of another revision",
    what="An error has a code that MCP defines only in other revisions than the one in force.",
    why="The other side does not know the code and cannot act on the error.",
    blame="The answering side: the revision was agreed on, or named in the request.",
    example=('· revision 2026-07-28\n→ resources/read 1 {"uri":"file:///x"}\n← error 1 -32002 Resource not found'),
    clean=('· revision 2026-07-28\n→ resources/read 1 {"uri":"file:///x"}\n← error 1 -32602 Resource not found'),
    advice="Use a code of the revision in force: from 2026-07-28 on, -32602 for an unknown resource.",
)

RULES: Final = (MALFORMED_ERROR, RESERVED_ERROR_CODE, ERROR_CODE_NOT_IN_REVISION)

_RESERVED: Final = range(-32768, -31999)
_KNOWN: Final = {*ERROR_CODES, REQUEST_CANCELLED, -32801, -32802, -32803}
"""Defined codes, with those of the Language Server Protocol that SDKs have adopted."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find malformed errors, and errors with undefined codes or codes of another revision."""
    seen: set[Hashable] = set()
    for exchange in facts.errors if any(map(_may_be_wrong, facts.error_kinds)) else ():
        message = exchange.response
        if message is None:
            continue
        if (shared := shared_answer(exchange)) is not None:
            if shared in seen:
                continue
            seen.add(shared)
        code, words = member(message.error, "code"), member(message.error, "message")
        if type(code) is not int or not isinstance(words, str):
            missing = "no integer code" if type(code) is not int else "no message"
            what = f"The error that answers {call_name(exchange)} has {missing}."
            yield hit_in(MALFORMED_ERROR, message, exchange.row, what, group=missing)
        else:
            yield from _code(exchange, message, code)


def _may_be_wrong(kind: ErrorKind) -> bool:
    """Return whether errors of this kind have to be looked at one by one."""
    return kind.code is None or _is_undefined(kind.code) or _is_of_another(kind.code, kind.revision)


def _is_undefined(code: int) -> bool:
    return code in _RESERVED and code not in _KNOWN and code not in IMPLEMENTATION_CODES and not -32099 <= code <= -32000


def _is_of_another(code: int, revision: str | None) -> bool:
    """Return whether a code is one that other revisions have, and this one has not."""
    known = ERROR_CODES.get(code)
    return known is not None and revision is not None and not known.is_in(revision)


def _code(exchange: Exchange, message: Message, code: int) -> Iterator[Hit]:
    if _is_undefined(code):
        what = f"{call_name(exchange)} was answered with the code {code}, which is reserved but not defined."
        yield hit_in(RESERVED_ERROR_CODE, message, exchange.row, what, group=str(code))
    elif _is_of_another(code, exchange.revision):
        if code in MODERN_CODES and exchange.era is Era.LEGACY:  # a server of both eras answers so to a client of the wrong one
            return
        name = ERROR_CODES[code].name
        what = f"{call_name(exchange)} was answered with {code} ({name}), which revision {exchange.revision} does not have."
        yield hit_in(ERROR_CODE_NOT_IN_REVISION, message, exchange.row, what, group=str(code))
