"""Findings about header fields that say something else than the message in the body."""

from collections.abc import Iterator
from typing import Final

from ...records import CLIENT
from ..finding import Severity
from ..head import meaning
from ..mcp import revision
from ..model import Exchange
from ..transaction import Stream
from .found import Found, found_in, quoted
from .rule import Family, Rule
from .story import Story

HEADER_CONTRADICTS: Final = Rule(
    name="header-contradicts",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A header field says something else than the message in the body: Mcp-Method, Mcp-Name or MCP-Protocol-Version.",
    why="Servers of the revision 2026-07-28 refuse such a request with the error -32020.",
    blame="The client: it wrote both, and mcpspy passes both on as they are.",
    example=(
        "→ POST /mcp\n"
        "  Mcp-Method: tools/list\n"
        '  {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}\n'
        '← 400 Bad Request\n  {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch"}}'
    ),
    clean=(
        "→ POST /mcp\n"
        "  Mcp-Method: tools/call\n"
        "  Mcp-Name: forecast\n"
        '  {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}\n'
        '← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    ),
    fix="Make the fields from the message that is sent.",
)

RULES: Final = (HEADER_CONTRADICTS,)


def find(story: Story) -> Iterator[Found]:
    """What requests of the client say twice, and not the same."""
    for exchange in story.http:
        transaction = exchange.transaction
        if exchange.sender != CLIENT or transaction is None or transaction.request is None:
            continue
        for field, value, said in _mismatches(exchange, transaction.request):
            what = f"The field {field} of a request says {quoted(value.encode())}, its body {quoted(said.encode())}."
            yield found_in(HEADER_CONTRADICTS, exchange.request, exchange.row, what, group=field)


def _mismatches(exchange: Exchange, request: Stream) -> Iterator[tuple[str, str, str]]:
    """Fields that mirror the body and do not say the same: name, value, and what the body says."""
    raw = request.opened.head.lower()
    if b"\nmcp-method:" not in raw and b"\nmcp-name:" not in raw:
        return
    head = request.head
    said = {
        "Mcp-Method": exchange.method,
        "Mcp-Name": exchange.target if exchange.method in ("tools/call", "prompts/get", "resources/read") else None,
        "MCP-Protocol-Version": revision(exchange.request.raw),
    }
    for field, value in said.items():
        told = head.get(field.lower())
        if told and value is not None and meaning(told) != value:
            yield field, meaning(told), value
