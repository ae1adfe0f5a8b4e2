"""Values that a client may have from its server: opaque words in texts, the variables that `--carry` names, and generated ids.

`--carry` names values that do not look generated:

$.structuredContent.id    a JSON path in a result; $.error.data.id in an error, $.params.uri in what a server sends on its own
handle                    $..handle: every member of that name
"h1"                      the recorded value itself, wherever the server sent it

Source of the generated ids: MCP specification: basic/utilities/pagination; basic/patterns/mrtr (2026-07-28); basic/utilities/tasks,
client/elicitation (2025-11-25); SEP-2663 for tasks from 2026-07-28 on.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ....errors import PathError
from ....json_path import Segment, Step, segments_of
from ....lazy_pattern import lazy_pattern
from ....records import PSEUDONYM_PATTERN
from ....transcript.llm.json_values import items, members
from ....transcript.mcp.codes import RELATED_TASK
from ....transcript.mcp.methods import LISTEN
from ....transcript.model import Kind, Message
from ...compare.ignore import Ignore
from ...json_values import Leaf, named_leaves

# Opaque words


MIN_LETTERS: Final = 8
"""The shortest opaque word: a UUID begins with eight digits, and shorter values repeat by chance."""

MIN_DIGITS: Final = 12
"""The fewest digits of an opaque number: fewer are a number, a date or the seconds since 1970."""

MIN_CHANGES: Final = 3
"""The fewest changes between letters and digits in a random word; `report2026` has one."""

_words = lazy_pattern(r"[0-9A-Za-z](?:[0-9A-Za-z_-]*[0-9A-Za-z])?=*")
_parts = lazy_pattern(r"[0-9A-Za-z]+")
_pseudonym = lazy_pattern(PSEUDONYM_PATTERN)
_uuid = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_hex = lazy_pattern(r"(?=.*[0-9])(?=.*[A-Fa-f])[0-9A-Fa-f]+")
_changes = lazy_pattern(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")


class TextSpan(NamedTuple):
    """A part of a text, from its first character to the one after its last."""

    start: int
    end: int
    text: str


def is_opaque(word: str) -> bool:
    """Return whether a word looks generated: ids, hashes, keys, pseudonyms; not names, dates, versions and short numbers."""
    if len(word) < MIN_LETTERS or not any(map(str.isdigit, word)):
        return False
    if word.isdigit():
        return len(word) >= MIN_DIGITS
    if _pseudonym.fullmatch(word) or _uuid.fullmatch(word):
        return True
    return any(_is_random(part[0]) for part in _parts.finditer(word))


def opaque_words(text: str) -> Iterator[TextSpan]:
    """Yield the opaque words of a text in order, each followed by its opaque parts: `8f3a9c01` of `run-8f3a9c01`."""
    for match in _words.finditer(text):
        word = match[0]
        if not is_opaque(word):
            continue
        yield TextSpan(match.start(), match.end(), word)
        for part in _parts.finditer(word):
            if part[0] != word and _is_random(part[0]):
                at = match.start() + part.start()
                yield TextSpan(at, at + len(part[0]), part[0])


def _is_random(part: str) -> bool:
    """Return whether letters and digits without punctuation look random."""
    if len(part) < MIN_LETTERS:
        return False
    if part.isdigit():
        return len(part) >= MIN_DIGITS
    return bool(_hex.fullmatch(part)) or len(_changes.findall(part)) >= MIN_CHANGES


# Named variables


_CONTENTS: Final = ("result", "error", "params")
_name = lazy_pattern(r"[^\W\d][\w-]*")


class NamedVariable(NamedTuple):
    """One variable that `--carry` names: its rule for a whole message, or the value itself."""

    rules: Ignore | None = None
    value: str = ""


class NamedVariables:
    """All named variables. Raises: PathError: for one that is no path, no name and no value."""

    __slots__ = ("_rules", "values")

    def __init__(self, names: Sequence[str] = ()) -> None:
        variables = [_named_variable(name) for name in names]
        self._rules = [variable.rules for variable in variables if variable.rules is not None]
        self.values = frozenset(variable.value for variable in variables if variable.rules is None)
        """The values that were named themselves."""

    def __bool__(self) -> bool:
        return bool(self._rules or self.values)

    def leaves(self, message: Any) -> Iterator[Leaf]:
        """Yield the texts and numbers of a server's message that are named by path, with the steps from its root."""
        if isinstance(message, dict):
            for rules in self._rules:
                yield from _leaves_of(message, rules)


def _leaves_of(message: dict[str, Any], rules: Ignore) -> Iterator[Leaf]:
    for name in _CONTENTS:
        if name in message and (inner_rules := rules.into(name)) is not None:
            for steps, leaf in named_leaves(message[name], inner_rules):
                yield (name, *steps), leaf


def _named_variable(name: str) -> NamedVariable:
    text = name.strip()
    if len(text) > 2 and text[0] == text[-1] == '"':
        return NamedVariable(value=text[1:-1])
    if _name.fullmatch(text):
        return NamedVariable(Ignore.of((f"$..{text}",)))
    if "." in text or "[" in text or text == "$":
        return NamedVariable(Ignore(_rules(text)))
    raise PathError(
        name, 1, "this names no value to carry", 'Write a path as $.structuredContent.id, a member\'s name, or "a value".'
    )


def _rules(path: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rules of a path that begins at the root of a message, or at the result."""
    rule = segments_of(path)
    if rule[0].selector in _CONTENTS or rule[0].anywhere:
        yield rule
    if not rule[0].anywhere:
        yield (Segment("result"), *rule)


# Generated ids


CURSOR: Final = "cursor"
TASK_ID: Final = "task id"
STATE: Final = "state"
ELICITATION_ID: Final = "elicitation id"
INPUT: Final = "input request"


class GeneratedValue(NamedTuple):
    """A value that a server generates by the specification: its kind, its method (empty: any), and the value."""

    what: str
    method: str
    value: str


GeneratedPlace: TypeAlias = "tuple[GeneratedValue, tuple[Step, ...], bool]"
"""A generated value, the steps to it from the root of the message, and whether it is the name of a member there."""


def issued_values(message: Message, method: str, body: dict[str, Any]) -> Iterator[GeneratedPlace]:
    """Yield the generated values in a server's message. `method` is that of the request that it answers, or its own."""
    match message.kind:
        case Kind.RESULT:
            yield from _in_result(body.get("result"), method)
        case Kind.ERROR:
            data = members(members(body.get("error")).get("data"))
            for at, elicitation in enumerate(items(data.get("elicitations"))):
                yield from _member(ELICITATION_ID, elicitation, "elicitationId", ("error", "data", "elicitations", at))
        case _:
            params = body.get("params")
            yield from _member(TASK_ID, params, "taskId", ("params",))
            yield from _member(ELICITATION_ID, params, "elicitationId", ("params",))
            yield from _related_task(params)


def returned_values(message: Message, body: dict[str, Any]) -> Iterator[GeneratedPlace]:
    """Yield the values in a client's message that its server may have generated."""
    params = body.get("params")
    method = message.method or ""
    yield from _member(CURSOR, params, "cursor", ("params",), method)
    yield from _member(TASK_ID, params, "taskId", ("params",))
    yield from _member(STATE, params, "requestState", ("params",))
    yield from _member(ELICITATION_ID, params, "elicitationId", ("params",))
    yield from _related_task(params)
    yield from _related_task(body.get("result"), "result")
    for name in members(members(params).get("inputResponses")):
        yield GeneratedValue(INPUT, "", name), ("params", "inputResponses", name), True
    if method == LISTEN:
        yield from _task_ids(params, ("params",))


def _in_result(result: Any, method: str) -> Iterator[GeneratedPlace]:
    yield from _member(CURSOR, result, "nextCursor", ("result",), method)
    yield from _member(STATE, result, "requestState", ("result",))
    yield from _member(TASK_ID, result, "taskId", ("result",))
    yield from _member(TASK_ID, members(result).get("task"), "taskId", ("result", "task"))
    for at, task in enumerate(items(members(result).get("tasks"))):
        yield from _member(TASK_ID, task, "taskId", ("result", "tasks", at))
    yield from _related_task(result, "result")
    for name in members(members(result).get("inputRequests")):
        yield GeneratedValue(INPUT, "", name), ("result", "inputRequests", name), True


def _member(what: str, parent: Any, name: str, steps: tuple[Step, ...], method: str = "") -> Iterator[GeneratedPlace]:
    """Yield the text of a member, unless it is empty."""
    value = members(parent).get(name)
    if isinstance(value, str) and value:
        yield GeneratedValue(what, method, value), (*steps, name), False


def _related_task(parent: Any, under: str = "params") -> Iterator[GeneratedPlace]:
    related = members(members(parent).get("_meta")).get(RELATED_TASK)
    yield from _member(TASK_ID, related, "taskId", (under, "_meta", RELATED_TASK))


def _task_ids(params: Any, steps: tuple[Step, ...]) -> Iterator[GeneratedPlace]:
    """Yield the tasks that a subscription listens to, in whichever member they are listed."""
    for name, value in members(params).items():
        if name == "taskIds":
            for at, id in enumerate(items(value)):
                if isinstance(id, str) and id:
                    yield GeneratedValue(TASK_ID, "", id), (*steps, name, at), False
        elif isinstance(value, dict) and len(steps) == 1:
            yield from _task_ids(value, (*steps, name))
