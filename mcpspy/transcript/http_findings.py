"""Findings about HTTP: statuses and header fields that contradict, endpoints, what mcpspy itself had to answer."""

from collections.abc import Iterator
from typing import Final

from ..records import CLIENT, SERVER
from .found import Found, call, found, found_in, quoted
from .head import meaning
from .http_endings import http_ending_findings
from .mcp import revision
from .model import HTTP_ERRORS, Exchange, Kind
from .story import Story
from .transaction import Stream, Transaction

_UPSTREAM_FAILED: Final = (502, 504)


def http_findings(story: Story) -> Iterator[Found]:
    """What the transactions of a capture tell beside their messages."""
    if not story.source.transactions:
        return
    rows = {one.transaction.number: one.row for one in reversed(story.http) if one.transaction is not None}
    for transaction in story.source.transactions.values():
        row = transaction.row or rows.get(transaction.number)
        yield from _oddities(story, transaction, row)
        if transaction.request is not None and b"\ndpop:" in transaction.request.opened.head.lower():
            yield _of_stream("dpop-proof", story, transaction.request, row, "A request bears a DPoP proof.", "mcpspy")
    for exchange in story.http:
        yield from _contradictions(story, exchange)
    yield from http_ending_findings(story)


def _oddities(story: Story, transaction: Transaction, row: int | None) -> Iterator[Found]:
    for oddity in transaction.oddities:
        said = quoted(oddity.data)
        rule, culprit, group = str(oddity.name), SERVER, oddity.name
        match oddity.name:
            case "foreign-endpoint":
                what = f"The stream of {transaction.target} announces the endpoint {said}, elsewhere."
            case "endpoint-dialect":
                what = f"The stream of {transaction.target} announces its endpoint as JSON: {said}"
            case "shared-endpoint":
                rule, what = "ambiguous-stream", f"Two open streams announced the same endpoint: {said}"
            case "done-event":
                what = f"An event on the stream of {transaction.target} is {said}."
            case "forged":
                failed = transaction.status in _UPSTREAM_FAILED
                rule, culprit, group = ("upstream-failed", SERVER, said) if failed else ("request-refused", CLIENT, said)
                what = f"{transaction.method} {transaction.target} was answered {transaction.status}: {said}"
            case _:
                continue
        index = story.source.index
        yield found(
            rule, at_ns=oddity.at_ns, capture=index, number=oddity.number, row=row, what=what, culprit=culprit, group=group
        )


def _of_stream(rule: str, story: Story, stream: Stream, row: int | None, what: str, culprit: str, group: str = "one") -> Found:
    index, number = story.source.index, stream.opened.number
    return found(rule, at_ns=stream.at_ns, capture=index, number=number, row=row, what=what, culprit=culprit, group=group)


def _contradictions(story: Story, exchange: Exchange) -> Iterator[Found]:
    transaction, response = exchange.transaction, exchange.response
    if response is not None and response.kind is Kind.RESULT:
        carried = story.source.transaction_of(response.stream)
        if carried is not None and carried.status >= HTTP_ERRORS and response.sender == SERVER:
            what = f"The result of {call(exchange)} came with HTTP {carried.status}."
            yield found_in("status-contradicts", response, exchange.row, what, group=str(carried.status))
    if exchange.sender != CLIENT or transaction is None or transaction.request is None:
        return
    for field, value, said in _mismatches(exchange, transaction.request):
        what = f"The field {field} of a request says {quoted(value.encode())}, its body {quoted(said.encode())}."
        yield found_in("header-contradicts", exchange.request, exchange.row, what, group=field)


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
