"""Findings about JSON that parsers read differently: duplicate member names, and integers too large for a double.

These need a full parse, so that only the first messages of a capture are read: see `facts.SAMPLED` and MAX_READ_BYTES.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from ....wire.json_spans import UNREADABLE
from ...model import Message
from ..facts import SAMPLED, CaptureFacts
from ..rule import Hit, Severity, Unchecked, hit_in, transport_rule
from ..words import quoted

_CALL: Final = '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}\n'
_CLEAN: Final = _CALL + '← {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"sum":3}}}'

DUPLICATE_KEYS: Final = transport_rule(
    name="duplicate-keys",
    title="Duplicate member name",
    what="An object in a message has the same member name twice.",
    why="Parsers disagree on which value counts, so that a check and the tool may see different ones.",
    blame="The sender: mcpspy forwards bytes unchanged.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"a":2}}}\n'
    '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
    clean=_CLEAN,
    advice="Write JSON with a library, from a map.",
)

UNSAFE_INTEGER: Final = transport_rule(
    name="unsafe-integer",
    title="Integer too large for a double",
    what="A message has an integer beyond ±9,007,199,254,740,991, which a double cannot hold exactly.",
    why="JavaScript reads another number; if it is an id, the response is not recognised and the TypeScript SDK drops the message.",
    blame="The sender: JSON sets no limit, but its parsers do (RFC 8259, section 6).",
    example='→ {"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}\n'
    '← {"jsonrpc":"2.0","id":9007199254740993,"result":{"tools":[]}}',
    clean=_CLEAN,
    advice="Send large numbers as strings.",
)

RULES: Final = (DUPLICATE_KEYS, UNSAFE_INTEGER)

MAX_READ_BYTES: Final = 16 << 20
_NAMES: Final = tuple(rule.name for rule in RULES)
_MANY: Final = Unchecked(rules=_NAMES, reason=f"only the first {SAMPLED:,} messages of a capture are read")
_LARGE: Final = Unchecked(rules=_NAMES, reason=f"only the first {MAX_READ_BYTES >> 20} MiB of messages are read")

MAX_SAFE: Final = 2**53 - 1
"""`Number.MAX_SAFE_INTEGER` of JavaScript."""

_BITS: Final = 53
_MAX_BITS: Final = 1024
_SAFE_DIGITS: Final = 15
_MAX_DIGITS: Final = 4000
"""Python converts no more (`sys.get_int_max_str_digits`)."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find duplicate names and large integers in the first messages of a capture."""
    left_bytes = MAX_READ_BYTES
    if facts.capture.messages > SAMPLED:
        facts.limits[_MANY] = None
    for row, message in facts.sample:
        left_bytes -= len(message.raw)
        if left_bytes < 0:
            facts.limits[_LARGE] = None
            return
        reading = _JsonReading()
        reading.read(message.raw)
        if reading.twice is not None:
            what = f"An object has the member name {quoted(reading.twice)} twice."
            yield hit_in(DUPLICATE_KEYS, message, row, what, group=reading.twice)
        if reading.unsafe is not None:
            yield _unsafe(row, message, reading.unsafe)


def _unsafe(row: int, message: Message, digits: str) -> Hit:
    is_id = message.id == digits
    where = "The id of a message is" if is_id else "A message has the number"
    what = f"{where} {digits[:40]}, which a double cannot hold exactly."
    return hit_in(UNSAFE_INTEGER, message, row, what, severity=None if is_id else Severity.NOTE, group=str(is_id))


class _JsonReading:
    """The first duplicate name and the first large integer in a message."""

    __slots__ = ("twice", "unsafe")

    def __init__(self) -> None:
        self.twice: str | None = None
        self.unsafe: str | None = None

    def read(self, raw: bytes) -> None:
        """Parse a message; one that cannot be parsed has neither."""
        try:
            json.loads(raw.decode("utf-8", "replace"), object_pairs_hook=self._object, parse_int=self._integer)
        except UNREADABLE:
            return

    def _object(self, pairs: list[tuple[str, Any]]) -> None:
        names = dict.fromkeys(name for name, _ in pairs)
        if len(names) < len(pairs) and self.twice is None:
            seen: set[str] = set()
            self.twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # None

    def _integer(self, digits: str) -> int:
        is_long = len(digits) > _SAFE_DIGITS and self.unsafe is None
        if is_long and (len(digits) > _MAX_DIGITS or not _is_exact(abs(int(digits)))):
            self.unsafe = digits
        return 0


def _is_exact(number: int) -> bool:
    """Return whether a double holds this number: in 53 bits and a power of two that is not too large (IEEE 754)."""
    zeros = (number & -number).bit_length() - 1
    return number <= MAX_SAFE or (number.bit_length() - zeros <= _BITS and number.bit_length() <= _MAX_BITS)
