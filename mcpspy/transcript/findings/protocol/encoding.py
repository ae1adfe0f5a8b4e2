"""Findings about messages that can be read, but have a flaw: one rule for each name in `Message.flaws`."""

from collections.abc import Iterator
from typing import Final

from ...model import Kind, Message
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in

_CLEAN: Final = '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
_SENDER: Final = "The sender: mcpspy forwards bytes unchanged."


def _flaw(
    name: str,
    title: str,
    what: str,
    why: str,
    example: str,
    fix: str,
    *,
    family: Family = Family.TRANSPORT,
    severity: Severity = Severity.WARNING,
    blame: str = _SENDER,
    clean: str = _CLEAN,
) -> Rule:
    return Rule(
        name=name,
        title=title,
        family=family,
        severity=severity,
        what=what,
        why=why,
        blame=blame,
        example=example,
        fix=fix,
        clean=clean,
    )


_ANSWER: Final = '\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'

FLAWS: Final[dict[str, Rule]] = {
    "no-jsonrpc": _flaw(
        "no-jsonrpc",
        'Message without "jsonrpc": "2.0"',
        'A message has no "jsonrpc": "2.0".',
        "SDKs drop the message without an answer.",
        '→ {"id":1,"method":"tools/list"}' + _ANSWER,
        'Put "jsonrpc": "2.0" into every message.',
        family=Family.PROTOCOL,
    ),
    "jsonrpc-version": _flaw(
        "jsonrpc-version",
        'Wrong "jsonrpc" version',
        'The "jsonrpc" of a message is not the string "2.0".',
        "SDKs drop the message without an answer.",
        '→ {"jsonrpc":2.0,"id":1,"method":"tools/list"}' + _ANSWER,
        'Write "jsonrpc": "2.0", with a string, in every message.',
        family=Family.PROTOCOL,
    ),
    "null-id": _flaw(
        "null-id",
        "Null id",
        "The id of a request or a result is null.",
        "MCP does not allow a null id: an answer to it could belong to any request, and SDKs drop it.",
        '→ {"jsonrpc":"2.0","id":null,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":null,"result":{"tools":[]}}',
        "Give each request an id that is a string or an integer, and a notification no id.",
        family=Family.PROTOCOL,
    ),
    "fractional-id": _flaw(
        "fractional-id",
        "Fractional id",
        "The id of a message is a number with a fraction or an exponent.",
        "MCP allows only strings and integers, and a language that prints 1.0 as 1 does not recognise the answer.",
        '→ {"jsonrpc":"2.0","id":1.5,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1.5,"result":{"tools":[]}}',
        "Use a string or an integer as the id.",
        family=Family.PROTOCOL,
    ),
    "ambiguous": _flaw(
        "ambiguous-message",
        "Message of two kinds",
        "A message has members of two kinds, such as a method and a result, or a result and an error.",
        "Each receiver may read it as another kind of message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":null}',
        "Send only one of method, result and error, and leave out the others instead of sending null.",
        family=Family.PROTOCOL,
    ),
    "id-in-use": _flaw(
        "id-in-use",
        "Id already in use",
        "A request has the id of another request that is still unanswered.",
        "The two answers cannot be told apart, and one of the requests may wait forever.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":1,"method":"prompts/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}',
        "Give every request of a session its own id.",
        family=Family.PROTOCOL,
        severity=Severity.ERROR,
        blame="The requesting side: it chooses the ids, and this one was still in use.",
        clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":2,"method":"prompts/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}',
    ),
    "token-in-use": _flaw(
        "token-in-use",
        "Progress token already in use",
        "A request has the progress token of another request that is still unanswered.",
        "Progress cannot be attributed: it is shown for the wrong request, or keeps the wrong one from timing out.",
        '→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":1}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
        "Give every request its own progress token, for example its id.",
        family=Family.PROTOCOL,
        blame="The requesting side: it chooses the tokens, and this one was still in use.",
        clean='→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":2}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
    ),
    "bom": _flaw(
        "byte-order-mark",
        "Byte order mark",
        "A message begins with a byte order mark.",
        "JSON must not begin with one (RFC 8259, section 8.1), and many parsers reject the message.",
        '→ \\xef\\xbb\\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list"}' + _ANSWER,
        "Write UTF-8 without a byte order mark, in .NET with new UTF8Encoding(false).",
    ),
    "invalid-utf-8": _flaw(
        "invalid-utf-8",
        "Invalid UTF-8",
        "A message is not valid UTF-8.",
        "The receiver replaces what it cannot read, which damages the text, or drops the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"caf\\xe9"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        "Encode messages as UTF-8 whatever the system's code page is, in Python with PYTHONUTF8=1.",
    ),
    "nan": _flaw(
        "not-a-number",
        "NaN or infinity in JSON",
        "A message has NaN or an infinity as a number.",
        "JSON has no such numbers, so that JavaScript and strict parsers reject the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mean"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"mean":NaN}}}',
        "Send null or a string instead.",
    ),
    "lone-surrogate": _flaw(
        "lone-surrogate",
        "Half a surrogate pair",
        "A string has half of a surrogate pair.",
        "It encodes no character, so that strict parsers reject the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cut","arguments":{"text":"\\ud83d"}}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        "Cut strings only between characters.",
    ),
    "crlf": _flaw(
        "crlf",
        "Line ends in CR LF",
        "A line ends in CR LF.",
        "Most receivers accept it, but some keep the CR and then cannot parse the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\\r' + _ANSWER,
        "End lines with LF alone; on Windows, open stdout in binary mode or with newline='\\n'.",
        severity=Severity.INFO,
    ),
    "no-final-newline": _flaw(
        "no-final-newline",
        "No line feed at the end",
        "The last line of a stream is a complete message without a line feed.",
        "Some receivers drop it, because for them the message has not ended.",
        '← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…',
        "End every message with a line feed.",
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
        if name in _IN_USE and facts.is_shared(facts.capture.transaction_of(message.stream)):  # by another client
            continue
        article = "An" if message.kind is Kind.ERROR else "A"
        what = f"{article} {message.kind} has a flaw: {_WORDS[name]}."
        yield hit_in(rule, message, row, what, group=name)


_IN_USE: Final = {"id-in-use", "token-in-use"}

_WORDS: Final = {
    "no-jsonrpc": 'it has no "jsonrpc": "2.0"',
    "jsonrpc-version": 'its "jsonrpc" is not "2.0"',
    "null-id": "its id is null",
    "fractional-id": "its id is not an integer",
    "ambiguous": "it has members of two kinds of message",
    "id-in-use": "its id is that of an unanswered request",
    "token-in-use": "its progress token is that of an unanswered request",
    "bom": "it begins with a byte order mark",
    "invalid-utf-8": "it is not valid UTF-8",
    "nan": "it has NaN or an infinity as a number",
    "lone-surrogate": "a string has half of a surrogate pair",
    "crlf": "its line ends in CR LF",
    "no-final-newline": "its line is the last one and has no line feed",
}
