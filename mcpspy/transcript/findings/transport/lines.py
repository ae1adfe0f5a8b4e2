"""Findings about lines that should be messages and are not: text on stdout, broken JSON, empty lines."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....wire.json_spans import members, string
from ....wire.lines import UNENDED
from ...log_lines import json_logger
from ...message import SEALED
from ...model import Message, UnpairedMessage
from ..facts import CaptureFacts
from ..rule import CONFIGURATION, Hit, Severity, Unchecked, hit_in, transport_rule
from ..words import call_name, quoted
from .broken_off import broken_off

STDOUT_NOISE: Final = transport_rule(
    name="stdout-noise",
    title="Text on stdout that is not a message",
    what="The server writes text to stdout that is not a JSON-RPC message.",
    why="On stdio, stdout is for messages only: some clients log such a line, others close the connection.",
    blame="The server: only it, or a program that it started, can write to its stdout.",
    example="← Weather server running on stdio",
    clean="! Weather server running on stdio",
    advice="Send logs, banners and debug output to stderr.",
)

MALFORMED_MESSAGE: Final = transport_rule(
    name="malformed-message",
    title="Unreadable message",
    severity=Severity.ERROR,
    what="A frame starts like a message but cannot be read: broken JSON, several values, or no method and no result.",
    why="SDKs drop such a frame, and the sender of a request in it waits forever for the response.",
    blame="The sender: mcpspy forwards bytes unchanged.",
    example='← {"jsonrpc":"2.0","id":1,"result":{"tools":[}}',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    advice="Send each message as one JSON object in one frame, which on stdio is one line.",
)

BLANK_LINE: Final = transport_rule(
    name="blank-line",
    title="Empty line between messages",
    severity=Severity.NOTE,
    what="An empty line comes between messages.",
    why="Readers skip it or log a parse error.",
    blame="The sender: mcpspy forwards bytes unchanged.",
    example='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n←',
    clean='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    advice="End each message with exactly one line feed.",
)

RULES: Final = (STDOUT_NOISE, MALFORMED_MESSAGE, BLANK_LINE)

NOISE: Final = (
    (lazy_pattern(rb"\[dotenv@"), "the banner of dotenv"),
    (lazy_pattern(rb"npm (warn|notice|error|info)|> \S+@\S+ |added \d+ packages", re.IGNORECASE), "npm"),
    (
        lazy_pattern(rb"(Installed|Resolved|Prepared|Audited) \d+ packages?|Requirement already|Collecting \S"),
        "a package installer",
    ),
    (lazy_pattern(rb"Debugger (listening|attached)|For help, see: https://nodejs"), "the debugger of Node.js"),
    (lazy_pattern(rb"Traceback \(most recent call last\)|  File \"|\s+at .+:\d+:\d+"), "a stack trace"),
    (lazy_pattern(rb"\W{0,3}(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b", re.IGNORECASE), "a logger"),
    (lazy_pattern(rb"\W{0,3}\d{4}-\d\d-\d\d[T ]"), "a logger"),
    (lazy_pattern(rb"HTTP/\d|(GET|POST) /"), "HTTP"),
    (lazy_pattern(rb".{0,80}\b(listening|running|started|starting|ready)\b", re.IGNORECASE), "a start-up message"),
)
"""Beginnings of lines that are not messages, and the usual source of such lines. The first that fits counts."""


_OF_LAUNCHERS: Final = ("npm", "a package installer")


_MAX_OPEN: Final = 100
"""So many requests without an answer are compared with an answer behind text."""

_message = lazy_pattern(rb"\{\s*\"(?:jsonrpc|id|method|result|error)\"\s*:")

_LIKE_MESSAGE: Final = lazy_pattern(rb"\{(?![\w.-]+[,|}])|\[\s*(?:[\[{\]]|$)")
"""Beginnings of messages and batches. A bracket before anything else is a logger's: `[2026-11-20 12:00:00]`, `[dotenv@17.2.0]`.
Words between braces are a program's usage: `{server,cli} Mode to run in`."""


_HEADERS_END: Final = 120
"""A line of headers ends with one, in so many bytes; a body without a line feed may come before it."""

_header = lazy_pattern(rb"Content-(?:Length: *\d+|Type: *\S+/.*)\s*$", re.IGNORECASE)
"""A header line of the Language Server Protocol, at the end of a line."""

_ONE_LINE_ADVICE: Final = (
    "Write each message as JSON on one line that ends with a line feed, without headers: use the stdio transport of an MCP SDK, "
    "not that of the Language Server Protocol."
)


def noise_source(line: bytes) -> str:
    """Guess the source of a line that is not a message."""
    return next((source for pattern, source in NOISE if pattern.match(line, 0, 300)), "a print to stdout")


def streams_with_headers(facts: CaptureFacts) -> set[int]:
    """Return the streams of stdio on which a sender frames its messages with Content-Length."""
    return {
        unpaired.message.stream
        for unpaired in facts.malformed
        if not facts.capture.transactions and _header.search(unpaired.message.raw[-_HEADERS_END:])
    }


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find lines, bodies and events that are not messages; those that the recording broke are nobody's fault."""
    _note_sealed(facts)
    if _is_explained(facts):
        return
    with_headers = streams_with_headers(facts)
    broken = {piece.arrived.number for piece in broken_off(facts)} if facts.malformed else set()
    for unpaired in facts.malformed:
        if unpaired.message.number in broken:
            continue  # the client left within it
        yield from _malformed(facts, unpaired, with_headers)


def _note_sealed(facts: CaptureFacts) -> None:
    """Note the bodies that were not decompressed."""
    reasons = (unpaired.message.reason for unpaired in facts.malformed)
    for reason, count in Counter(reason for reason in reasons if reason.startswith(SEALED)).items():
        from ....wire.encodings import PACKAGES

        bodies = f"{count:,} {'body is' if count == 1 else 'bodies are'}"
        package = PACKAGES.get(reason.removeprefix(SEALED).strip(), "a decoder")
        facts.limits[Unchecked(rules=(), reason=f"{bodies} {reason}, which needs pip install {package}")] = None


def _is_explained(facts: CaptureFacts) -> bool:
    """Return whether `server_exits` quotes the lines as the reason of the server's end."""
    if facts.exit is None or facts.last_lines:
        return False
    from .exit_causes import is_usage  # its patterns take time

    return is_usage(facts)


def _malformed(facts: CaptureFacts, unpaired: UnpairedMessage, with_headers: set[int]) -> Iterator[Hit]:
    message = unpaired.message
    if message.reason in ("not recorded", "cut short") or message.reason.startswith(SEALED) or "damaged" in message.flaws:
        return
    text = message.raw.strip()
    logger = json_logger(text) if message.sender == "server" and message.reason != "not JSON" else ""
    if message.stream in with_headers and (not text or _header.search(text[-_HEADERS_END:])):
        if text:
            what = f"The {message.sender} writes headers before messages, as the Language Server Protocol does: {quoted(text)}"
            yield hit_in(MALFORMED_MESSAGE, message, unpaired.row, what, advice=_ONE_LINE_ADVICE, group="headers")
    elif not text:
        yield hit_in(BLANK_LINE, message, unpaired.row, "An empty line came between messages.", group="blank")
    elif (
        message.sender == "server"
        and facts.stream_name(message.stream) in ("stdout", "")
        and (logger or not _LIKE_MESSAGE.match(text))
    ):
        yield _noise(facts, message, unpaired.row, text, logger or noise_source(text))
    else:
        yield _broken(facts, message, unpaired.row, text)


def _noise(facts: CaptureFacts, message: Message, row: int, text: bytes, source: str) -> Hit:
    what = f"A line on stdout is not a message; it looks like {source}: {quoted(text)}"
    if lost := _message_behind(facts, text):
        what += f" {lost} is behind it on the same line, where no client finds it."
        advice = "Send text to stderr, and end each line on stdout: what follows on the same line is lost with it."
        group = f"{source}, a message"
        return hit_in(STDOUT_NOISE, message, row, what, severity=Severity.ERROR, advice=advice, group=group)
    if source in _OF_LAUNCHERS:
        blame = f"The configuration of the server: {source} starts it or installs it, and writes to its stdout."
        advice = "Install the server first, and start its program itself in the entry; or silence the launcher (npm --silent)."
        return hit_in(STDOUT_NOISE, message, row, what, group=source, culprit=CONFIGURATION, blame=blame, advice=advice)
    return hit_in(STDOUT_NOISE, message, row, what, group=source)


def _message_behind(facts: CaptureFacts, text: bytes) -> str:
    """Name the message that ends a line of text; empty if none does."""
    begin = _message.search(text)
    fields = {} if begin is None else members(text[begin.start() :])
    if "method" in fields:
        return f"The message {string(fields['method'])}"
    if not {"result", "error"} & fields.keys():
        return ""
    open_requests = (*facts.unanswered, *facts.cancelled, *facts.waiting)[:_MAX_OPEN]
    id = bytes(fields.get("id", b"")).decode("utf-8", "replace")
    answered = next(
        (row for row in open_requests if row.response is None and row.sender == CLIENT and row.request.id == id), None
    )
    return "An answer" if answered is None else f"The answer to {call_name(answered)} (row {answered.row})"


_event = lazy_pattern(rb"(?:event|data|id|retry)?:")


def _wrong_body(text: bytes) -> tuple[str, str] | None:
    """Say what a body of application/json is instead, and what to do; None where nothing tells."""
    if _event.match(text):
        return "it is a stream of events, and its Content-Type says JSON", "Send events with Content-Type: text/event-stream."
    if text.startswith(b"\x1f\x8b"):
        return "it is compressed with gzip, and its head does not say so", "Send Content-Encoding: gzip, or do not compress."
    if text[:1] == b"<":
        return "it is HTML or XML, and its Content-Type says JSON", "Find out what answers there: the MCP server sends JSON."
    return None


def _is_utf_16(text: bytes) -> bool:
    """Tell whether JSON is written in UTF-16: with its mark, or with a zero byte beside each of its first letters."""
    return text[:2] in (b"\xff\xfe", b"\xfe\xff") or (text[1:8:2] == b"\0\0\0\0" and text[:1] in b"{[")


def _broken(facts: CaptureFacts, message: Message, row: int, text: bytes) -> Hit:
    is_http = bool(facts.capture.transactions)
    if text in (b"{", b"["):
        advice = f"Send each message {'in one frame' if is_http else 'on one line'}: this looks like pretty-printed JSON."
        return hit_in(MALFORMED_MESSAGE, message, row, f"A frame holds only {quoted(text)}.", advice=advice, group="pretty")
    if is_http and (told := _wrong_body(text)):
        what, advice = told
        return hit_in(
            MALFORMED_MESSAGE, message, row, f"A body cannot be read: {what}: {quoted(text)}", advice=advice, group=what
        )
    ending = ", and the stream ended within it" if UNENDED in message.flaws else ""
    if _is_utf_16(text):
        what = f"A message cannot be read: it is encoded as UTF-16: {quoted(text)}"
        return hit_in(MALFORMED_MESSAGE, message, row, what, advice="Write JSON in UTF-8, without a mark.", group="utf-16")
    what = f"A message cannot be read ({message.reason}{ending}): {quoted(text)}"
    if is_http:
        advice = "Send each message as one JSON object: as a body, or as the data of an event."
    else:
        advice = "Send each message as one JSON object on one line."
    return hit_in(MALFORMED_MESSAGE, message, row, what, advice=advice, group=f"{message.reason}{ending}")
