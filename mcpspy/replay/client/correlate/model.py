"""Correlated values: values that a recorded client had from its server, so that they are others with a live server.

    recorded   2  tools/call open  → {"handle": "a76c42a10f4d"}                   the origin: row 2, $.result.…handle
               5  tools/call write {"handle": "a76c42a10f4d", "text": "hello"}    a correlated value: row 5, $.params.…handle
    live       2  tools/call open  → {"handle": "0d9e55b3c781"}
               5  tools/call write {"handle": "0d9e55b3c781", "text": "hello"}    sent with the live value

Three kinds of values are correlated: what the specification says that servers generate (cursors, task ids, `requestState`,
elicitation ids, the keys of `inputRequests`), what `--carry` names, and opaque words, if the server sent them first. Everything else,
as `hello`, is the client's own. Live values are in `run`.
"""

from typing import Final, NamedTuple, TypeAlias

from ....json_path import Step
from ....transcript.model import Message
from ...json_values import Scalar, canonical
from ..plan import closure

MessageKey: TypeAlias = tuple[int, int, str]
"""Capture, number, id and method."""

VALUE: Final = "value"
"""The kind of a value that the specification does not name."""


class MessageRef(NamedTuple):
    """A reference to a message of the server: the answer in an exchange (no method), or the nth message with this method, from 0.

    `row` is the exchange that it belongs to, or 0.
    """

    row: int
    method: str = ""
    nth: int = 0


class ValueOrigin(NamedTuple):
    """A place where the server sent a value.

    `row` is the recorded row. `steps` begin at the root of the message; `span` is the part of the text there, None for the whole
    value. For the name of a member the last step is the name.
    """

    message: MessageRef
    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None = None
    is_name: bool = False


class CorrelatedValue(NamedTuple):
    """A value in the client's message of `row`, and its place there, as in `ValueOrigin`.

    `origins` begin with the place that issued it; others are places where the server sent it too. `what` is its kind; `is_guessed`
    says that it only looks generated.
    """

    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None
    value: Scalar
    what: str
    origins: tuple[ValueOrigin, ...]
    is_guessed: bool = False
    is_name: bool = False

    @property
    def from_row(self) -> int:
        """The row whose answer issued it."""
        return self.origins[0].row


class Correlations:
    """The correlated values of a transcript, by message. They never change; `CorrelationRun` has the live values of one replay."""

    __slots__ = ("_needs", "_values", "recorded")

    def __init__(
        self,
        values: dict[MessageKey, tuple[CorrelatedValue, ...]],
        recorded: dict[MessageRef, Message],
        direct_needs: dict[int, set[int]],
    ) -> None:
        self._values = values
        self.recorded = recorded
        """The server's messages that are an origin."""
        self._needs = direct_needs
        """By row, the client's requests whose answers issued its values."""

    def values(self, message: Message) -> tuple[CorrelatedValue, ...]:
        """Return the correlated values in a recorded message of the client, in the order of the message."""
        return self._values.get(message_key(message), ())

    def needs(self, row: int) -> frozenset[int]:
        """Return the client's requests whose answers this row needs, directly or not."""
        return frozenset(closure(self._direct_needs(row), self._direct_needs))

    def _direct_needs(self, row: int) -> set[int]:
        return self._needs.get(row, set())


def message_key(message: Message) -> MessageKey:
    """Return the key by which a message is found; the messages of a batch have one number."""
    return message.capture, message.number, f"{message.id} {message.method}"


def text_of(value: Scalar) -> str:
    """Return the text by which a value is known: 17 and "17" are the same value."""
    return value if isinstance(value, str) else canonical(value)
