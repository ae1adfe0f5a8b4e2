"""Findings about messages that do not validate against the official types of MCP. They are optional.

Without the package `mcp-types` (`pip install mcp-types`), only the main members of results are looked at. It has the wire types
of 2025-11-25, which are used for all revisions until then, and of 2026-07-28. Only the first messages of each kind are validated,
MAX_EACH, and as many later results that lack a main member.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeAlias

from ....records import CLIENT
from ....wire.json_spans import members
from ...correlator import PONG
from ...mcp.plain import is_plain
from ...mcp.revisions import OLDEST, era, nearest
from ...message import NOTIFICATION, REQUEST, RESULT
from ...model import Exchange, Kind, Message, Row, UnpairedMessage
from ..facts import TranscriptFacts
from ..rule import Hit, Severity, Unchecked, hit_in, protocol_rule
from ..words import quoted

_LIST: Final = "· handshake 2025-11-25, server: tools\n→ tools/list 1\n"

NOT_AS_SPECIFIED: Final = protocol_rule(
    name="not-as-specified",
    title="Message does not fit the specification",
    severity=Severity.ERROR,
    what="The params or the result of a message do not have the type that the specification gives them.",
    why="SDKs validate messages: an invalid result becomes an error for the requesting side, an invalid request is rejected.",
    blame="The sender: the types are those of the specification, published as mcp-types.",
    example=f'{_LIST}← result 1 {{"tools":{{"now":{{"inputSchema":{{"type":"object"}}}}}}}}',
    clean=f'{_LIST}← result 1 {{"tools":[{{"name":"now","inputSchema":{{"type":"object"}}}}]}}',
    advice="Correct the member that the finding names, as the schema of the revision defines it.",
)

RULES: Final = (NOT_AS_SPECIFIED,)


Checks: TypeAlias = dict[str, Callable[[str, str, Any], str]]
"""By sender and kind: functions that take a method, a revision and content, and say in a few words what is wrong."""

MAX_EACH: Final = 50
"""Number of messages of one method, sender and kind: a side that gets a type wrong does so from the beginning."""

MAX_BYTES: Final = 1 << 20
_LIMIT: Final = Unchecked(
    rules=(NOT_AS_SPECIFIED.name,), reason=f"only the first {MAX_EACH} messages of each method, of up to 1 MiB, are validated"
)
_MISSING: Final = Unchecked(
    rules=(NOT_AS_SPECIFIED.name,),
    reason="only the main members of results are looked at without the package mcp-types; pip install mcp-types",
)
_FIRST_KNOWN: Final = "2024-11-05"
METHODS_OF_NO_TYPE: Final = frozenset({"", PONG})
"""The method of an answer to an unknown request, which is empty, and `pong`, which some servers send and MCP does not have."""

_MEMBER: Final = {Kind.REQUEST: "params", Kind.NOTIFICATION: "params", Kind.RESULT: "result"}


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Validate the first messages of each kind."""
    types = _Types(facts.transcript.rows)
    facts.limits.update(dict.fromkeys(types.limits))
    yield from types.hits


# positions in a list of `_Types._seen`: a kind, to which the two others are added
_RESULT, _REQUEST, _NOTIFICATION, _OF_CLIENT, _LACKING = 1, 2, 3, 4, 8


class _Types:
    """Findings about the first messages of each kind."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.hits: list[Hit] = []
        self.limits: dict[Unchecked, None] = {}
        self._has_left_some = False
        self._checks: Checks | None = None
        self._seen: dict[tuple[int, str], list[int]] = {}
        """By capture and method, counts: of messages by kind and sender, and of results after `MAX_EACH` that lack members."""
        look = self._look
        for row in rows:
            if isinstance(row, Exchange):
                request, response = row.request, row.response
                method = request.method or ""
                seen = self._seen_of(request.capture, method)
                look(row.row, method, request, seen)
                if response is not None:
                    look(row.row, method, response, seen)
                for message in row.notifications:
                    look(row.row, method, message, seen)
            elif isinstance(row, UnpairedMessage):
                method = row.message.method or ""
                look(row.row, method, row.message, self._seen_of(row.message.capture, method))

    def _seen_of(self, capture: int, method: str) -> list[int]:
        return self._seen.get((capture, method)) or self._seen.setdefault((capture, method), [0] * (2 * _LACKING))

    def _leave_some(self) -> None:
        """Note that some messages were not looked at. To ask the dictionary each time would take longer."""
        if not self._has_left_some:
            self._has_left_some = True
            self.limits[_LIMIT] = None

    def _look(self, row: int, method: str, message: Message, seen: list[int]) -> None:
        kind = message.kind
        # a number, because each look-up of a member of an enumeration is a call of its hash
        number = _RESULT if kind is RESULT else _REQUEST if kind is REQUEST else _NOTIFICATION if kind is NOTIFICATION else 0
        if message.revision is None or not number:
            return
        if message.sender == CLIENT:
            number += _OF_CLIENT
        count = seen[number] = seen[number] + 1
        if kind is RESULT:
            if count > MAX_EACH and _lacks_members(method, message.raw):
                count = seen[number + _LACKING] = seen[number + _LACKING] + 1
            if message.result_type is not None:
                return
        if count > MAX_EACH or len(message.raw) > MAX_BYTES:
            self._leave_some()
            return
        if _is_plain(message, message.method or method):
            return
        if self._checks is None:
            self._checks = _checks()  # importing them takes 0.4 s
            if f"{CLIENT} request" not in self._checks:
                self.limits[_MISSING] = None
        self.hits += _validate(self._checks, message.method or method, row, message)


def _is_plain(message: Message, method: str) -> bool:
    """Return whether a message is seen to be as specified without the official types."""
    if method in METHODS_OF_NO_TYPE:
        return True
    member = _MEMBER[message.kind]
    return is_plain(
        era(message.revision or OLDEST), message.sender, method, member, bytes(members(message.raw).get(member, b"null"))
    )


def _validate(checks: Checks, method: str, row: int, message: Message) -> Iterator[Hit]:
    revision = nearest(message.revision or OLDEST)
    body = message.body
    if not isinstance(body, dict):
        return
    content = body.get(_MEMBER[message.kind])
    check = checks.get(f"{message.sender} {message.kind}")
    wrong = "" if check is None else check(method, max(revision, _FIRST_KNOWN), content)
    if not wrong and message.kind is Kind.RESULT:
        wrong = _quoted_boolean(method, content)
    if wrong:
        member = _MEMBER[message.kind]
        what = f"The {member} of {method} {'do' if member == 'params' else 'does'} not fit the specification: {wrong}."
        severity = None if message.kind is Kind.RESULT else Severity.WARNING
        yield hit_in(NOT_AS_SPECIFIED, message, row, what, group=method, severity=severity)


def _mistake(check: Callable[..., Any], method: str, revision: str, content: Any) -> str:
    """Describe the first mistake in `content` in a few words; empty if there is none, or if the types do not tell."""
    try:
        check(method, revision, content)
    except KeyError:  # the revision has no such method, which another rule reports
        return ""
    except Exception as error:  # noqa: BLE001 - pydantic's, known by its shape; the meaning of any other is unknown
        errors = getattr(error, "errors", None)
        if errors is None:
            return ""
        found = errors(include_url=False, include_context=False, include_input=False)
        mistakes = [_Mistake.read(mistake, content) for mistake in found if not _is_of_schema(mistake["loc"])]
        return _described(_likeliest(mistakes)) if mistakes else ""
    return ""


class _Mistake(NamedTuple):
    """A mistake: its path in the content, and at what depths of it which alternatives of the specification were tried.

    A block {"type": "image"} without mimeType is a mistake as each kind of content: `content.0`, at depth 2 tried as TextContent,
    as ImageContent and so on. All but one have another `type`.
    """

    path: tuple[str | int, ...]
    tried: tuple[tuple[int, str], ...]
    words: str
    is_missing: bool
    is_choice: bool
    """True if the member says which alternative it is: it has one value in each."""

    @classmethod
    def read(cls, mistake: Any, content: Any) -> Self:
        """Read one of pydantic's mistakes, whose place has names of alternatives between the parts of the path."""
        path: list[str | int] = []
        tried: list[tuple[int, str]] = []
        value, place, kind = content, mistake["loc"], mistake["type"]
        for at, part in enumerate(place, 1):
            if (isinstance(value, dict) and part in value) or (isinstance(value, list) and part in range(len(value))):
                path.append(part)
                value = value[part]
            elif at == len(place) and kind == "missing":
                path.append(part)
            else:
                tried.append((len(path), str(part)))
        words = _WORDS.get(kind, mistake["msg"][:80])
        is_choice = kind == "literal_error" or (kind == "missing" and path[-1:] == ["type"])
        if kind == "literal_error" and isinstance(value, str) and tried:
            words = f"unknown {path[-1]} {quoted(value)}"
        return cls(tuple(path), tuple(tried), words, kind == "missing", is_choice)


_WORDS: Final = {"model_type": "Input should be an object"}
"""Words in the place of pydantic's, which name a class."""


def _likeliest(mistakes: list[_Mistake], level: int = 0) -> list[_Mistake]:
    """Return the first mistake; where several alternatives of the specification remain, the first one in each of them."""
    first = mistakes[0]
    if len(first.tried) <= level:
        return [first]
    at = first.tried[level][0]
    by_name: dict[str, list[_Mistake]] = {}
    for mistake in mistakes:
        if len(mistake.tried) > level and mistake.tried[level][0] == at and mistake.path[:at] == first.path[:at]:
            by_name.setdefault(mistake.tried[level][1], []).append(mistake)
    chosen = {
        name: [mistake for mistake in group if mistake.is_choice and len(mistake.path) == at + 1]
        for name, group in by_name.items()
    }
    fitting = [group for name, group in by_name.items() if not chosen[name]]
    if not fitting:
        return chosen[first.tried[level][1]][:1]
    if len(fitting) == 1:
        return _likeliest(fitting[0], level + 1)
    fewest = min(map(len, fitting))  # a resource with a text and no uri lacks two members as a blob
    return [_likeliest(group, level + 1)[0] for group in fitting if len(group) == fewest]


def _described(mistakes: list[_Mistake]) -> str:
    """Describe a mistake with its path; members of which one is required are named together: `resource.text or blob`."""
    first = mistakes[0]
    path = [str(part) for part in first.path]
    names = {str(mistake.path[-1]): None for mistake in mistakes if mistake.is_missing and mistake.path[:-1] == first.path[:-1]}
    if first.is_missing and 1 < len(names) == len(mistakes):
        path[-1] = " or ".join(names)
    return ": ".join(part for part in (".".join(path)[:80], first.words) if part)


def _quoted_boolean(method: str, result: Any) -> str:
    """Name a boolean that is not spelled as one, which mcp-types takes for it: in JavaScript even the text "false" is true."""
    name = _BOOLEANS.get(method, "")
    if not name or not isinstance(result, dict):
        return ""
    holder = result.get("completion", {}) if method == "completion/complete" else result
    value = holder.get(name, False) if isinstance(holder, dict) else False
    return "" if isinstance(value, bool) else f"{name}: Input should be true or false, and is {quoted(json.dumps(value))}"


def _is_of_schema(place: tuple[str | int, ...]) -> bool:
    """Return whether a mistake is that of a tool whose inputSchema is missing or of no type; `schemas` says so."""
    return place[:1] == ("tools",) and place[2:] in (("inputSchema",), ("inputSchema", "type"))


_MAIN_MEMBERS: Final[dict[str, dict[str, type]]] = {
    "initialize": {"protocolVersion": str, "capabilities": dict, "serverInfo": dict},
    "tools/list": {"tools": list},
    "tools/call": {"content": list},
    "prompts/list": {"prompts": list},
    "prompts/get": {"messages": list},
    "resources/list": {"resources": list},
    "resources/templates/list": {"resourceTemplates": list},
    "resources/read": {"contents": list},
    "completion/complete": {"completion": dict},
    "sampling/createMessage": {"role": str, "model": str},
    "elicitation/create": {"action": str},
    "roots/list": {"roots": list},
}
"""Members that a result has in all revisions, by the method of its request."""


_BOOLEANS: Final = {"tools/call": "isError", "completion/complete": "hasMore"}
"""Members that clients decide by."""

_MAIN_NAMES: Final = {method: [f'"{name}"'.encode() for name in names] for method, names in _MAIN_MEMBERS.items()}


def _lacks_members(method: str, raw: bytes) -> bool:
    """Tell whether the bytes of a result show without parsing that it lacks a main member."""
    for name in _MAIN_NAMES.get(method, ()):  # noqa: SIM110 - `any` takes three times as long, and there are a million results
        if name not in raw:
            return True
    return False


def _missing_member(method: str, _revision: str, result: Any) -> str:
    """Name a main member that a result lacks or has in another type, in the words of mcp-types; empty if all are there."""
    for name, kind in _MAIN_MEMBERS.get(method, {}).items():
        if not isinstance(result, dict) or name not in result:
            return f"{name}: Field required"
        if not isinstance(result[name], kind):
            return f"{name}: Input should be a valid {_KINDS[kind]}"
    return ""


_KINDS: Final[dict[type, str]] = {str: "string", dict: "dictionary", list: "list"}


def _checks() -> Checks:
    """Import the validating functions, by sender and kind; without the package those of the main members of results."""
    try:
        from mcp_types import methods
    except ImportError:
        return {f"{CLIENT} result": _missing_member, "server result": _missing_member}

    return {
        f"{CLIENT} request": partial(_mistake, methods.validate_client_request),
        f"{CLIENT} notification": partial(_mistake, methods.validate_client_notification),
        f"{CLIENT} result": partial(_mistake, methods.validate_client_result),
        "server request": partial(_mistake, methods.parse_server_request),
        "server notification": partial(_mistake, methods.parse_server_notification),
        "server result": partial(_mistake, methods.validate_server_result),
    }
