"""Two servers compared: their identity and what they offer. And clients of one server side by side, as short texts.

The identity is one value, so that differences have paths: `$.client.version`, `$.server.capabilities.tools`. Of several
clients it is the first. Nothing is reported missing from a list that was not seen whole, and nothing about a list that one
side never saw.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ...records import CLIENT, SERVER, Exit
from ...transcript.definitions import Definition, DefinitionKind, Offer
from ...transcript.http.transaction import Transaction
from ...transcript.llm.json_values import members
from ...transcript.mcp.codes import CLIENT_CAPABILITIES, CLIENT_INFO, SERVER_INFO
from ...transcript.mcp.methods import INITIALIZE, OPENINGS
from ...transcript.mcp.revisions import Era
from ...transcript.model import CaptureInfo, Exchange, Kind, Message, Transcript
from ..json_values import read
from ..mock.content import answer_reading, params_value
from .difference import NO_DIFFERENCES, Differences, differences
from .ignore import Ignore

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


def identity(exchanges: Iterable[Exchange], ended: Exit | None = None) -> dict[str, Any]:
    """Return names, versions, capabilities, revision and, with `ended`, the server's exit; what is unknown is absent."""
    facts: dict[str, Any] = {}
    introduction = _introduction(exchanges)
    if introduction is not None:
        facts = _legacy(introduction) if introduction.method == INITIALIZE else _modern(introduction)
        revision = introduction.response.revision if introduction.response is not None else None
        facts["revision"] = revision or introduction.revision
    if ended is not None:
        values = {"code": ended.code, "signal": ended.signal, "error": ended.error}
        facts.setdefault("server", {})["exit"] = {name: value for name, value in values.items() if value not in (None, "")}
    return facts


def _introduction(exchanges: Iterable[Exchange]) -> Exchange | None:
    """Find the opening that was answered; without one, the first request of the modern era, which holds as much."""
    first: Exchange | None = None
    for exchange in exchanges:
        if exchange.sender != CLIENT or exchange.response is None or exchange.response.kind is not Kind.RESULT:
            continue
        if exchange.method in OPENINGS:
            return exchange
        if first is None and exchange.era is Era.MODERN:
            first = exchange
    return first


def _legacy(opening: Exchange) -> dict[str, Any]:
    params, result = members(params_value(opening.request)), members(members(answer_reading(opening).value).get("result"))
    return {
        "client": members(params.get("clientInfo")) | _capabilities(params.get("capabilities")),
        "server": members(result.get("serverInfo")) | _capabilities(result.get("capabilities")),
    }


def _modern(first: Exchange) -> dict[str, Any]:
    meta = members(members(params_value(first.request)).get("_meta"))
    result = members(members(answer_reading(first).value).get("result"))
    discovered = result.get("capabilities") if first.method in OPENINGS else None
    server = members(members(result.get("_meta")).get(SERVER_INFO)) or members(result.get("serverInfo"))
    return {
        "client": members(meta.get(CLIENT_INFO)) | _capabilities(meta.get(CLIENT_CAPABILITIES)),
        "server": server | _capabilities(discovered),
    }


def _capabilities(value: Any) -> dict[str, Any]:
    return {"capabilities": value} if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One definition that was added, removed or changed; `fields` are the differences of a changed one."""

    how: Literal["added", "changed", "removed"]
    part: DefinitionKind
    name: str
    before: Definition | None = None
    after: Definition | None = None
    fields: Differences = NO_DIFFERENCES


def definition_changes(before: Offer, after: Offer, ignore: Ignore) -> Iterator[DefinitionChange]:
    """Yield the changes kind by kind, in the order in which the server lists definitions now; removed ones come last."""
    for part in DefinitionKind:
        old, new = before.current.get(part), after.current.get(part)
        if old is None or new is None:
            continue
        for name, definition in new.items():
            known = old.get(name)
            if known is not None:
                yield from _changes(part, known, definition, ignore)
            elif part in before.complete:
                yield DefinitionChange(how="added", part=part, name=name, after=definition)
        if part in after.complete:
            removed = ((name, definition) for name, definition in old.items() if name not in new)
            for name, definition in removed:
                yield DefinitionChange(how="removed", part=part, name=name, before=definition)


def _changes(part: DefinitionKind, before: Definition, after: Definition, ignore: Ignore) -> Iterator[DefinitionChange]:
    if before.raw == after.raw:
        return
    fields = differences(read(before.raw), read(after.raw), ignore)
    if fields:
        yield DefinitionChange(how="changed", part=part, name=after.name, before=before, after=after, fields=fields)


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
