"""The findings of a check of a whole capture, in a file beside it that has the form of an index with one section.

It is of the same capture and the same code as an index is, or it is none.
"""

from __future__ import annotations

from binascii import crc32
from typing import Final, NamedTuple

import msgspec

from ..transcript.findings.rule import Finding, Unchecked
from .file import Identity, IndexWriter, identity, open_index

EXTENSION: Final = ".check"
"""The end of its name, after that of an index: what removes indexes removes it too."""

_SECTION: Final = "findings"


class _Entry(msgspec.Struct, array_like=True):
    findings: list[Finding]
    unchecked: list[Unchecked]


class Checked(NamedTuple):
    """The findings of a check, the limits that it reached, and a word for both: equal words are of equal findings."""

    findings: list[Finding]
    unchecked: list[Unchecked]
    word: str


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Entry)


def write_checked(path: str, of: Identity, version: str, findings: list[Finding], unchecked: list[Unchecked]) -> bool:
    """Write what a check of the capture at `path` found, which was `of` this identity before. Return whether there is a file now."""
    try:
        data = _encode(_Entry(findings, unchecked))  # no text has half a character
        with IndexWriter(path, EXTENSION) as writer:
            writer.section(_SECTION, data)
            is_same = identity(path) == of
            if is_same:
                writer.finish(of, version)
    except (OSError, ValueError):
        return False
    return is_same


def read_checked(path: str, of: Identity, version: str) -> Checked | None:
    """Return what a check of the capture at `path` found, if the capture and the code are still the same; else None."""
    index = open_index(path, of, version, EXTENSION)
    if index is None:
        return None
    try:
        data = index.section(_SECTION)
        entry = _decoder.decode(data)
    except (ValueError, RecursionError):  # also what msgspec raises
        return None
    return Checked(entry.findings, entry.unchecked, f"{crc32(data):08x}")
