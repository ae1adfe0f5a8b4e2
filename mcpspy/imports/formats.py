"""Formats that can be imported: which one a file has, told by its first bytes, and what reads it.

Of kinds of files that mcpspy does not read, it says what to save instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from .har import HarImporter, is_har
from .http_streams import StreamMakerClass
from .log_messages import PRINTED, messages_in
from .logs import LogImporter, is_of_desktop
from .mcphawk import HawkImporter, is_mcphawk
from .mcpsnoop import SnoopImporter, is_mcpsnoop
from .packets import MAGICS
from .pcap import PacketImporter
from .source import SessionRecord, Source

HEAD_BYTES: Final = 1 << 20
"""A format is told by so many bytes at the beginning of a file."""

_RECOGNIZED_BY_BYTES: Final = 4096

_MAX_SAID_LETTERS: Final = 400

_PACKETS: Final = "save the packets as pcapng instead: editcap OLD new.pcapng, or “Save as” in Wireshark"
_RUN: Final = "record the server with mcpspy run, or over HTTP with mcpspy proxy"
_RECORD: Final = "record the server with mcpspy proxy, or save a HAR"
_UNPACK: Final = "unpack it: {} FILE | mcpspy show -"
_FOLLOWED: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:={20,}\r?\nFollow: |peers:\s+- peer: 0|# Packet \d+\s+peer[01]_"
    rb"|0{8}  (?:47 45 54|50 4f 53 54|44 45 4c|48 54 54 50) "
    rb"|HTTP/1\.[01] \d{3}|(?:GET|POST|DELETE|OPTIONS|HEAD|PUT) [!-~]{1,4000} HTTP/1\.[01]\r?\n)"
)
"""The beginning of HTTP as text, as Wireshark and tshark write a stream that they follow. Its lines may look like those of a log."""

_KINDS: Final = (
    (_FOLLOWED, "HTTP as text, such as a followed stream", "import the packet capture itself, or save a HAR"),
    (rb"\x1f\x8b", "a file that gzip packed", _UNPACK.format("gunzip -c")),
    (rb"BZh\d", "a file that bzip2 packed", _UNPACK.format("bunzip2 -c")),
    (rb"\xfd7zXZ\0", "a file that xz packed", _UNPACK.format("xz -dc")),
    (rb"\x28\xb5\x2f\xfd", "a file that zstd packed", _UNPACK.format("zstd -dc")),
    (rb"PK\x03\x04", "a zip file", "unpack it: unzip -p FILE NAME | mcpspy show -"),
    (rb"(?s)\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){4}|(?:\0[\t\n\r -~]){4}", "text in UTF-16",
     "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE | mcpspy show -"),
    (rb"\d{1,12}:\d{1,12}:[a-z_]+;", "a flow of mitmproxy", "save it as a HAR: mitmdump -nr FILE --set hardump=flow.har"),
    (rb"(?:---\s+)?(?:version: \d+\s+)?(?:http_)?interactions:\s+- ", "a cassette", _RECORD),
    (rb'\{(?:\s*"version":\s*\d+,)?\s*"(?:http_)?interactions":\s*\[', "a cassette", _RECORD),
    (rb"(?s)<\?xml.{0,2000}?<pdml\b", "packets that were dissected as PDML", _PACKETS),
    (rb"(?s)<\?xml.{0,2000}?<psml\b", "packets that were dissected as PSML", _PACKETS),
    (rb"(?s)<\?xml.{0,2000}?<items burpVersion", "an export of Burp", "save a HAR instead"),
    (rb'(?:\[\s*)?\{\s*(?:"index":\s*\{\s*)?"_index":\s*"packets-', "packets that tshark dissected as JSON", _PACKETS),
    (rb"snoop\0", "a packet capture of snoop", _PACKETS),
    (rb"SQLite format 3\0", "an SQLite database that is not one of MCPHawk 1", "export a log or a HAR of the program that made it"),
    (rb"(?i)<!doctype html|<html", "an HTML page", "save the log itself as text, without the page around it"),
    (rb"\x89PNG|\xff\xd8\xff", "a picture, PNG or JPEG", "copy the text, or the file that it shows"),
    (rb"\x7fELF", "a program or a core dump (ELF)", _RUN),
)  # fmt: skip

_SPREAD: Final = re.compile(
    rb"""^[ \t]*(?:"?jsonrpc"?[ \t]*:[ \t]*["']2\.0["']|"?method"?[ \t]*:[ \t]*["'](?:initialize|(?:tools|notifications)/\w+)["'])"""
    rb"[ \t]*,?[ \t\r]*$",
    re.MULTILINE,
)

_WITHOUT_MESSAGES: Final = (
    (rb"\bmcp\.server\.lowlevel\.server\b|\bProcessing request of type \w+Request\b|\bReceived message: root=\w+Notification\(",
     "the Python SDK, which logs no messages on stdio"),
    (rb"\[(?:info|error)\] \S{1,80}: (?:Handling \w+ action|Client error for command )", "Cursor, which logs no messages"),
    (rb'(?m)^\{"(?:debug|error)":".{0,4000}"sessionId":"', "Claude Code, which logs no messages"),
)  # fmt: skip


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
    if head.startswith(b'{"mcpspy"') or b"\0" in head[:4096] or _FOLLOWED.match(head):
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


def unreadable(head: bytes) -> str:
    """Say what a file is that begins with these bytes and is in no format that mcpspy reads; empty if nothing tells."""
    begin = head[:_RECOGNIZED_BY_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    for pattern, title, instead in _KINDS:
        if re.match(pattern, begin):
            return f"this is {title}, which mcpspy does not read; {instead}"
    if _SPREAD.search(head):
        instead = "jq -c . FILE | mcpspy show -" if re.match(rb'[\[{]\s*["{]', begin) else f"let the program do so, or {_RUN}"
        return f"its JSON-RPC messages are spread over several lines; write each on one line, as JSON: {instead}"
    if PRINTED.search(head.decode("utf-8", "replace")):
        return f"its JSON-RPC messages are printed as objects, which leaves out parts; log them as JSON, or {_RUN}"
    for pattern, program in _WITHOUT_MESSAGES:
        if re.search(pattern, head):
            return f"this is a log of {program}; {_RUN}"
    return ""


def without_messages(head: bytes) -> str:
    """Say of the head of a log of Claude Desktop that no message is in it yet; empty if Claude Desktop did not write it."""
    said = [line.strip() for line in head.decode("utf-8", "replace").split("\n") if is_of_desktop(line)]
    if not said:
        return ""
    return (
        "this is a log of Claude Desktop without a message to or from the server; "
        f"its last line: {said[-1].partition('{')[0][:_MAX_SAID_LETTERS].rstrip(' .:')}"
    )
