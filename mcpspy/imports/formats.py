"""Formats that can be imported: which one a file has, told by its first bytes, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from .har import HarImporter, is_har
from .http_streams import StreamMakerClass
from .log_messages import messages_in
from .logs import LogImporter
from .mcphawk import HawkImporter, is_mcphawk
from .mcpsnoop import SnoopImporter, is_mcpsnoop
from .packets import MAGICS
from .pcap import PacketImporter
from .source import SessionRecord, Source
from .unreadable import FOLLOWED

HEAD_BYTES: Final = 1 << 20
"""A format is told by so many bytes at the beginning of a file."""


class Importer(Protocol):
    """A reader of one file: bytes in, records out, each after the number of its session."""

    def feed(self, data: bytes) -> list[SessionRecord]: ...

    def close(self) -> list[SessionRecord]: ...

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read."""


class ImportFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format. `matches` says whether a file that begins with these bytes has it."""

    name: str
    title: str
    matches: Callable[[bytes], bool]
    importer: Callable[[Source, StreamMakerClass], Importer]
    """Its second argument is the taps' recorder of HTTP streams."""
    grows: bool = False
    """True if the file may be read while it is written."""


def _is_log(head: bytes) -> bool:
    if head.startswith(b'{"mcpspy"') or b"\0" in head[:4096] or FOLLOWED.match(head):
        return False
    if b"jsonrpc" not in head and b"JSONRPC" not in head and b'"method' not in head:
        return False
    lines = head.split(b"\n")
    if any(b'"min_reader"' in line[:4096] for line in lines[:1]):
        return False
    for line in lines:
        messages = messages_in(line.decode("utf-8", "replace")) if b"{" in line or b"JSONRPC" in line else []
        if any(message.value is not None for message in messages):
            return True
    return False


def _is_pcap(head: bytes) -> bool:
    return head.startswith(MAGICS)


FORMATS: Final = (
    ImportFormat(name="pcap", title="a packet capture", matches=_is_pcap, importer=PacketImporter),
    ImportFormat(name="har", title="a HAR", matches=is_har, importer=lambda source, _: HarImporter(source)),
    ImportFormat(
        name="mcpsnoop",
        title="a log of mcpsnoop",
        matches=is_mcpsnoop,
        importer=lambda source, _: SnoopImporter(source),
        grows=True,
    ),
    ImportFormat(
        name="mcphawk", title="a database of MCPHawk", matches=is_mcphawk, importer=lambda source, _: HawkImporter(source)
    ),
    ImportFormat(
        name="log",
        title="a log with JSON-RPC messages in its lines",
        matches=_is_log,
        importer=lambda source, _: LogImporter(source),
        grows=True,
    ),
)
"""In the order in which they are tried."""


def recognized(head: bytes) -> ImportFormat | None:
    """Return the format of a file that begins with these bytes; None if it has none of these."""
    return next((candidate for candidate in FORMATS if candidate.matches(head)), None)
