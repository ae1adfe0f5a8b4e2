"""Findings about messages that can be read, but have a flaw: one rule for each name in `Message.flaws`."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from ....records import SERVER
from ....wire.lines import UNENDED
from ...model import Kind, Message
from ..facts import CaptureFacts
from ..rule import HANDSHAKE, Hit, Rule, Severity, hit_in, protocol_rule, transport_rule
from ..words import quoted, seconds

_CLEAN: Final = '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
_protocol_flaw = partial(protocol_rule, blame="The sender: mcpspy forwards bytes unchanged.", clean=_CLEAN)
_transport_flaw = partial(transport_rule, blame="The sender: mcpspy forwards bytes unchanged.", clean=_CLEAN)
_ANSWER: Final = '\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'

FLAWS: Final[dict[str, Rule]] = {
    "no-jsonrpc": _protocol_flaw(
        name="no-jsonrpc",
        title='Message without "jsonrpc": "2.0"',
        what='A message has no "jsonrpc": "2.0".',
        why="SDKs drop the message without a response.",
        example='→ {"id":1,"method":"tools/list"}' + _ANSWER,
        advice='Put "jsonrpc": "2.0" into every message.',
    ),
    "jsonrpc-version": _protocol_flaw(
        name="jsonrpc-version",
        title='Wrong "jsonrpc" version',
        what='The "jsonrpc" of a message is not the string "2.0".',
        why="SDKs drop the message without a response.",
        example='→ {"jsonrpc":2.0,"id":1,"method":"tools/list"}' + _ANSWER,
        advice='Write "jsonrpc": "2.0", with a string, in every message.',
    ),
    "null-id": _protocol_flaw(
        name="null-id",
        title="Null id",
        what="The id of a request or a result is null.",
        why="MCP does not allow a null id: a response to it could belong to any request, and SDKs drop it.",
        example='→ {"jsonrpc":"2.0","id":null,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":null,"result":{"tools":[]}}',
        advice="Give each request an id that is a string or an integer, and a notification no id.",
    ),
    "fractional-id": _protocol_flaw(
        name="fractional-id",
        title="Fractional id",
        what="The id of a message is a number with a fraction or an exponent.",
        why="MCP allows only strings and integers, and a language that prints 1.0 as 1 does not recognise the response.",
        example='→ {"jsonrpc":"2.0","id":1.5,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1.5,"result":{"tools":[]}}',
        advice="Use a string or an integer as the id.",
    ),
    "ambiguous": _protocol_flaw(
        name="ambiguous-message",
        title="Message of two kinds",
        what="A message has members of two kinds, such as a method and a result, or a result and an error.",
        why="Each receiver may read it as another kind of message.",
        example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":null}',
        advice="Send only one of method, result and error, and leave out the others instead of sending null.",
    ),
    "id-in-use": _protocol_flaw(
        name="id-in-use",
        title="Id already in use",
        what="A request has the id of another request that is still unanswered.",
        why="The two responses cannot be told apart, and one of the requests may wait forever.",
        example=HANDSHAKE
        + '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
        advice="Give every request of a session its own id.",
        severity=Severity.ERROR,
        blame="The requesting side: it chooses the ids, and this one was still in use.",
        clean=HANDSHAKE + '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}',
    ),
    "token-in-use": _protocol_flaw(
        name="token-in-use",
        title="Progress token already in use",
        what="A request has the progress token of another request that is still unanswered.",
        why="Progress cannot be attributed: it is shown for the wrong request, or keeps the wrong one from timing out.",
        example=HANDSHAKE
        + '→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":1}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
        advice="Give every request its own progress token, for example its id.",
        blame="The requesting side: it chooses the tokens, and this one was still in use.",
        clean=HANDSHAKE
        + '→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":2}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
    ),
    "bom": _transport_flaw(
        name="byte-order-mark",
        title="Byte order mark",
        what="A message begins with a byte order mark.",
        why="JSON must not begin with one (RFC 8259, section 8.1), and many parsers reject the message.",
        example='→ \\xef\\xbb\\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list"}' + _ANSWER,
        advice="Write UTF-8 without a byte order mark, in .NET with new UTF8Encoding(false).",
    ),
    "invalid-utf-8": _transport_flaw(
        name="invalid-utf-8",
        title="Invalid UTF-8",
        what="A message is not valid UTF-8.",
        why="The receiver replaces what it cannot read, which damages the text, or drops the message.",
        example='→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"caf\\xe9"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        advice="Encode messages as UTF-8 whatever the system's code page is, in Python with PYTHONUTF8=1.",
    ),
    "nan": _transport_flaw(
        name="not-a-number",
        title="NaN or infinity in JSON",
        what="A message has NaN or an infinity as a number.",
        why="JSON has no such numbers, so that JavaScript and strict parsers reject the message.",
        example='→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mean"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"mean":NaN}}}',
        advice="Send null or a string instead.",
    ),
    "lone-surrogate": _transport_flaw(
        name="lone-surrogate",
        title="Half a surrogate pair",
        what="A string has half of a surrogate pair.",
        why="It encodes no character, so that strict parsers reject the message.",
        example='→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cut","arguments":{"text":"\\ud83d"}}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        advice="Cut strings only between characters.",
    ),
    "crlf": _transport_flaw(
        name="crlf",
        title="Line ends in CR LF",
        what="A line ends in CR LF.",
        why="Most receivers accept it, but some keep the CR and then cannot parse the message.",
        example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\\r' + _ANSWER,
        advice="End lines with LF alone; on Windows, open stdout in binary mode or with newline='\\n'.",
        severity=Severity.NOTE,
    ),
    "no-final-newline": _transport_flaw(
        name="no-final-newline",
        title="No line feed at the end",
        what="The last line of a stream is a complete message without a line feed.",
        why="Some receivers drop it, because for them the message has not ended.",
        example='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…',
        advice="End every message with a line feed.",
        clean='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    ),
}
"""Rules by the names in `Message.flaws`."""

RULES: Final = tuple(FLAWS.values())


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find messages with flaws, in the order of time."""
    for row, message in sorted(facts.flawed, key=lambda flawed: flawed[1].at_ns):
        yield from _flawed(facts, row, message)


def _flawed(facts: CaptureFacts, row: int, message: Message) -> Iterator[Hit]:
    for name in message.flaws:
        rule = FLAWS.get(name)
        if rule is None or (name == "null-id" and message.kind is Kind.ERROR):  # the id such an error has to have
            continue
        if name == UNENDED and _is_half_line(facts, message):  # `stalls` says so
            continue
        if name in _IN_USE and facts.is_shared(facts.capture.transaction_of(message.stream)):  # by another client
            continue
        if name == "id-in-use" and facts.http and _is_copy(facts, row):
            continue
        article = "An" if message.kind is Kind.ERROR else "A"
        what = f"{article} {message.kind} {FLAW_WORDS[name]}."
        if name == "invalid-utf-8":
            what = f"{article} {message.kind} is not valid UTF-8{_wrong_bytes(facts, message)}"
        yield hit_in(rule, message, row, what, group=name)


def _wrong_bytes(facts: CaptureFacts, message: Message) -> str:
    """Quote the text around the first byte that is not UTF-8, as Windows reads it, and say that the client left soon after."""
    try:
        message.raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at, text = error.start, message.raw[max(error.start - _AROUND, 0) : error.start + _AROUND].decode("cp1252", "replace")
        words = f": it has the byte 0x{message.raw[at]:02X} in {quoted(text)} (read as Windows-1252)."
    else:
        return "."
    left_ns = facts.left_ns
    if message.sender != SERVER or left_ns is None or not 0 <= left_ns - message.at_ns < _SOON_NS:
        return words
    return f"{words} The client left {seconds(max(left_ns - message.at_ns, 1_000_000))} later."


def _is_copy(facts: CaptureFacts, row: int) -> bool:
    """Tell whether a gateway made a request again; `copies` says so."""
    from ..transport.copies import copies  # hardly any capture has requests to look for

    return row in copies(facts)


def _is_half_line(facts: CaptureFacts, message: Message) -> bool:
    """Tell whether the recording noted while it went on that a message had no line feed."""
    shift_ns = facts.capture.shift_ns
    return any(
        partial.stream == message.stream and partial.first_ns + shift_ns == message.first_ns for _, partial in facts.partials
    )


_AROUND: Final = 20
_SOON_NS: Final = 1_000_000_000
_IN_USE: Final = {"id-in-use", "token-in-use"}

FLAW_WORDS: Final = {
    "no-jsonrpc": 'has no "jsonrpc": "2.0"',
    "jsonrpc-version": 'has another "jsonrpc" than "2.0"',
    "null-id": "has the id null",
    "fractional-id": "has an id that is no integer",
    "ambiguous": "has members of two kinds of message",
    "id-in-use": "has the id of an unanswered request",
    "token-in-use": "has the progress token of an unanswered request",
    "bom": "begins with a byte order mark",
    "invalid-utf-8": "is not valid UTF-8",
    "nan": "has NaN or an infinity as a number",
    "lone-surrogate": "has half of a surrogate pair",
    "crlf": "ends in CR LF",
    "no-final-newline": "is the last line and has no line feed",
}
"""The words after `a result`, for its finding and for the reason why nobody read an answer."""

READ_ALL_THE_SAME: Final = frozenset({"null-id", "id-in-use", "token-in-use", "crlf"})
"""Flaws for which a strict reader does not drop an answer."""
