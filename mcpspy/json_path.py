"""JSON paths as users write them, and values to set: one language for intercepts, `--set`, `--ignore`, `--path` and agents.

    a.b  $.a.b  $["a"]['b']    a member of a member; $ is the root, and may be left out
    a[0]  a."b c"              the first item; a name in quotes
    a.*  a[*]  ..b             every member or item; a member of that name wherever it stands: these fit many values
    a.b="x"                    a path, and the value to set there as JSON

Source: RFC 9535 (JSONPath), without slices, filters, negative indices and lists of selectors. A name without quotes may have all
signs but white space and `.[]="`.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple, NoReturn, TypeAlias

from .errors import PathError
from .lazy_pattern import lazy_pattern

Step: TypeAlias = str | int
"""A member's name or an item's index, the first being 0."""


class _Any:
    """Every member and every item."""


ANY: Final = _Any()

_blanks = lazy_pattern(r"\s*")
_segment = lazy_pattern(
    r"""(\.{0,2})(?:([^\s.\[\]="]+)|"((?:[^"\\]|\\.)*+)"|"""
    r"""\[\s*(?:(\*)|(0|[1-9]\d{0,9})|"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)')\s*\])""",
    re.DOTALL,
)
_not_ascii = lazy_pattern("[^\0-\x7f]")
_quotes = lazy_pattern(r"""\\(['"\\])|(")""")


class Segment(NamedTuple):
    """One step of a path; with `anywhere` any number of other steps may come before it."""

    selector: Step | _Any
    anywhere: bool = False

    def takes(self, step: Step) -> bool:
        """Return whether it selects this step."""
        return self.selector is ANY or (self.selector == step and type(self.selector) is type(step))


def segments_at(text: str, at: int) -> tuple[tuple[Segment, ...], int]:
    """Read a path that ends at white space, at `=` or with the text. Return its segments, never none, and where it ends.

    Raises: PathError: with the column, and what can be written there.
    """
    begin = at
    is_first = True
    if text.startswith("$", at):
        at, is_first = at + 1, False
    segments: list[Segment] = []
    while at < len(text) and text[at] != "=" and not text[at].isspace():
        match = _segment.match(text, at)
        selector = None if match is None else _selector(match, is_first=is_first)
        if match is None or selector is None:
            at += 2 if text.startswith("..", at) else text.startswith(".", at)
            raise PathError(text, at + 1, "this is not a step of a path", "Write .name, ['a name'], [0], [*] or ..name.")
        segments.append(Segment(selector, match[1] == ".."))
        at, is_first = match.end(), False
    if not segments:
        raise PathError(text, begin + 1, "a path is missing", "Name a part of the message, as in $.result.content[*].text.")
    return tuple(segments), at


def _selector(match: re.Match[str], *, is_first: bool) -> Step | _Any | None:
    """Return the selector of a segment; None for a bare name without a dot, or for escapes that JSON does not have."""
    dots, name, bare, star, index, double, single = match.groups()
    if star or name == "*":
        return ANY
    if index is not None:
        return int(index)
    if not (dots or is_first) and (name is not None or bare is not None):
        return None
    if name is not None:
        return name
    quoted = next(text for text in (bare, double, single) if text is not None)
    spelled = _quotes.sub(lambda quote: "'" if quote[1] == "'" else f"\\{quote[1] or quote[2]}", quoted)
    try:
        return str(json.loads(f'"{spelled}"', strict=False))
    except ValueError:
        return None


def segments_of(path: str) -> tuple[Segment, ...]:
    """Read a text that is a path and nothing else. Raises: PathError."""
    text = path.strip()
    segments, end = segments_at(text, 0)
    if end < len(text):
        raise PathError(path, end + 1, "the path ends here", "Put a name with signs of its own in quotes: ['a name'].")
    return segments


def steps_at(text: str, at: int) -> tuple[tuple[Step, ...], int]:
    """Read a path of one value, as `segments_at` does. Raises: PathError: also if it fits many values."""
    segments, end = segments_at(text, at)
    steps = tuple(segment.selector for segment in segments if isinstance(segment.selector, str | int) and not segment.anywhere)
    if len(steps) < len(segments):
        raise PathError(text, at + 1, "this path can match several values", "Name one value, as in $.params.arguments.path.")
    return steps, end


def steps_of(path: str) -> tuple[Step, ...]:
    """Read a text that is the path of one value and nothing else. Raises: PathError."""
    segments_of(path)
    return steps_at(path.strip(), 0)[0]


# --- Values ---


def assignment_at(text: str, at: int) -> tuple[tuple[Step, ...], str, bytes, int]:
    """Read `PATH=JSON`. Return steps, the path as it was written, the value in one line, and where it ends. Raises: PathError."""
    steps, end = steps_at(text, at)
    path = text[at:end]
    equals = _end_of_blanks(text, end)
    if text[equals : equals + 1] != "=":
        raise PathError(
            text, equals + 1, "the value is missing", 'Write = and JSON after the path, as in $.params.arguments.path="/srv".'
        )
    value, end = json_at(text, _end_of_blanks(text, equals + 1))
    return steps, path, value, end


def json_at(text: str, at: int) -> tuple[bytes, int]:
    """Read a value of JSON: return it as it was spelled, but in one line, and where it ends. Raises: PathError."""
    try:
        _, end = _decode(text, at)
        return text[at:end].replace("\r", " ").replace("\n", " ").encode(), end  # a string has no line end in it
    except (ValueError, RecursionError):
        word = json.dumps((text[at:].split() or [""])[0], ensure_ascii=False)
        raise PathError(text, at + 1, "the value is not JSON", f"Put a text in quotation marks: {word}.") from None


def in_ascii(text: str) -> str:
    """Return a piece of JSON whose texts have escapes for all that is not ASCII: it means the same in every encoding."""
    return _not_ascii.sub(lambda letter: json.dumps(letter[0])[1:-1], text)


def one_line(content: str | bytes) -> bytes | None:
    """Return a document of JSON in one line, every value as it was spelled; None if it is no JSON."""
    try:
        text = content if isinstance(content, str) else content.decode(json.detect_encoding(content))
        value, end = json_at(text, _end_of_blanks(text, 0))
    except (ValueError, PathError):
        return None
    return None if text[end:].strip() else value


def _end_of_blanks(text: str, at: int) -> int:
    blanks = _blanks.match(text, at)
    return at if blanks is None else blanks.end()


def _refuse_constant(word: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`: Python's reader takes them, and JSON has none (RFC 8259, section 6)."""
    raise ValueError(word)


_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant).raw_decode
