"""Classes of rows: to the terms whose keys are `CLASS_KEYS`, all rows of a class give the same answer.

An index keeps the class of each row, so that a filter is asked once for each class, and not for each of a million rows.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ..http.transaction import Transaction
from ..mcp.fields import code_of
from ..message import ERROR, MALFORMED, Message
from ..model import CaptureInfo, ChannelEvent, Exchange, Log, Row, UnpairedMessage
from .grammar import AllOf, AnyOf, Node, Not, Term

CLASS_KEYS: Final = frozenset({
    "method", "tool", "prompt", "resource", "target", "status", "dir", "sender", "kind", "part", "server", "client", "lane",
    "transport", "http", "session", "era", "revision", "rule", "flaw", "model",
})  # fmt: skip

_ANY_TASK: Final = Term(key="task", operator=":", value="*")


def row_class(row: Row, info: CaptureInfo, rules: dict[int, set[str]]) -> Hashable:
    """Return the class of a row. `rules` are those of the findings that point at each row."""
    match row:
        case Exchange(request=request, response=response):
            others = (*row.notifications, *row.partials, *row.more_responses)
            call = info.calls.get(row.row)
            return (
                _message(request, info),
                None if response is None else _message(response, info),
                frozenset([_message(message, info) for message in others]) if others else None,
                row.outcome.value,
                None if call is None else (call.part(row).value, call.task is None),
                _carrier(row.transaction),
                *_about(row, info, rules),
            )
        case UnpairedMessage(message=message):
            call = info.calls.get(row.row)
            return (_message(message, info), None if call is None else call.task is None, *_about(row, info, rules))
        case Transaction():
            return (_carrier(row), row.response is None, row.over, *_about(row, info, rules))
        case ChannelEvent(record=record):
            return type(record).__name__
        case _:
            return type(row) is Log


def _about(
    row: Exchange | UnpairedMessage | Transaction, info: CaptureInfo, rules: dict[int, set[str]]
) -> tuple[Hashable, ...]:
    found = rules.get(row.row)
    return info.client_of(row) if info.transactions else "", None if found is None else frozenset(found)


def _message(message: Message, info: CaptureInfo) -> tuple[Hashable, ...]:
    kind = message.kind
    return (
        message.sender,
        kind.value,
        message.method,
        message.target,
        message.flaws,
        message.revision,
        message.result_type,
        code_of(message) if kind is ERROR else None,
        message.raw.lstrip()[:1] if kind is MALFORMED else None,
        _carrier(info.transaction_of(message.stream)) if info.transactions else None,
    )


def _carrier(transaction: Transaction | None) -> tuple[Hashable, ...] | None:
    if transaction is None:
        return None
    scope = transaction.scope
    return transaction.status, transaction.method, transaction.target, scope.kind.value, scope.session, scope.stream


def possible(node: Node, *, is_wanted: bool = True, keys: frozenset[str] = CLASS_KEYS) -> Node:
    """Return a tree that matches all that `node` matches, and more, with terms of these keys alone."""
    match node:
        case Not(part=part):
            return Not(part=possible(part, is_wanted=not is_wanted, keys=keys))
        case AllOf(parts=parts):
            return AllOf(parts=tuple(possible(part, is_wanted=is_wanted, keys=keys) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(parts=tuple(possible(part, is_wanted=is_wanted, keys=keys) for part in parts))
        case Term(key=key) if key in keys:
            return node
        case Term(key="task") if is_wanted:
            return _ANY_TASK
        case _:
            return AllOf(parts=()) if is_wanted else AnyOf(parts=())  # of which the first always matches, and the second never
