"""Which values of what a recorded client said came from what its server had said before, and so are others when it is said anew.

Cursors, task ids, `requestState`, elicitation ids and the keys of `inputRequests` are carried wherever the specification has them;
what `--carry` names wherever it turns up; and what looks made up (`made_up`), if the server said it before the client did. Refuses to
guess about anything else, and to know live values: `run` is for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ....records import CLIENT
from ....transcript.model import Exchange, Kind, UnpairedMessage
from .values import Handles

if TYPE_CHECKING:
    from ....transcript.model import Message, Transcript
    from ...compare.ignore import Step
    from ...json.walk import Scalar
    from .run import CarryingRun

VALUE: Final = "value"
"""What something is called that only looks made up."""


class Said(NamedTuple):
    """A message of the server's: the answer in an exchange (no method), or the how many-th notification or request of its method.

    `row` is the exchange that it belongs to, and 0 for what belongs to none.
    """

    row: int
    method: str = ""
    nth: int = 0


class Origin(NamedTuple):
    """A place where the server said a value.

    `row` is the recorded row. `steps` begin at the root of the message; `span` is the stretch of the text there, None for the whole
    value. Of a member's name the last step is the name.
    """

    said: Said
    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None = None
    is_name: bool = False


class Carried(NamedTuple):
    """A value in what the client said in `row`, with where it stands there as an `Origin` has it.

    `origins` are where it came from: the place that gave it out, then others where it was said too. `what` is what it is called;
    `guessed`, that it only looks made up.
    """

    row: int
    steps: tuple[Step, ...]
    span: tuple[int, int] | None
    value: Scalar
    what: str
    origins: tuple[Origin, ...]
    guessed: bool = False
    is_name: bool = False

    @property
    def from_row(self) -> int:
        """The row whose answer gave it out."""
        return self.origins[0].row


class Carrying:
    """What a recording carries. It never changes; each drive of a fresh server has a `run` of its own.

    `handles` are what `--carry` names. Raises: PathError: for one that cannot be read.
    """

    __slots__ = ("_needs", "_values", "recorded")

    def __init__(self, transcript: Transcript, handles: Sequence[str] = ()) -> None:
        from .reader import Reader

        named = Handles(handles)
        readers = [Reader(named) for _ in transcript.captures]
        for_reading = _in_order(transcript)
        for message, _ in for_reading:
            if message.sender == CLIENT:
                readers[message.capture].look_ahead(message)
        self._values: dict[tuple[int, int, str], tuple[Carried, ...]] = {}
        for message, row in for_reading:
            found = readers[message.capture].feed(message, row)
            if found:
                self._values[_key(message)] = found
        wanted = {one.said for some in self._values.values() for each in some for one in each.origins}
        self.recorded: dict[Said, Message] = {
            said: message for reader in readers for said, message in reader.said.items() if said in wanted
        }
        """The server's messages that something was carried from."""
        self._needs = _direct(transcript, self._values)

    def values(self, message: Message) -> tuple[Carried, ...]:
        """What of a recorded message of the client's came from its server, in the order of the message."""
        return self._values.get(_key(message), ())

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

    def run(self) -> CarryingRun:
        """For one drive of a fresh server."""
        from .run import CarryingRun

        return CarryingRun(self)


def _in_order(transcript: Transcript) -> list[tuple[Message, Exchange | UnpairedMessage]]:
    """Every message that can be read, with its row, in the order in which a tap saw them."""
    found: list[tuple[Message, Exchange | UnpairedMessage]] = []
    for row in transcript.rows:
        if isinstance(row, Exchange):
            found += [(one, row) for one in row.messages]
        elif isinstance(row, UnpairedMessage) and row.message.kind is not Kind.MALFORMED:
            found.append((row.message, row))
    return sorted(found, key=lambda one: (one[0].at_ns, one[0].capture, one[0].number))


def _key(message: Message) -> tuple[int, int, str]:
    """By which a message is found again; those of a batch have one number."""
    return message.capture, message.number, f"{message.id} {message.method}"


def _direct(transcript: Transcript, values: dict[tuple[int, int, str], tuple[Carried, ...]]) -> dict[int, set[int]]:
    """By row, the client's requests that gave out what it holds."""
    asked = {row.row for row in transcript.rows if isinstance(row, Exchange) and row.sender == CLIENT}
    found: dict[int, set[int]] = {}
    for some in values.values():
        for one in some:
            if one.from_row in asked and one.from_row != one.row:
                found.setdefault(one.row, set()).add(one.from_row)
    return found
