"""What `--carry` names: the values in a server's messages that a later request uses, though nothing about them looks made up.

$.structuredContent.id    a place in a result; $.error.data.id in an error, $.params.uri in what a server says on its own
handle                    $..handle: every member of that name
"h1"                      the recorded value itself, wherever the server said it
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....errors import PathError
from ...compare.ignore import Ignore, rule_of
from ...json.leaves import Leaf, named_leaves

if TYPE_CHECKING:
    from ...compare.ignore import Step

_CONTENTS: Final = ("result", "error", "params")
_name = re.compile(r"[^\W\d][\w-]*").fullmatch


class Handle(NamedTuple):
    """One of them: as it was written, and its rule for the whole message, or the value itself."""

    written: str
    rules: Ignore | None = None
    value: str = ""


class Handles:
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


def _handle(written: str) -> Handle:
    text = written.strip()
    if text.startswith("$"):
        return Handle(written, Ignore(_rules(text)))
    if len(text) > 2 and text[0] == text[-1] == '"':
        return Handle(written, value=text[1:-1])
    if _name(text):
        return Handle(written, Ignore.of((f"$..{text}",)))
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
