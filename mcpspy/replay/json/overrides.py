"""Overrides: the values of `--set`, as `$.arguments.path="/srv"`, and the edits that put them into a request.

`$` is the request's `params`; a path from the root of the message, as `params.arguments.path`, is the same one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import PathError
from ...json_path import Step, assignment_at
from ...transcript.model import Message
from ...wire.edits import ValueEdit, has_value, with_values


class Override(NamedTuple):
    """A JSON value, and where it goes in the `params` of a request; `path` is the path as it was written."""

    path: str
    steps: tuple[Step, ...]
    value: bytes


def override_of(text: str) -> Override:
    """Parse the value of one `--set`. Raises: PathError: if the path, the value, or JSON is missing."""
    setting = text.strip()
    steps, path, value, end = assignment_at(setting, 0)
    if end < len(setting):
        raise PathError(text, end + 1, "the value ends here", "Leave out what follows it.")
    return Override(path, steps, value)


def override_edits(overrides: Sequence[Override], request: Message) -> list[ValueEdit]:
    """Return the edits of a request: a value is replaced, or added to what is around it.

    Raises: PathError: if neither can be done.
    """
    edits: list[ValueEdit] = []
    for override in overrides:
        steps = ("params", *override.steps)
        if override.steps[0] == "params" and len(override.steps) > 1 and not has_value(request.raw, ("params", "params")):
            steps = override.steps
        edits.append(ValueEdit(steps, override.value, adds=True))
        if not has_value(with_values(request.raw, edits), steps):
            reason = "the request has no such path, and it cannot be added"
            raise PathError(override.path, 1, reason, "Set what is around it as a whole.")
    return edits
