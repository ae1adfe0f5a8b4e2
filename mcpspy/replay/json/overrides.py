"""A value to be put into what is sent, as `--set` says it: `$.arguments.path="/srv"`, a JSON path and JSON.

The path is one of ignore rules, with names and indices alone; `$` is the request's `params`. Refuses places that are many.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ...errors import PathError
from ...wire.edits import ValueEdit, has_value, with_values
from ..compare.ignore import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...transcript.model import Exchange
    from ..compare.ignore import Step


class Override(NamedTuple):
    """A value, as JSON, and where it goes in the `params` of a request; `path` is how that was written."""

    path: str
    steps: tuple[Step, ...]
    value: bytes

    def edit(self, *, adds: bool = False) -> ValueEdit:
        """The edit of a whole message."""
        return ValueEdit(("params", *self.steps), self.value, adds)


def override_of(text: str) -> Override:
    """What one `--set` says. Raises: PathError: where there is no path, no value, or no JSON."""
    at = text.find("=")
    if at < 0:
        raise PathError(text, len(text) + 1, "there is no value", "Write a path, = and JSON: '$.arguments.path=\"/srv\"'.")
    failed: PathError | None = None
    while at >= 0:  # a name in quotes may hold = itself
        try:
            steps = _steps(text[:at])
        except PathError as error:
            failed = failed or error
            at = text.find("=", at + 1)
            continue
        return Override(text[:at].strip(), steps, _json(text, at + 1))
    assert failed is not None
    raise failed


def override_edits(
    settings: Sequence[Override], requests: Sequence[Exchange], asked: Sequence[Exchange]
) -> dict[int, list[ValueEdit]]:
    """By row, what is to be exchanged: in every request that is sent and has the place. Where none has it, the one asked for gets it.

    Raises: PathError: where none has it, and not just one is asked for.
    """
    found: dict[int, list[ValueEdit]] = {}
    for one in settings:
        edit = one.edit()
        having = [request for request in requests if has_value(request.request.raw, edit.steps)]
        if not having and len(asked) == 1:
            having, edit = list(asked), one.edit(adds=True)
            if not has_value(with_values(asked[0].request.raw, [edit]), edit.steps):
                reason = "the request has no such place, and only a member of an object can be added"
                raise PathError(one.path, 1, reason, "Set what is around it as a whole.")
        if not having:
            advice = "Name one request to add it to, as in mcpspy replay @:7." if len(asked) > 1 else ""
            raise PathError(one.path, 1, "no request that is sent has this place", advice)
        for request in having:
            found.setdefault(request.row, []).append(edit)
    return found


def _steps(path: str) -> tuple[Step, ...]:
    if path.strip() == "$":
        raise PathError(path, 1, "$ alone is all of the params", "Name a member of them, as in $.arguments={}.")
    steps: list[Step] = []
    for segment in rule_of(path):
        if segment.anywhere or not isinstance(segment.selector, str | int):
            raise PathError(path, 1, "this names many places", "Name one, by members and indices: $.arguments.path.")
        steps.append(segment.selector)
    return tuple(steps)


def _json(text: str, at: int) -> bytes:
    value = text[at:].strip()
    try:
        json.loads(value, parse_constant=_no_constant)
    except ValueError:
        quoted = json.dumps(value, ensure_ascii=False)
        raise PathError(text, at + 1, "the value is no JSON", f"A text stands in quotes: '{text[:at]}{quoted}'.") from None
    return value.encode("utf-8", "surrogatepass")


def _no_constant(word: str) -> NoReturn:
    """Python's reader takes `NaN` and `Infinity`, and JSON has none (RFC 8259, section 6)."""
    raise ValueError(word)
