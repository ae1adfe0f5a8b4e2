"""The plain frame line of a capture, decoded straight into fields, for readers that make thousands of them a second.

It means the same as the `Frame` that `frame` returns. Only taps do without this module: they wait for no JSON library.
"""

from typing import Literal

import msgspec

from .records import Frame


class FrameLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A frame record with no rare members, whose bytes are UTF-8: 0.4 µs, where a dict and a record take 2.4 (CPython 3.11)."""

    number: int = msgspec.field(name="n")
    at_ns: int
    kind: Literal["frame"]
    stream: int
    crc: str
    text: str
    first_ns: int | None = None
    part: bool = False

    def frame(self) -> Frame:
        """Return the record."""
        first_ns = self.at_ns if self.first_ns is None else self.first_ns
        return Frame(self.stream, self.at_ns, first_ns, self.text.encode(), self.part, number=self.number)
