"""Which values of what a recorded client said came from what its server had said before, and so are others when it is said anew.

Cursors, task ids, `requestState`, elicitation ids and the keys of `inputRequests` are carried wherever the specification has them;
what `--carry` names wherever it turns up; and what looks made up (`made_up`), if the server said it before the client did. Refuses to
guess about anything else, and to know live values: `run` is for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ....transcript.model import Message
    from ...compare.ignore import Step
    from ...json.walk import Scalar

MessageKey: TypeAlias = tuple[int, int, str]
"""Capture, number, id and method."""

VALUE: Final = "value"
"""What something is called that only looks made up."""


class MessageRef(NamedTuple):
    """A message of the server's: the answer in an exchange (no method), or the how many-th notification or request of its method.

    `row` is the exchange that it belongs to, and 0 for what belongs to none.
    """

    row: int
    method: str = ""
    nth: int = 0


class ValueOrigin(NamedTuple):
    """A place where the server said a value.

    `row` is the recorded row. `steps` begin at the root of the message; `span` is the stretch of the text there, None for the whole
    value. Of a member's name the last step is the name.
    """

    said: MessageRef
    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None = None
    is_name: bool = False


class CorrelatedValue(NamedTuple):
    """A value in what the client said in `row`, with where it stands there as an `ValueOrigin` has it.

    `origins` are where it came from: the place that gave it out, then others where it was said too. `what` is what it is called;
    `guessed`, that it only looks made up.
    """

    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None
    value: Scalar
    what: str
    origins: tuple[ValueOrigin, ...]
    guessed: bool = False
    is_name: bool = False

    @property
    def from_row(self) -> int:
        """The row whose answer gave it out."""
        return self.origins[0].row


class Correlations:
    """What a recording carries. It never changes; each drive of a fresh server has a `run` of its own.

    `handles` are what `--carry` names. Raises: PathError: for one that cannot be read.
    """

    __slots__ = ("_needs", "_values", "recorded")

    def __init__(
        self,
        values: dict[MessageKey, tuple[CorrelatedValue, ...]],
        recorded: dict[MessageRef, Message],
        direct_needs: dict[int, set[int]],
    ) -> None:
        self._values = values
        self.recorded = recorded
        """The server's messages that something was carried from."""
        self._needs = direct_needs
        """By row, the client's requests that gave out what it holds."""

    def values(self, message: Message) -> tuple[CorrelatedValue, ...]:
        """What of a recorded message of the client's came from its server, in the order of the message."""
        return self._values.get(message_key(message), ())

    def needs(self, row: int) -> frozenset[int]:
        """The rows of the client's requests without whose answers that of this row cannot be asked; theirs included."""
        found: set[int] = set()
        waiting = [*self._needs.get(row, ())]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self._needs.get(one, ()))
        return frozenset(found)


def message_key(message: Message) -> MessageKey:
    """By which a message is found again; those of a batch have one number."""
    return message.capture, message.number, f"{message.id} {message.method}"
