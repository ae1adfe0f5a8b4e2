"""What a test holds of an answer: statements of Python about the SDK's result, one for each thing that was answered.

What a server makes up anew at each run, as far as its look tells, is held in comments only. Refuses to know the test around it.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ..text.python_literal import has_literal, literal, quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sdk import Dialect

MAX_TEXT_LETTERS: Final = 300
"""Of longer texts a test holds the beginning and the length."""

KEPT_LETTERS: Final = 80

MAX_VALUE_LETTERS: Final = 1_500
"""Of larger structured content it holds the names of its members."""

MAX_NAMES: Final = 60

MAX_LINE_LETTERS: Final = 60
"""Of texts that stand together on one line."""

MAX_TEXT_CELLS: Final = 70
"""Texts of several lines that are longer stand line by line."""

NEW_EACH_TIME: Final = "# New each time:"

NEAR: Final = timedelta(days=2)
"""What is dated so near to the recording is taken for dated by it."""

_moments = re.compile(r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d|\b(1[6-9]\d{8})(?:\d{3}|\.\d+)?\b").finditer
"""Dates with a time, and Unix time in s or ms, from 2020 to 2033."""

_made_up = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|redacted-[0-9a-f]{12}", re.IGNORECASE
).search
"""UUIDs and our pseudonyms."""

_LISTS: Final = {
    "tools/list": ("tools", "name", "one.{}", "name"),
    "prompts/list": ("prompts", "name", "one.{}", "name"),
    "resources/list": ("resources", "uri", "str(one.{})", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "one.{}", "uri_template"),
}
"""Of methods that list: the member of the result, what names each item on the wire, and how, under which name, in the SDK."""

_ATTRIBUTES: Final = {"resourceTemplates": "resource_templates"}


class AnswerAssertions:
    """Statements about recorded answers. `recorded` is when they were; statements begin with `indent`."""

    __slots__ = ("_indent", "_name", "_recorded")

    def __init__(self, recorded: datetime, indent: str, dialect: Dialect) -> None:
        self._recorded = recorded
        self._name = dialect.name
        self._indent = indent

    def lines(self, method: str, result: dict[str, Any]) -> Iterator[str]:
        """Statements that hold a recorded result against `result`, the SDK's; none where there is nothing to hold."""
        if method in _LISTS:
            yield from self._listed(result, *_LISTS[method])
        elif method == "tools/call":
            yield f"{self._indent}assert {'' if result.get('isError') is True else 'not '}result.{self._name('is_error')}"
            yield from self._contents(result.get("content"), "result.content", structured=result.get("structuredContent"))
            if "structuredContent" in result:
                yield from self._value(result["structuredContent"], f"result.{self._name('structured_content')}")
        elif method == "resources/read":
            yield from self._contents(result.get("contents"), "result.contents", names="uri")
        elif method == "prompts/get":
            yield from self._prompt(result.get("messages"))
        elif method == "completion/complete":
            completion = result.get("completion")
            if isinstance(completion, dict):
                yield from self._value(completion.get("values"), "result.completion.values")

    def _listed(self, result: dict[str, Any], member: str, name: str, named: str, name_of_item: str) -> Iterator[str]:
        items = result.get(member)
        if isinstance(items, list) and all(isinstance(one, dict) and isinstance(one.get(name), str) for one in items):
            found = f"result.{self._name(_ATTRIBUTES.get(member, member))}"
            names = [one[name] for one in items]
            if len(names) > MAX_NAMES:
                yield f"{self._indent}assert len({found}) == {len(names)}"
            else:
                yield from self._held(f"[{named.format(self._name(name_of_item))} for one in {found}] == ", names)

    def _contents(self, blocks: Any, found: str, *, names: str = "type", structured: Any = None) -> Iterator[str]:
        if not isinstance(blocks, list) or not all(isinstance(one, dict) and isinstance(one.get(names), str) for one in blocks):
            return
        texts = [one.get("text") for one in blocks]
        if names == "type" and all(isinstance(one, str) for one in texts) and len(literal(texts)) <= MAX_LINE_LETTERS:
            yield from self._held(f"[block.text for block in {found}] == ", texts)
            return
        name = "str(block.uri)" if names == "uri" else "block.type"
        yield from self._held(f"[{name} for block in {found}] == ", [one[names] for one in blocks])
        if len(blocks) == 1 and _says(blocks[0].get("text"), structured):
            return
        for at, block in enumerate(blocks):
            yield from self._block(block, f"{found}[{at}]")

    def _block(self, block: dict[str, Any], found: str) -> Iterator[str]:
        if isinstance(block.get("text"), str):
            yield from self._text(block["text"], f"{found}.text")
        for member in ("data", "blob"):
            if isinstance(block.get(member), str):
                yield f"{self._indent}assert len({found}.{member}) == {len(block[member])}"
        if isinstance(block.get("mimeType"), str):
            yield from self._held(f"{found}.{self._name('mime_type')} == ", block["mimeType"])
        if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
            yield from self._held(f"str({found}.uri) == ", block["uri"])
        if isinstance(block.get("resource"), dict):
            yield from self._block(block["resource"], f"{found}.resource")

    def _prompt(self, messages: Any) -> Iterator[str]:
        if isinstance(messages, list) and all(
            isinstance(one, dict) and isinstance(one.get("content"), dict) for one in messages
        ):
            yield from self._held("[message.role for message in result.messages] == ", [one.get("role") for one in messages])
            for at, one in enumerate(messages):
                yield from self._block(one["content"], f"result.messages[{at}].content")

    def _text(self, text: str, found: str) -> Iterator[str]:
        if len(text) <= MAX_TEXT_LETTERS:
            yield from self._held(f"{found} == ", text)
        else:
            beginning = quoted(text[:KEPT_LETTERS])
            statements = [f"assert {found}.startswith({beginning})", f"assert len({found}) == {len(text)}"]
            yield from self._statement(statements, is_new=self._is_new(text))

    def _value(self, value: Any, found: str) -> Iterator[str]:
        if not has_literal(value):
            return
        if isinstance(value, dict) and len(literal(value)) > MAX_VALUE_LETTERS:
            yield from self._held(f"sorted({found}) == ", sorted(value))
        else:
            yield from self._held(f"{found} is " if value is None or isinstance(value, bool) else f"{found} == ", value)

    def _held(self, what: str, value: Any) -> Iterator[str]:
        """An assertion, or a comment where the value is one that is made anew each time."""
        if isinstance(value, str):
            told = text_literal(value, indent=self._indent, cells=MAX_TEXT_CELLS)
        else:
            told = literal(value, indent=self._indent)
        lines = [line.removeprefix(self._indent) for line in f"assert {what}{told}".split("\n")]
        yield from self._statement(lines, is_new=self._is_new(literal(value)))

    def _statement(self, lines: list[str], *, is_new: bool) -> Iterator[str]:
        if is_new:
            yield self._indent + NEW_EACH_TIME
        for line in lines:
            yield f"{self._indent}{'# ' if is_new else ''}{line}"

    def _is_new(self, text: str) -> bool:
        return _made_up(text) is not None or any(map(self._is_near, _moments(text)))

    def _is_near(self, found: re.Match[str]) -> bool:
        day, seconds = found.groups()
        try:
            moment = datetime.fromisoformat(day).replace(tzinfo=UTC) if day else datetime.fromtimestamp(int(seconds), UTC)
        except ValueError:
            return False
        return abs(moment - self._recorded) < NEAR


def _says(text: Any, structured: Any) -> bool:
    """Whether a text is the structured content once more, as servers send it for old clients."""
    if not isinstance(text, str) or structured is None:
        return False
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    return bool(said == structured or (isinstance(structured, dict) and list(structured.values()) == [said]))
