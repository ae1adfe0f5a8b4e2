"""Findings about what a gateway changed in a message that it passed on, where both of its sides were tapped.

    client ──[capture A]── gateway ──[capture B]── server

    A:  tools/call add {"id": 9007199254740993}      B:  tools/call add {"id": 9007199254740992}
        $.arguments.id: 9007199254740993 became 9007199254740992

A gateway may give each hop ids, progress tokens, sessions, cursors, a revision and `_meta` of its own, and put a prefix before names.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...records import SERVER
from ...wire.json_spans import UNREADABLE, members
from ..definitions import step
from ..hops import hop_pairs
from ..mcp.blocks import member
from ..mcp.methods import OPENINGS, PROGRESS
from ..model import Kind, UnpairedMessage
from .facts import capture_facts
from .rule import HANDSHAKE, Hit, Severity, hit_in, transport_rule
from .words import call_name, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..exchange import ForwardedCall
    from ..model import Exchange, Message
    from .facts import CaptureFacts, TranscriptFacts

_TRACE: Final = '"_meta":{"progressToken":"t","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'
_CALL: Final = f'→ tools/call 1 {{"name":"add","arguments":{{"to":%s}},{_TRACE}}}\n'
_RESULT: Final = '← result 1 {"content":[{"type":"text","text":"%s"}]}\n'
_PROGRESS: Final = '← notifications/progress {"progressToken":"t","progress":1}\n'


def _hops(outer: str, inner: str, text: str, progress: str) -> str:
    """Write the two captures of a gateway."""
    first = f"{HANDSHAKE}{_CALL % outer}· 0.6 s later\n{progress}{_RESULT % 'done'}"
    return f"{first}· behind the gateway\n{HANDSHAKE}· 0.2 s later\n{_CALL % inner}· 0.1 s later\n{_PROGRESS}{_RESULT % text}"


_CLEAN: Final = _hops('"x"', '"x"', "done", _PROGRESS)

CHANGED_BY_GATEWAY: Final = transport_rule(
    name="changed-by-gateway",
    title="Message changed by a gateway",
    what="A gateway that was tapped on both sides passed a request or an answer on with other content.",
    why="The server does something other than it was asked, or the client gets something other than the server's answer.",
    blame="The gateway: the other side shows what it received.",
    example=_hops('"Zürich"', '"Zurich"', "done", _PROGRESS),
    clean=_CLEAN,
    advice="Look for filters, limits and conversions in the gateway's settings; mcpspy diff of the two captures shows every change.",
)

WITHHELD_BY_GATEWAY: Final = transport_rule(
    name="withheld-by-gateway",
    title="Notification withheld by a gateway",
    what=(
        "A gateway that was tapped on both sides did not pass on what the server reported about a call, a change of a list, "
        "or the client's cancellation."
    ),
    why="The user sees no progress and old lists, the client runs into its time limit, or the server works for nobody.",
    blame="The gateway: the server sent it, and the client asked for it.",
    example=_hops('"x"', '"x"', "done", ""),
    clean=_CLEAN,
    advice="Let the gateway pass notifications on as they come, and keep the progress token of the client's request.",
)

RULES: Final = (CHANGED_BY_GATEWAY, WITHHELD_BY_GATEWAY)

MAX_PATHS: Final = 3
"""So many changed places of a message are named; the others are counted."""
MAX_LEVELS: Final = 64
"""Values that are nested deeper are compared as texts."""
MAX_READ_BYTES: Final = 4 << 20
"""A larger message is not compared member by member."""

_LETTERS: Final = 50
_WORKED_ON_NS: Final = 1_000_000_000
_ABSENT: Final = object()
_META: Final = "_meta"
_TOKEN: Final = "progressToken"  # noqa: S105 - no password
_SEPARATORS: Final = "_-./:"
_NAMES: Final = frozenset({"name", "title", "uri", "uriTemplate"})
"""Members that a gateway with several servers puts a prefix before."""
_OF_A_HOP: Final = frozenset({"cursor", "nextCursor", "requestState", "taskId", "elicitationId", "createdAt", "lastUpdatedAt"})
"""Values that each hop may spell in its own way, because they go back to where they came from."""
_LISTS: Final = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
"""The members of lists of definitions, by what names an item."""
_DEFAULTS: Final = {"isError": False, "resultType": "complete"}
"""Members that mean the same with these values as without them. So do null, empty lists and empty objects."""


class _Change(NamedTuple):
    """A place in a message with what it was, and what the gateway made of it; `_ABSENT` where there was nothing."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.after is _ABSENT:
            return f"{_clip(self.path)} {_shown(self.before)} was left out"
        if self.before is _ABSENT:
            return f"{_clip(self.path)} {_shown(self.after)} was added"
        before, after = _apart(_text(self.before), _text(self.after))
        return f"{_clip(self.path)}: {before} became {after}"


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find what gateways changed in calls, in their answers, and which notifications they withheld."""
    for number, call in facts.transcript.hops.items():
        if number != call.outer.row or call.outer.method in OPENINGS:
            continue
        yield from _of_params(call)
        yield from _of_answer(call)
        yield from _of_notifications(call)
        yield from _of_cancellation(call)
    yield from _of_changes(facts)


def _of_cancellation(call: ForwardedCall) -> Iterator[Hit]:
    """Find a cancellation of the client that did not get to the server, which worked on for a second or more."""
    outer, inner = call.outer, call.last
    if outer.cancelled is None or outer.given_up_ns is None or inner.given_up_ns is not None or inner.response is None:
        return
    worked_ns = inner.response.at_ns - outer.given_up_ns
    if worked_ns >= _WORKED_ON_NS:
        what = (
            f"The client cancelled {call_name(outer)} (row {outer.row}), and the server, which was not told, "
            f"worked on row {inner.row} for {seconds(worked_ns)} more."
        )
        blame = "The gateway: the client cancelled the call, and the server received no cancellation."
        yield hit_in(
            WITHHELD_BY_GATEWAY,
            outer.cancelled,
            outer.row,
            what,
            culprit="gateway",
            blame=blame,
            group=f"{outer.method} cancelled",
        )


def _of_changes(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find changes of lists that the server announced, and of which the client heard nothing, though it was to hear of them."""
    every = {capture.capture.index: capture for capture in capture_facts(facts.transcript)}
    for outer, inner in sorted(hop_pairs(facts.transcript)):
        forwarded = {key[0] for key in every[outer].notifications}
        for (method, sender, *_), seen in every[inner].notifications.items():
            subject = method.removeprefix("notifications/").removesuffix("/list_changed")
            if sender != SERVER or not method.endswith("/list_changed") or method in forwarded:
                continue
            if not isinstance(seen.first, UnpairedMessage):
                continue
            last_ns = facts.transcript.captures[outer].last_ns + facts.transcript.captures[outer].shift_ns
            if not _announces(every[outer], subject, seen.first.at_ns) or last_ns - seen.first.at_ns < _WORKED_ON_NS:
                continue
            what = f"The server sent {method} (row {seen.first.row}), and the client heard of no change."
            blame = "The gateway: it said in the handshake that it announces changes, and did not pass this one on."
            yield hit_in(
                WITHHELD_BY_GATEWAY, seen.first.message, seen.first.row, what, culprit="gateway", blame=blame, group=method
            )


def _announces(facts: CaptureFacts, subject: str, at_ns: int) -> bool:
    """Tell whether a client was connected at a time, and the other side had declared that it announces such changes."""
    return any(
        exchange.response is not None
        and exchange.response.at_ns <= at_ns
        and (facts.left_ns is None or facts.left_ns > at_ns)
        and member(exchange.response.result, "capabilities", subject, "listChanged") is True
        for exchange in facts.initializes
    )


def _of_params(call: ForwardedCall) -> Iterator[Hit]:
    sent, made = call.outer.request, call.last.request
    if _is_unread(sent, made):
        return
    before, after = _member(sent, "params"), _member(made, "params")
    changes = list(_changes(before, after, "$"))
    if _token(before) is not _ABSENT and _token(after) is _ABSENT:
        changes.append(_Change(f"$.{_META}.{_TOKEN}", _token(before), _ABSENT))
    if changes:
        what = f"The params of {call_name(call.outer)} (row {call.outer.row}) changed on the way to row {call.last.row}"
        yield _hit(call.outer, sent, what, changes)


def _of_answer(call: ForwardedCall) -> Iterator[Hit]:
    here, behind = call.outer.response, call.last.response
    if here is None or behind is None or _is_unread(here, behind):
        return
    severity = None
    what = f"The answer to {call_name(call.outer)} (row {call.last.row}) changed on the way to row {call.outer.row}"
    if here.kind is behind.kind is Kind.RESULT:
        changes = list(_of_results(_member(behind, "result"), _member(here, "result")))
    elif here.kind is behind.kind is Kind.ERROR:
        changes = list(_of_errors(_member(behind, "error"), _member(here, "error")))
    elif {here.kind, behind.kind} == {Kind.RESULT, Kind.ERROR}:
        changes = [_Change("$", _member(behind, behind.kind), _member(here, here.kind))]
        severity = Severity.NOTE if here.is_error else None  # some tell the model of errors in results of tools
    else:
        return
    if changes:
        yield _hit(call.outer, here, what, changes, severity)


def _hit(row: Exchange, message: Message, what: str, changes: list[_Change], severity: Severity | None = None) -> Hit:
    more = f", and {len(changes) - MAX_PATHS:,} more places" if len(changes) > MAX_PATHS else ""
    sentence = f"{what}: {', '.join(map(str, changes[:MAX_PATHS]))}{more}."
    group = f"{row.method} {row.target} {message.kind} {' '.join(change.path for change in changes[:MAX_PATHS])}"
    return hit_in(CHANGED_BY_GATEWAY, message, row.row, sentence, culprit="gateway", severity=severity, group=group)


def _of_notifications(call: ForwardedCall) -> Iterator[Hit]:
    """Find notifications about a call that did not come through; progress only where the client asked for it."""
    outer, inner = call.outer, call.last
    if outer.response is None:
        return  # other findings are about a call that was not answered
    left_ns = outer.given_up_ns or float("inf")
    sent, came = (
        Counter(message.method or "" for message in row.notifications if message.sender == SERVER and message.at_ns < left_ns)
        for row in (inner, outer)
    )
    if outer.request.correlation_key is None:
        del sent[PROGRESS]
    for method in sent:
        if not came[method]:
            often = "once" if sent[method] == 1 else f"{sent[method]:,} times"
            what = (
                f"The server sent {method} about {call_name(outer)} (row {inner.row}) {often}, and it never reached the client."
            )
            yield hit_in(
                WITHHELD_BY_GATEWAY, outer.request, outer.row, what, culprit="gateway", group=f"{outer.method} {method}"
            )


def _of_results(before: Any, after: Any) -> Iterator[_Change]:
    """Yield the changes of a result. Lists of definitions are compared item by item, since a gateway may join several."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield from _changes(before, after, "$")
        return
    kept = {name: value for name, value in after.items() if name in before or name == "isError" or name in _LISTS}
    lists = [name for name in _LISTS if isinstance(before.get(name), list) and isinstance(after.get(name), list)]
    for name in lists:
        yield from _of_definitions(before[name], after[name], name)
    rest = [{name: item for name, item in value.items() if name not in lists} for value in (before, kept)]
    yield from _changes(rest[0], rest[1], "$")
    if (
        any(len(before[name]) == len(after[name]) for name in lists)
        and before.get("nextCursor")
        and not after.get("nextCursor")
    ):
        yield _Change("$.nextCursor", before["nextCursor"], _ABSENT)


def _of_definitions(before: list[Any], after: list[Any], kind: str) -> Iterator[_Change]:
    """Yield the changes of definitions that both lists have; a gateway may leave some out, and add those of other servers."""
    key = _LISTS[kind]
    by_name = {item[key]: item for item in after if isinstance(item, dict) and isinstance(item.get(key), str)}
    for at, item in enumerate(before):
        name = item.get(key) if isinstance(item, dict) else None
        if not isinstance(name, str):
            continue
        fits = [name] if name in by_name else [other for other in by_name if _is_prefixed(name, other)]
        if len(fits) == 1:
            yield from _changes(item, by_name[fits[0]], f"$.{kind}[{at}]")


def _of_errors(before: Any, after: Any) -> Iterator[_Change]:
    """Yield the changes of an error; a gateway may say in the message where it came from."""
    if isinstance(before, dict) and isinstance(after, dict):
        texts = before.get("message"), after.get("message")
        if isinstance(texts[0], str) and isinstance(texts[1], str) and texts[0] in texts[1]:
            before, after = ({**value, "message": ""} for value in (before, after))
        after = {name: value for name, value in after.items() if name in before}
    yield from _changes(before, after, "$")


def _changes(before: Any, after: Any, path: str, level: int = 0) -> Iterator[_Change]:
    """Yield the places where two values differ, but for what a gateway may change."""
    if isinstance(before, dict) and isinstance(after, dict) and level < MAX_LEVELS:
        yield from _of_members(before, after, path, level)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and level < MAX_LEVELS:
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old, new, f"{path}[{at}]", level + 1)
    elif not _is_same(before, after):
        yield _Change(path, before, after)


def _of_members(before: dict[str, Any], after: dict[str, Any], path: str, level: int) -> Iterator[_Change]:
    for name in (*before, *(name for name in after if name not in before)):
        old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if name in _OF_A_HOP or (name == _META and (level == 0 or old is _ABSENT)):
            continue
        if old is _ABSENT or new is _ABSENT:
            if not _is_default(name, new if old is _ABSENT else old):
                yield _Change(f"{path}{step(name)}", old, new)
        elif not (name in _NAMES and _is_prefixed(old, new)):
            yield from _changes(old, new, f"{path}{step(name)}", level + 1)


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name in _DEFAULTS and value == _DEFAULTS[name]) or (isinstance(value, list | dict) and not value)


def _is_prefixed(name: Any, other: Any) -> bool:
    """Tell whether one of two names is the other with a prefix: `demo_add` and `add`."""
    if not isinstance(name, str) or not isinstance(other, str):
        return False
    long, short = (name, other) if len(name) > len(other) else (other, name)
    prefix = long.removesuffix(short)
    return bool(short) and prefix != long and prefix[-1:] in _SEPARATORS


def _is_same(before: Any, after: Any) -> bool:
    """Tell whether two values mean the same: `1.0` and `1` do, `true` and `1` do not, and texts of JSON count by what they hold."""
    if isinstance(before, bool) is not isinstance(after, bool):
        return False
    try:
        if before == after:
            return True
    except RecursionError:
        return True
    if not isinstance(before, str) or not isinstance(after, str) or before[:1] not in ("{", "[") or after[:1] != before[:1]:
        return False
    try:
        return bool(json.loads(before) == json.loads(after))
    except UNREADABLE:
        return False


def _is_unread(sent: Message, came: Message) -> bool:
    return bool(sent.unkept_bytes or came.unkept_bytes) or max(len(sent.raw), len(came.raw)) > MAX_READ_BYTES


def _member(message: Message, name: str) -> Any:
    """Read a member of a message; an empty object where there is none."""
    try:
        return json.loads(bytes(members(message.raw).get(name, b"{}")), parse_constant=str)
    except UNREADABLE:
        return {}


def _token(params: Any) -> Any:
    meta = params.get(_META) if isinstance(params, dict) else None
    return meta.get(_TOKEN, _ABSENT) if isinstance(meta, dict) else _ABSENT


def _text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _shown(value: Any) -> str:
    return _clip(_text(value))


def _clip(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"


def _apart(before: str, after: str) -> tuple[str, str]:
    """Cut two texts so that their first difference shows."""
    same = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), min(len(before), len(after))
    )
    begin = max(same - _LETTERS // 2, 0) if max(len(before), len(after)) > _LETTERS else 0
    sign = "…" if begin else ""
    return sign + _clip(before[begin:]), sign + _clip(after[begin:])
