"""Assertions of a generated test: statements of Python that compare the SDK's result with a recorded one.

A value that looks as if the server generates it anew each time (a UUID, a current date) is written as a comment.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ...lazy_pattern import lazy_pattern
from ...records import PSEUDONYM_PATTERN
from ..text.python_literal import Formatted, has_literal, literal, quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sdk import Dialect

MAX_TEXT_LETTERS: Final = 300
"""For a longer text, a test compares the beginning and the length."""

KEPT_LETTERS: Final = 80

MAX_VALUE_LETTERS: Final = 1_500
"""For larger structured content, a test compares the names of its members."""

MAX_NAMES: Final = 60

MAX_LINE_LETTERS: Final = 60
"""The most letters of a list of texts on one line."""

MAX_TEXT_CELLS: Final = 70
"""Longer texts of several lines are written line by line."""

NEW_EACH_TIME: Final = "# Different each time:"

NEAR: Final = timedelta(days=2)
"""A date this close to the time of the capture is taken for one that the server generated then."""

_moments = lazy_pattern(r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d|\b(1[6-9]\d{8})(?:\d{3}|\.\d+)?\b")
"""Dates with a time, and Unix time in s or ms, from 2020 to 2033."""

_made_up = lazy_pattern(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|" + PSEUDONYM_PATTERN, re.IGNORECASE
)
"""UUIDs and our pseudonyms."""

_LISTS: Final = {
    "tools/list": ("tools", "name", "item.{}", "name"),
    "prompts/list": ("prompts", "name", "item.{}", "name"),
    "resources/list": ("resources", "uri", "str(item.{})", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "item.{}", "uri_template"),
}
"""Methods that list: the member of the result, the member that names an item, and in the SDK the expression and its attribute."""

_ATTRIBUTES: Final = {"resourceTemplates": "resource_templates"}


class AnswerAssertions:
    """Assertions about recorded answers. `recorded` is the time of the capture; statements begin with `indent`."""

    __slots__ = ("_indent", "_name", "_recorded")

    def __init__(self, recorded: datetime, indent: str, dialect: Dialect) -> None:
        self._recorded = recorded
        self._name = dialect.name
        self._indent = indent

    def lines(self, method: str, result: dict[str, Any]) -> Iterator[str]:
        """Yield statements that compare a recorded result with `result`, the SDK's; none where there is nothing to compare."""
        if method in _LISTS:
            yield from self._item_names(result, *_LISTS[method])
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

    def _item_names(self, result: dict[str, Any], member: str, name: str, named: str, name_of_item: str) -> Iterator[str]:
        items = result.get(member)
        if isinstance(items, list) and all(isinstance(item, dict) and isinstance(item.get(name), str) for item in items):
            items_code = f"result.{self._name(_ATTRIBUTES.get(member, member))}"
            names = [item[name] for item in items]
            if len(names) > MAX_NAMES:
                yield f"{self._indent}assert len({items_code}) == {len(names)}"
            else:
                yield from self._assertion(f"[{named.format(self._name(name_of_item))} for item in {items_code}] == ", names)

    def _contents(self, blocks: Any, code: str, *, names: str = "type", structured: Any = None) -> Iterator[str]:
        if not isinstance(blocks, list) or not all(
            isinstance(block, dict) and isinstance(block.get(names), str) for block in blocks
        ):
            return
        texts = [block.get("text") for block in blocks]
        if names == "type" and all(isinstance(block, str) for block in texts) and len(literal(texts)) <= MAX_LINE_LETTERS:
            yield from self._assertion(f"[block.text for block in {code}] == ", texts)
            return
        name = "str(block.uri)" if names == "uri" else "block.type"
        yield from self._assertion(f"[{name} for block in {code}] == ", [block[names] for block in blocks])
        if len(blocks) == 1 and _repeats(blocks[0].get("text"), structured):
            return
        for at, block in enumerate(blocks):
            yield from self._block(block, f"{code}[{at}]")

    def _block(self, block: dict[str, Any], code: str) -> Iterator[str]:
        if isinstance(block.get("text"), str):
            yield from self._text(block["text"], f"{code}.text")
        for member in ("data", "blob"):
            if isinstance(block.get(member), str):
                yield f"{self._indent}assert len({code}.{member}) == {len(block[member])}"
        if isinstance(block.get("mimeType"), str):
            yield from self._assertion(f"{code}.{self._name('mime_type')} == ", block["mimeType"])
        if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
            yield from self._assertion(f"str({code}.uri) == ", block["uri"])
        if isinstance(block.get("resource"), dict):
            yield from self._block(block["resource"], f"{code}.resource")

    def _prompt(self, messages: Any) -> Iterator[str]:
        if isinstance(messages, list) and all(
            isinstance(message, dict) and isinstance(message.get("content"), dict) for message in messages
        ):
            roles = [message.get("role") for message in messages]
            yield from self._assertion("[message.role for message in result.messages] == ", roles)
            for at, message in enumerate(messages):
                yield from self._block(message["content"], f"result.messages[{at}].content")

    def _text(self, text: str, code: str) -> Iterator[str]:
        if len(text) <= MAX_TEXT_LETTERS or isinstance(text, Formatted):  # which cannot be cut
            yield from self._assertion(f"{code} == ", text)
        else:
            beginning = quoted(text[:KEPT_LETTERS])
            statements = [f"assert {code}.startswith({beginning})", f"assert len({code}) == {len(text)}"]
            yield from self._statement(statements, is_new=self._is_new(text))

    def _value(self, value: Any, code: str) -> Iterator[str]:
        if not has_literal(value):
            return
        if isinstance(value, dict) and len(literal(value)) > MAX_VALUE_LETTERS:
            yield from self._assertion(f"sorted({code}) == ", sorted(value))
        else:
            yield from self._assertion(f"{code} is " if value is None or isinstance(value, bool) else f"{code} == ", value)

    def _assertion(self, what: str, value: Any) -> Iterator[str]:
        """Yield an assertion, or a comment where the value looks generated."""
        if isinstance(value, str):
            spelled = text_literal(value, indent=self._indent, cells=MAX_TEXT_CELLS)
        else:
            spelled = literal(value, indent=self._indent)
        lines = [line.removeprefix(self._indent) for line in f"assert {what}{spelled}".split("\n")]
        yield from self._statement(lines, is_new=self._is_new(literal(value)))

    def _statement(self, lines: list[str], *, is_new: bool) -> Iterator[str]:
        if is_new:
            yield self._indent + NEW_EACH_TIME
        for line in lines:
            yield f"{self._indent}{'# ' if is_new else ''}{line}"

    def _is_new(self, text: str) -> bool:
        return _made_up.search(text) is not None or any(map(self._is_near, _moments.finditer(text)))

    def _is_near(self, match: re.Match[str]) -> bool:
        day, seconds = match.groups()
        try:
            moment = datetime.fromisoformat(day).replace(tzinfo=UTC) if day else datetime.fromtimestamp(int(seconds), UTC)
        except ValueError:
            return False
        return abs(moment - self._recorded) < NEAR


def _repeats(text: Any, structured: Any) -> bool:
    """Return whether a text repeats the structured content, which servers do for old clients."""
    if not isinstance(text, str) or structured is None:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return bool(value == structured or (isinstance(structured, dict) and list(structured.values()) == [value]))
