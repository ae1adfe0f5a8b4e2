"""Clients side by side: what each did in its capture of the same server, aspect by aspect, as short texts."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...records import CLIENT, SERVER
from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Exchange, Message, Transcript
from .server import identity

OPENING_MESSAGES = 8
"""So many messages of a client are its opening."""

_NOT_FOUND = 404
_LIST_CHANGED = "/list_changed"
_UNSEEN = "not seen"
_USES = {"tools": "tools/call", "prompts": "prompts/get", "resources": "resources/read"}
"""The methods that use what is in a list."""
_PROMPT_NS = 100_000_000
"""A call so soon after a change may have been on its way already."""
_REASON_LETTERS = 60
_is_timeout = re.compile(r"\btime[sd]?[ -]?out|-32001|\bdeadline", re.IGNORECASE).search
_is_user = re.compile(r"\busers?\b", re.IGNORECASE).search


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedClient:
    """One client: its name, the server that it spoke to, and what it did, by aspect."""

    name: str
    server: str
    aspects: dict[str, str]


def compared_client(transcript: Transcript) -> ComparedClient:
    """Describe the client of the first capture of `transcript`."""
    info = transcript.captures[0]
    exchanges = [row for row in transcript.exchanges if row.capture == info.index]
    facts = identity(exchanges)
    messages = [message for message in transcript.messages if message.capture == info.index]
    client: dict[str, Any] = facts.get("client", {})
    server: dict[str, Any] = facts.get("server", {})
    aspects = {
        "version": f"{client.get('name', '?')} {client.get('version', '')}".strip(),
        "revision": str(facts.get("revision") or "?"),
        "capabilities": ", ".join(_paths(client.get("capabilities") or {})) or "none",
        "opening": " → ".join(message.method or "" for message in _sent(messages)[:OPENING_MESSAGES]),
        "header fields": ", ".join(_fields(info)) or "none: stdio",
        "gives up": _given_up(exchanges),
        "on list_changed": _after_changes(messages),
        "on 404": _after_not_found(info),
    }
    return ComparedClient(name=info.client, server=str(server.get("name") or info.label), aspects=aspects)


def _sent(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.sender == CLIENT and message.method]


def _paths(value: dict[str, Any], before: str = "") -> Iterator[str]:
    """Yield the names of capabilities, with those of their members: `roots.listChanged`."""
    for name in sorted(value):
        inner = value[name]
        if isinstance(inner, dict) and inner:
            yield from _paths(inner, f"{before}{name}.")
        elif inner is not False:
            yield f"{before}{name}"


def _fields(info: CaptureInfo) -> list[str]:
    """List the header fields of all POSTs, in lower case; with their values where these tell clients apart."""
    fields: dict[str, str] = {}
    for transaction in info.transactions.values():
        if transaction.method == "POST" and transaction.request is not None:
            fields |= {name.lower(): value for name, value in transaction.request.head.fields}
    telling = ("accept", "accept-encoding", "user-agent", "mcp-protocol-version")
    return [f"{name}: {fields[name]}" if name in telling else name for name in sorted(fields)]


def _given_up(exchanges: list[Exchange]) -> str:
    """Say after which times the client gave requests up, how it told the server, and with what reason."""
    ways: Counter[str] = Counter()
    for row in exchanges:
        given_up_ns = row.given_up_ns
        if row.sender == CLIENT and given_up_ns is not None:
            how = "closing the stream" if row.cancelled is None else f"notifications/cancelled{_reason(row.cancelled)}"
            ways[f"{(given_up_ns - row.at_ns) / 1e9:.1f} s, by {how}"] += 1
    return "; ".join(f"after {way}" + (f" ×{count}" if count > 1 else "") for way, count in sorted(ways.items())) or _UNSEEN


def _reason(cancellation: Message) -> str:
    """Return who or what gave a request up, as its reason says: `(timed out)`, `(by the user)`, or the reason itself."""
    params = cancellation.params
    reason = str(params.get("reason") or "").strip() if isinstance(params, dict) else ""
    if _is_timeout(reason):
        return " (timed out)"
    if _is_user(reason):
        return " (by the user)"
    return f" (“{reason if len(reason) <= _REASON_LETTERS else reason[:_REASON_LETTERS] + '…'}”)" if reason else ""


def _after_changes(messages: list[Message]) -> str:
    """Say whether the client fetched a list again after the server had announced a change of it, and whether before it used it."""
    ways: Counter[str] = Counter()
    for at, message in enumerate(messages):
        if message.sender != SERVER or not (message.method or "").endswith(_LIST_CHANGED):
            continue
        kind = (message.method or "").split("/")[1]
        ways[_after_change(message, kind, _sent(messages[at + 1 :]))] += 1
    return ", ".join(ways) or _UNSEEN


def _after_change(change: Message, kind: str, sent: list[Message]) -> str:
    fetch = next((message for message in sent if message.method == f"{kind}/list"), None)
    is_used = any(
        message.method == _USES.get(kind)
        and message.at_ns - change.at_ns >= _PROMPT_NS
        and (fetch is None or message.at_ns < fetch.at_ns)
        for message in sent
    )
    if fetch is None:
        return f"goes on with the old list of {kind}" if is_used else f"does not fetch {kind}/list"
    if is_used:
        later_s = (fetch.at_ns - change.at_ns) / 1e9
        return f"goes on with the old list of {kind}, fetches {kind}/list {later_s:.1f} s later"
    return f"fetches {kind}/list"


def _after_not_found(info: CaptureInfo) -> str:
    """Say what the client sent next after a POST was answered with 404."""
    posts = [transaction for transaction in info.transactions.values() if transaction.method == "POST"]
    ways = [_next_step(posts[at + 1 :]) for at, transaction in enumerate(posts) if transaction.status == _NOT_FOUND]
    return ", ".join(dict.fromkeys(ways)) or _UNSEEN


def _next_step(posts: list[Transaction]) -> str:
    if not posts:
        return "stops"
    return "opens a new session" if not posts[0].scope.session or posts[0].scope.replaces else "goes on"
