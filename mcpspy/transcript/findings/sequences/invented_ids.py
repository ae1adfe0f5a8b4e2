"""Findings about ids that an agent made up: no message before names them, and the server says that there is no such thing."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....wire.json_spans import UNREADABLE
from ...model import Exchange
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..protocol.repeats import arguments
from ..rule import AGENT, Hit, Severity, behaviour_rule, hit_in
from ..words import listed, quoted

_LIST: Final = (
    '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"orders"}\n'
    '← result 1 {"content":[{"type":"text","text":"ORD-1041, ORD-1042"}]}\n'
)
_CALL: Final = (
    '→ tools/call %d {"name":"order","arguments":{"order_id":"ORD-%d"}}\n'
    '← result %d {"content":[{"type":"text","text":"%s"}]%s}\n'
)
_NOT_FOUND: Final = ',"isError":true'


INVENTED_ID: Final = behaviour_rule(
    name="invented-id",
    title="Ids that nobody gave out",
    what="A tool was called with two ids or more that no message before had, and the server knew none of them.",
    why="A model that guesses ids gets errors, or at worst somebody else's things.",
    blame="The agent: the model behind the client made the ids up, though earlier results had listed others.",
    example=_LIST + _CALL % (2, 7001, 2, "Order not found", _NOT_FOUND) + _CALL % (3, 7002, 3, "Order not found", _NOT_FOUND),
    clean=_LIST + _CALL % (2, 1041, 2, "Open", "") + _CALL % (3, 1042, 3, "Open", ""),
    advice="Say in the tool's description where its ids come from, and name the call that lists them in the error.",
)

RULES: Final = (INVENTED_ID,)

MAX_CALLS: Final = 10_000
"""So many calls of a capture are looked at."""
MAX_BYTES: Final = 16 << 20
"""So many bytes before a call are searched."""

MAX_KINDS: Final = 5
MAX_GUESSES: Final = 8
"""So many ids of a kind, and so many kinds, are sought in all messages before them."""

_FEWEST: Final = 2
_MAX_ARGUMENTS: Final = 16 << 10
_MAX_ERROR: Final = 4_000
_SHORTEST: Final = 3
_MOST_NAMED: Final = 4

_is_unknown = lazy_pattern(
    rb"not[ _-]?found|no such|unknown|does not exist|doesn't exist|invalid [\w ]{0,20}id|could not find|cannot find|\b404\b",
    re.IGNORECASE,
)
_is_id_name = lazy_pattern(
    r"(?:^|[_.-])(?:id|uuid|guid|key|sha|ref|number)s?$|[a-z](?:Id|Uuid|Key|Ref|Number|ID)s?$", re.IGNORECASE
)
_ids_in = lazy_pattern(
    r"(?<![\w.-])(?:[A-Z]{2,10}-\d{2,}|[a-z]{2,10}_[A-Za-z]*\d\w{3,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])"
)
"""Ids that show it by their form, in a text: ORD-1042, cus_9fKe21, a UUID."""
_is_search = lazy_pattern(r"^q$|query|search|filter|pattern|term|keyword", re.IGNORECASE)
"""A search is how one asks whether there is something."""
_MAX_TEXT: Final = 2_000
_shape = lazy_pattern(r"[0-9]+|[A-Za-z]+")


class _Guess(NamedTuple):
    """A call with an id that no message before had."""

    call: Exchange
    name: str
    value: str


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find failed calls of one tool with ids that nobody gave out."""
    if facts.first_hole_ns is not None:
        return
    guesses: dict[tuple[ScopeKey, str | None, str], list[_Guess]] = {}
    for call in facts.first(facts.calls, MAX_CALLS, RULES):
        response = call.response
        if response is None or not (response.is_error or response.kind == "error") or call.sender != CLIENT:
            continue
        if response.size > _MAX_ERROR or not _is_unknown.search(response.raw):
            continue
        for name, value in _ids(call):
            guesses.setdefault((scope_key(call.transaction), call.target, name), []).append(_Guess(call, name, value))
    several = (made[:MAX_GUESSES] for made in guesses.values() if len({guess.value for guess in made}) >= _FEWEST)
    for made in islice(several, MAX_KINDS):
        yield from _invented(facts, made)


def _ids(call: Exchange) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a call that are ids, by their names."""
    raw = arguments(call.request.raw)
    if len(raw) > _MAX_ARGUMENTS:
        return
    try:
        values: Any = json.loads(raw or b"{}")
    except UNREADABLE:
        return
    for name, value in values.items() if isinstance(values, dict) else ():
        if not isinstance(value, str | int) or isinstance(value, bool) or len(str(value)) < _SHORTEST:
            continue
        if _is_id_name.search(name):
            yield name, str(value)
        elif isinstance(value, str) and not _is_search.search(name):
            yield from ((name, word) for word in _ids_in.findall(value[:_MAX_TEXT])[:MAX_GUESSES])


def _invented(facts: CaptureFacts, made: list[_Guess]) -> Iterator[Hit]:
    """Make a finding of guesses where results before them had ids of the same shape, and no message had these."""
    earlier = _earlier(facts, made[0].call)
    if earlier is None:
        return
    guesses = [guess for guess in made if not _was_named(facts, guess)]
    values = list(dict.fromkeys(guess.value for guess in guesses))
    if len(values) < _FEWEST or not any(_like(made[0].name, value).search(result) for value in values for result in earlier):
        return
    first = guesses[0]
    named = listed((quoted(value, 40) for value in values), _MOST_NAMED)
    is_text = not _is_id_name.search(first.name)
    words = f"{named} in its {first.name[:40]}" if is_text else f"the {first.name[:40]} {named}"
    what = (
        f"tools/call {first.call.target} was called with {words}, which no message before had, and the server "
        "knew none of them; earlier results had other ids of that kind."
    )
    for guess in guesses:
        yield hit_in(
            INVENTED_ID,
            guess.call.request,
            guess.call.row,
            what,
            culprit=AGENT,
            severity=Severity.NOTE if is_text else None,
            group=f"{first.call.target} {first.name}",
        )


def _earlier(facts: CaptureFacts, call: Exchange) -> list[str] | None:
    """Return the results of tools in the same session before a call; None if they are too long to search."""
    scope = scope_key(call.transaction)
    results = [
        other.response.raw
        for other in facts.calls[:MAX_CALLS]
        if other.response is not None and other.response.at_ns <= call.at_ns and scope_key(other.transaction) == scope
        if not other.response.is_error and other.response.kind != "error"
    ]
    return None if sum(map(len, results)) > MAX_BYTES else [raw.decode("utf-8", "replace") for raw in results]


def _was_named(facts: CaptureFacts, guess: _Guess) -> bool:
    """Tell whether a message before a call had its id; those of its own kind that failed do not count."""
    value = json.dumps(guess.value)[1:-1].encode()
    at_ns = guess.call.at_ns
    for exchange in facts.exchanges:
        if exchange.at_ns >= at_ns:
            return False
        response = exchange.response
        is_earlier = response is not None and response.at_ns <= at_ns
        if (
            response is not None
            and is_earlier
            and value in response.raw
            and not (response.is_error or response.kind == "error")
        ):
            return True
        failed = (
            response is not None and (response.is_error or response.kind == "error") and exchange.target == guess.call.target
        )
        if value in exchange.request.raw and not failed:
            return True
    return False


def _like(name: str, value: str) -> re.Pattern[str]:
    """Make a pattern for ids of the same kind: a prefix as it is, digits for digits, letters for letters.

    A number or a word alone is everywhere, so it has to follow its name.
    """
    if value.isdigit() or value.isalpha():
        return re.compile(
            rf"(?:\b{re.escape(name)}|\bid)[\\\"']*\s*[:=#]\s*[\\\"']*{'[0-9]+' if value.isdigit() else '[A-Za-z]+'}",
            re.IGNORECASE,
        )
    parts, at = [], 0
    for match in _shape.finditer(value[:64]):
        parts.append(re.escape(value[at : match.start()]))
        is_prefix = match.start() == 0 and match[0].isalpha() and match.end() < len(value)
        parts.append(re.escape(match[0]) if is_prefix else r"[0-9]+" if match[0].isdigit() else r"[A-Za-z]+")
        at = match.end()
    return re.compile(rf"(?<![\w-]){''.join(parts)}{re.escape(value[at:64])}(?![\w-])")
