"""Values that the recorded server made up, as variables of a generated test.

    result = await client.call_tool("open", {})
    ticket = result.structured_content["ticket"]
    result = await client.call_tool("write", {"ticket": ticket})

Which values these are, and where they came from, is read as for a replay. Others stay literals.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any, Final

from ...lazy_pattern import lazy_pattern
from ...replay.client.correlate.model import text_of
from ...replay.client.correlate.reader import read_correlations
from ...replay.json_values import embedded_json, read, value_at
from ..text.python_literal import Formatted, literal, quoted
from .answers import MAX_TEXT_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...json_path import Step
    from ...replay.client.correlate.model import ValueOrigin
    from ...transcript.model import Exchange, Transcript
    from .sdk import Dialect

MIN_LETTERS: Final = 6
"""Shorter values are replaced only where the client sent them back."""

_TAKEN: Final = frozenset((
    "asyncio", "call", "caught", "client", "elicit", "json", "mcpspy", "pytest", "re", "result", "roots", "sample", "server",
    "str", "streams", "types",
))  # fmt: skip
MAX_AROUND: Final = 20
"""The most letters before a part of a text by which a test finds it."""

_without_digits = lazy_pattern(r"\D*$")
"""The letters at the end of a text; words with digits may be made up too."""
_sign = lazy_pattern(r"[\\.^$*+?{}()|\[\]]")
_camel = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


class MadeUpValues:
    """The values of one test. `assignments` of an answer names them; from then on they are variables in `params` and `answer`."""

    __slots__ = ("_correlations", "_dialect", "_names", "_transcript", "_wanted")

    def __init__(self, transcript: Transcript, dialect: Dialect) -> None:
        self._correlations = read_correlations(transcript)
        self._dialect = dialect
        self._names: dict[str, str] = {}
        """The variables by value."""
        self._wanted: dict[int, dict[str, tuple[list[ValueOrigin], tuple[Step, ...]]]] = {}
        """The values that later requests send, by the row of the answer that they came from: their places there and in a request."""
        for exchange in transcript.exchanges:
            for correlated in self._correlations.values(exchange.request):
                places = [origin for origin in correlated.origins if not origin.message.method and not origin.is_name]
                if places and not correlated.is_name:
                    self._wanted.setdefault(places[0].message.row, {}).setdefault(
                        text_of(correlated.value), (places, correlated.steps)
                    )

    def forget(self) -> None:
        """Begin the requests of another client, which has none of the variables."""
        self._names.clear()

    def assignments(self, exchange: Exchange, indent: str) -> Iterator[str]:
        """Yield the statements that take the values of an answer out of `result`."""
        body = read(exchange.response.raw) if exchange.response is not None else None
        for value, (places, requested) in self._wanted.get(exchange.row, {}).items():
            if value in self._names:
                continue
            codes = (
                (self._code(place, body), place)
                for place in sorted(places, key=lambda place: place.steps[1:2] != ("structuredContent",))
                if place.message.row == exchange.row
            )
            code, place = next(((code, place) for code, place in codes if code is not None), (None, None))
            if code is not None and place is not None:
                self._names[value] = self._free(_name(place, requested))
                yield f"{indent}{self._names[value]} = {code}"

    def params(self, exchange: Exchange) -> Any:
        """Return the params of a request, with variables where it sends back what the server made up."""
        params = exchange.request.params or {}
        for correlated in self._correlations.values(exchange.request):
            name = self._names.get(text_of(correlated.value))
            if name is not None and not correlated.is_name:
                leaf = value_at({"params": params}, correlated.steps)
                begin, end = correlated.span or (0, len(text_of(leaf)))
                if isinstance(leaf, str):
                    new = Formatted.around(leaf[:begin], name, leaf[end:])
                else:
                    new = Formatted.around("", name, "")
                params = _with(params, correlated.steps[1:], new)
        return params

    def answer(self, value: Any) -> Any:
        """Return a part of an answer, with variables in place of the values in its texts."""
        names = {known: name for known, name in self._names.items() if len(known) >= MIN_LETTERS}
        return _filled(value, names) if names else value

    def _code(self, place: ValueOrigin, body: Any) -> str | None:
        """Return the expression for a place of `result`; None if the SDK's result does not have it."""
        steps = place.steps[1:]
        name = self._dialect.name
        if steps == ("nextCursor",):
            return f"result.{name('next_cursor')}"
        if steps[:1] == ("structuredContent",):
            code, begin = f"result.{name('structured_content')}", 1
        elif steps[:1] in (("content",), ("contents",)) and steps[2:3] in (("text",), ("uri",)):
            code, begin = f"result.{steps[0]}[{steps[1]}].{steps[2]}", 3
            code = f"str({code})" if steps[2] == "uri" else code
        else:
            return None
        value = value_at(body, ("result", *steps[:begin]))
        for step in steps[begin:]:
            if isinstance(value, str):
                code, value = f"json.loads({code})", embedded_json(value)
            code, value = f"{code}[{literal(step)}]", value_at(value, (step,))
        if place.span is None:
            return code
        pattern = _pattern(value, *place.span)
        return None if pattern is None else f"re.search({quoted(pattern)}, {code})[1]"

    def _free(self, name: str) -> str:
        taken = {*_TAKEN, *self._names.values()}
        free, number = name, 2
        while free in taken or keyword.iskeyword(free):
            free, number = f"{name}_{number}", number + 1
        return free


def _pattern(text: str, begin: int, end: int) -> str | None:
    """Return the pattern that finds a part of a text by what is around it; None if that is elsewhere in the text too."""
    words = _without_digits.search(text[max(0, begin - MAX_AROUND) : begin])
    for before in (words[0] if words else "", text[max(0, begin - MAX_AROUND) : begin]):
        pattern = f"{_literally(before)}(.+?){_literally(text[end : end + 1]) or '$'}"
        match = re.search(pattern, text)
        if match is not None and match.span(1) == (begin, end):
            return pattern
    return None


def _literally(text: str) -> str:
    """Return a pattern that matches just this text; spaces need no backslash."""
    return _sign.sub(lambda match: f"\\{match[0]}", text)


def _name(place: ValueOrigin, requested: tuple[Step, ...]) -> str:
    """Name a variable after the member that holds the value; of a part of a text, after that of the request that sends it."""
    steps = requested if place.span is not None or place.steps[-1] == "text" else place.steps
    name = next((step for step in reversed(steps) if isinstance(step, str)), "value")
    name = "cursor" if name == "nextCursor" else name
    name = re.sub(r"\W+", "_", _camel.sub("_", name), flags=re.ASCII).strip("_").lower()
    return name if name[:1].isalpha() else "value"


def _with(value: Any, steps: tuple[Step, ...], new: Any) -> Any:
    """Return a copy of a value with another one at these steps."""
    if not steps:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[steps[0]] = _with(value[steps[0]], steps[1:], new)  # type: ignore[index]  # the steps fit, as they were read from it
    return copy


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(member, names) for name, member in value.items()}
    if isinstance(value, list):
        return [_filled(item, names) for item in value]
    if not isinstance(value, str | int) or isinstance(value, bool):
        return value
    text = text_of(value)
    if len(text) > MAX_TEXT_LETTERS:  # of which only the beginning is compared
        return value
    present = sorted((known for known in names if known in text), key=len, reverse=True)
    if not present or (isinstance(value, int) and text not in names):
        return value
    known = re.compile(rf"(?<![0-9A-Za-z])({'|'.join(map(re.escape, present))})(?![0-9A-Za-z])")
    pieces = known.split(text)
    if len(pieces) == 1:
        return value
    filled = Formatted.around(pieces[0], "", "")
    for at in range(1, len(pieces), 2):
        filled = filled.followed_by(names[pieces[at]], pieces[at + 1])
    return filled
