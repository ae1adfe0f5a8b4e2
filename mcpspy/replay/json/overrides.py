"""Overrides: the values of `--set`, as `$.arguments.path="/srv"`, and the edits that put them into a request.

The path is an ignore rule's, with names and indices only; `$` is the request's `params`.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from ...errors import PathError
from ...transcript.model import Message
from ...wire.edits import ValueEdit, has_value, with_values
from ..compare.ignore import Step, rule_of


class Override(NamedTuple):
    """A JSON value, and where it goes in the `params` of a request; `path` is the path as it was written."""

    path: str
    steps: tuple[Step, ...]
    value: bytes


def override_of(text: str) -> Override:
    """Parse the value of one `--set`. Raises: PathError: if the path, the value, or JSON is missing."""
    at = text.find("=")
    if at < 0:
        raise PathError(text, len(text) + 1, "there is no value", "Write a path, = and JSON: '$.arguments.path=\"/srv\"'.")
    first_error: PathError | None = None
    while at >= 0:  # a name in quotes may hold = itself
        try:
            steps = _steps(text[:at])
        except PathError as error:
            first_error = first_error or error
            at = text.find("=", at + 1)
            continue
        return Override(text[:at].strip(), steps, _json(text, at + 1))
    assert first_error is not None
    raise first_error


def override_edits(overrides: Sequence[Override], request: Message) -> list[ValueEdit]:
    """Return the edits of a request: a value is replaced, or added as a member of an object.

    Raises: PathError: if neither can be done.
    """
    edits: list[ValueEdit] = []
    for override in overrides:
        edit = ValueEdit(("params", *override.steps), override.value, adds=True)
        edits.append(edit)
        if not has_value(with_values(request.raw, edits), edit.steps):
            reason = "the request has no such path, and only a member of an object can be added"
            raise PathError(override.path, 1, reason, "Set what is around it as a whole.")
    return edits


def _steps(path: str) -> tuple[Step, ...]:
    if path.strip() == "$":
        raise PathError(path, 1, "$ alone is all of the params", "Name a member of them, as in $.arguments={}.")
    steps: list[Step] = []
    for segment in rule_of(path):
        if segment.anywhere or not isinstance(segment.selector, str | int):
            raise PathError(path, 1, "this path fits many values", "Name one value, by members and indices: $.arguments.path.")
        steps.append(segment.selector)
    return tuple(steps)


def _json(text: str, at: int) -> bytes:
    value = text[at:].strip()
    try:
        json.loads(value, parse_constant=_refuse_constant)
    except ValueError:
        quoted = json.dumps(value, ensure_ascii=False)
        raise PathError(text, at + 1, "the value is no JSON", f"Put text in quotes: '{text[:at]}{quoted}'.") from None
    return value.encode("utf-8", "surrogatepass")


def _refuse_constant(word: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`: Python's reader takes them, and JSON has none (RFC 8259, section 6)."""
    raise ValueError(word)
