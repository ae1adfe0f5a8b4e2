"""What in a text looks as if a program had made it up: ids, hashes, keys, pseudonyms. Names, dates, versions and numbers do not.

Only such a value is taken for the same where it turns up again: "1" and "true" turn up everywhere. Refuses to be sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ....errors import PathError
from ....transcript.mcp.codes import RELATED_TASK
from ....transcript.mcp.methods import LISTEN
from ....transcript.model import Kind
from ...compare.ignore import Ignore, rule_of
from ...json.walk import Leaf, named_leaves

if TYPE_CHECKING:
    from ....transcript.model import Message
    from ...compare.ignore import Step


MIN_LETTERS: Final = 8
"""Shorter than the eight digits that a UUID begins with, values repeat by chance."""

MIN_DIGITS: Final = 12
"""Fewer digits are a number, a date or the seconds since 1970."""

MIN_CHANGES: Final = 3
"""So often letters and digits follow on each other in what is made of both at random; in `report2026` once."""

_words = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_-]*[0-9A-Za-z])?=*").finditer
_parts = re.compile(r"[0-9A-Za-z]+").finditer
_pseudonym = re.compile(r"redacted-[0-9a-f]{12}").fullmatch
_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_hex = re.compile(r"(?=.*[0-9])(?=.*[A-Fa-f])[0-9A-Fa-f]+").fullmatch
_changes = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])").findall


class TextSpan(NamedTuple):
    """A stretch of a text, from its first character to the one behind its last."""

    start: int
    end: int
    text: str


def is_opaque(word: str) -> bool:
    """Whether one word, as `words` cuts them, looks made up."""
    if len(word) < MIN_LETTERS or not any(map(str.isdigit, word)):
        return False
    if word.isdigit():
        return len(word) >= MIN_DIGITS
    if _pseudonym(word) or _uuid(word):
        return True
    return any(_is_random(part[0]) for part in _parts(word))


def opaque_words(text: str) -> Iterator[TextSpan]:
    """The made-up words of a text in order, each followed by the parts of it that are made up too: `8f3a9c01` of `run-8f3a9c01`."""
    for found in _words(text):
        word = found[0]
        if not is_opaque(word):
            continue
        yield TextSpan(found.start(), found.end(), word)
        for part in _parts(word):
            if part[0] != word and _is_random(part[0]):
                at = found.start() + part.start()
                yield TextSpan(at, at + len(part[0]), part[0])


def _is_random(part: str) -> bool:
    """Whether letters and digits without a sign between them were thrown together."""
    if len(part) < MIN_LETTERS:
        return False
    if part.isdigit():
        return len(part) >= MIN_DIGITS
    return bool(_hex(part)) or len(_changes(part)) >= MIN_CHANGES


_CONTENTS: Final = ("result", "error", "params")
_name = re.compile(r"[^\W\d][\w-]*").fullmatch


class NamedVariable(NamedTuple):
    """One of them: as it was written, and its rule for the whole message, or the value itself."""

    written: str
    rules: Ignore | None = None
    value: str = ""


class NamedVariables:
    """All that were named. Raises: PathError: for one that is no path, no name and no value."""

    __slots__ = ("_paths", "values")

    def __init__(self, written: Sequence[str] = ()) -> None:
        found = [_handle(one) for one in written]
        self._paths = [one for one in found if one.rules is not None]
        self.values = frozenset(one.value for one in found if one.rules is None)
        """The values that were named as they are."""

    def __bool__(self) -> bool:
        return bool(self._paths or self.values)

    def leaves(self, message: Any) -> Iterator[Leaf]:
        """The texts and numbers of a server's message that paths name, with the steps from its root."""
        for handle in self._paths:
            if handle.rules is not None:
                yield from _within(message, handle.rules)


def _within(message: Any, rules: Ignore) -> Iterator[Leaf]:
    if not isinstance(message, dict):
        return
    for name in _CONTENTS:
        if name in message and (left := rules.into(name)) is not None:
            yield from _under(name, message[name], left)


def _under(name: Step, content: Any, rules: Ignore) -> Iterator[Leaf]:
    for steps, leaf in named_leaves(content, rules):
        yield (name, *steps), leaf


def _handle(written: str) -> NamedVariable:
    text = written.strip()
    if text.startswith("$"):
        return NamedVariable(written, Ignore(_rules(text)))
    if len(text) > 2 and text[0] == text[-1] == '"':
        return NamedVariable(written, value=text[1:-1])
    if _name(text):
        return NamedVariable(written, Ignore.of((f"$..{text}",)))
    raise PathError(
        written, 1, "this names no value to carry", 'Write a place as $.structuredContent.id, a member\'s name, or "a value".'
    )


def _rules(path: str) -> Iterator[tuple[Any, ...]]:
    """The rule of a path from the root of a message: it may begin there, or at the result."""
    rule = rule_of(path)
    if rule[0].selector in _CONTENTS or rule[0].anywhere:
        yield rule
    if not rule[0].anywhere:
        yield (rule_of("$.result")[0], *rule)


CURSOR: Final = "cursor"
TASK_ID: Final = "task id"
STATE: Final = "state"
ELICITATION_ID: Final = "elicitation id"
INPUT: Final = "input request"


class GeneratedValue(NamedTuple):
    """A value that is carried: what it is, within which method (empty: any), and as the server gave it out."""

    what: str
    method: str
    value: str


GeneratedPlace: TypeAlias = "tuple[GeneratedValue, tuple[Step, ...], bool]"
"""What it is, the steps that lead there from the root of the message, and whether it is a member's name there."""


def issued_values(message: Message, method: str, body: dict[str, Any]) -> Iterator[GeneratedPlace]:
    """What a message of the server's gives out. `method` is that of the request that it answers, or its own."""
    match message.kind:
        case Kind.RESULT:
            yield from _in_result(body.get("result"), method)
        case Kind.ERROR:
            for at, one in enumerate(_list(_object(_object(body.get("error")).get("data")).get("elicitations"))):
                yield from _value(ELICITATION_ID, one, "elicitationId", ("error", "data", "elicitations", at))
        case _:
            params = body.get("params")
            yield from _value(TASK_ID, params, "taskId", ("params",))
            yield from _value(ELICITATION_ID, params, "elicitationId", ("params",))
            yield from _related(params)


def returned_values(message: Message, body: dict[str, Any]) -> Iterator[GeneratedPlace]:
    """What a message of the client's may hand back."""
    params = body.get("params")
    method = message.method or ""
    yield from _value(CURSOR, params, "cursor", ("params",), method)
    yield from _value(TASK_ID, params, "taskId", ("params",))
    yield from _value(STATE, params, "requestState", ("params",))
    yield from _value(ELICITATION_ID, params, "elicitationId", ("params",))
    yield from _related(params)
    yield from _related(body.get("result"), "result")
    for name in _object(_object(params).get("inputResponses")):
        yield GeneratedValue(INPUT, "", name), ("params", "inputResponses", name), True
    if method == LISTEN:
        yield from _task_ids(params, ("params",))


def _in_result(result: Any, method: str) -> Iterator[GeneratedPlace]:
    yield from _value(CURSOR, result, "nextCursor", ("result",), method)
    yield from _value(STATE, result, "requestState", ("result",))
    yield from _value(TASK_ID, result, "taskId", ("result",))
    task = _object(result).get("task")
    yield from _value(TASK_ID, task, "taskId", ("result", "task"))
    for at, one in enumerate(_list(_object(result).get("tasks"))):
        yield from _value(TASK_ID, one, "taskId", ("result", "tasks", at))
    yield from _related(result, "result")
    for name in _object(_object(result).get("inputRequests")):
        yield GeneratedValue(INPUT, "", name), ("result", "inputRequests", name), True


def _value(what: str, around: Any, name: str, steps: tuple[Step, ...], method: str = "") -> Iterator[GeneratedPlace]:
    """A text under one name. An empty one says nothing."""
    value = _object(around).get(name)
    if isinstance(value, str) and value:
        yield GeneratedValue(what, method, value), (*steps, name), False


def _related(around: Any, under: str = "params") -> Iterator[GeneratedPlace]:
    related = _object(_object(around).get("_meta")).get(RELATED_TASK)
    yield from _value(TASK_ID, related, "taskId", (under, "_meta", RELATED_TASK))


def _task_ids(params: Any, steps: tuple[Step, ...]) -> Iterator[GeneratedPlace]:
    """The tasks of whose news a subscription wants to hear, in whichever member they are listed."""
    for name, value in _object(params).items():
        if name == "taskIds":
            for at, one in enumerate(_list(value)):
                if isinstance(one, str) and one:
                    yield GeneratedValue(TASK_ID, "", one), (*steps, name, at), False
        elif isinstance(value, dict) and len(steps) == 1:
            yield from _task_ids(value, (*steps, name))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
