"""Findings about messages that can be read, but are not as they should be: for each flaw of a message a rule."""

from collections.abc import Iterator
from typing import Final

from ...model import Kind, Message
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in

_CLEAN: Final = '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
_SENDER: Final = "Whoever sent it: mcpspy passes bytes on as they are."


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
        'A message without "jsonrpc": "2.0".',
        "SDKs drop it without an answer.",
        '→ {"id":1,"method":"tools/list"}' + _ANSWER,
        'Put "jsonrpc": "2.0" in every message.',
        family=Family.PROTOCOL,
    ),
    "jsonrpc-version": _flaw(
        "jsonrpc-version",
        'Wrong "jsonrpc" version',
        'A message in which "jsonrpc" is not the string "2.0".',
        "SDKs drop it without an answer.",
        '→ {"jsonrpc":2.0,"id":1,"method":"tools/list"}' + _ANSWER,
        'Write "jsonrpc": "2.0", a string, in every message.',
        family=Family.PROTOCOL,
    ),
    "null-id": _flaw(
        "null-id",
        "Null id",
        "A request or a result whose id is null.",
        "MCP allows no such id: an answer to it could belong to any request, and SDKs drop it.",
        '→ {"jsonrpc":"2.0","id":null,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":null,"result":{"tools":[]}}',
        "Give a request an id that is a string or an integer, a notification none.",
        family=Family.PROTOCOL,
    ),
    "fractional-id": _flaw(
        "fractional-id",
        "Fractional id",
        "A message whose id is a number with a fraction or an exponent.",
        "MCP allows strings and integers. Languages print 1.0 as 1, and the answer is not recognised.",
        '→ {"jsonrpc":"2.0","id":1.5,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1.5,"result":{"tools":[]}}',
        "Use strings or integers.",
        family=Family.PROTOCOL,
    ),
    "ambiguous": _flaw(
        "ambiguous-message",
        "Message of two kinds",
        "A message with members of two kinds: a method and a result, a result and an error.",
        "Each reader takes it for something else.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":null}',
        "Send either method, or result, or error; leave out the others instead of sending null.",
        family=Family.PROTOCOL,
    ),
    "id-in-use": _flaw(
        "id-in-use",
        "Id already in use",
        "A request with the id of one that still waits for its answer.",
        "The answers cannot be told apart, and one of the two requests may wait forever.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":1,"method":"prompts/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}',
        "Give every request of a session an id of its own.",
        family=Family.PROTOCOL,
        severity=Severity.ERROR,
        blame="Whoever asked: ids are given by the side that asks, and this one was in use.",
        clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n→ {"jsonrpc":"2.0","id":2,"method":"prompts/list"}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n← {"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}',
    ),
    "token-in-use": _flaw(
        "token-in-use",
        "Progress token already in use",
        "A request with the progress token of one that still waits for its answer.",
        "Progress cannot be told apart: it is shown with the wrong request, or keeps the wrong one from timing out.",
        '→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":1}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
        "Give every request a token of its own; its id will do.",
        family=Family.PROTOCOL,
        blame="Whoever asked: tokens are given by the side that asks, and this one was in use.",
        clean='→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n→ tools/call 2 {"name":"b","_meta":{"progressToken":2}}\n'
        '← result 1 {"content":[]}\n← result 2 {"content":[]}',
    ),
    "bom": _flaw(
        "byte-order-mark",
        "Byte order mark",
        "A message that begins with a byte order mark.",
        "JSON must not begin with one (RFC 8259, section 8.1); many readers refuse the message.",
        '→ \\xef\\xbb\\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list"}' + _ANSWER,
        "Write UTF-8 without a byte order mark: in .NET new UTF8Encoding(false).",
    ),
    "invalid-utf-8": _flaw(
        "invalid-utf-8",
        "Invalid UTF-8",
        "A message that is not valid UTF-8.",
        "SDKs put a replacement character in the place of what they cannot read: text arrives damaged, or the message is dropped.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"caf\\xe9"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        "Encode messages as UTF-8, whatever the system's code page is: in Python PYTHONUTF8=1.",
    ),
    "nan": _flaw(
        "not-a-number",
        "NaN or infinity in JSON",
        "A message in which NaN or an infinity stands for a number.",
        "JSON has no such numbers; JavaScript and strict readers drop the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mean"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"mean":NaN}}}',
        "Send null or a string.",
    ),
    "lone-surrogate": _flaw(
        "lone-surrogate",
        "Half a surrogate pair",
        "A string with half of a surrogate pair.",
        "It stands for no character; strict readers drop the message.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cut","arguments":{"text":"\\ud83d"}}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
        "Do not cut strings within a character.",
    ),
    "crlf": _flaw(
        "crlf",
        "Line ends in CR LF",
        "A line that ends in CR LF.",
        "Most readers take it, some keep the CR: then the message is no JSON to them, or ids and names end in it.",
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\\r' + _ANSWER,
        "End lines with LF alone; on Windows open stdout in binary mode or with newline='\\n'.",
        severity=Severity.INFO,
    ),
    "no-final-newline": _flaw(
        "no-final-newline",
        "No line feed at the end",
        "The last line of a stream, a whole message, has no line feed.",
        "Some readers drop it: to them it has not come to its end.",
        '← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…',
        "End every message with a line feed.",
        clean='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    ),
}
"""The rule for each flaw that `Message.flaws` may name."""

RULES: Final = tuple(FLAWS.values())


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Messages with flaws, by time."""
    for row, message in sorted(facts.flawed, key=lambda one: one[1].at_ns):
        yield from _flawed(facts, row, message)


def _flawed(facts: CaptureFacts, row: int, message: Message) -> Iterator[Hit]:
    for name in message.flaws:
        rule = FLAWS.get(name)
        if rule is None or (name == "null-id" and message.kind is Kind.ERROR):  # the id such an error has to have
            continue
        if name in _IN_USE and facts.is_shared(facts.capture.transaction_of(message.stream)):  # by another client
            continue
        article = "An" if message.kind is Kind.ERROR else "A"
        what = f"{article} {message.kind} is not as it should be: {_WORDS[name]}."
        yield hit_in(rule, message, row, what, group=name)


_IN_USE: Final = {"id-in-use", "token-in-use"}

_WORDS: Final = {
    "no-jsonrpc": 'it has no "jsonrpc": "2.0"',
    "jsonrpc-version": 'its "jsonrpc" is not "2.0"',
    "null-id": "its id is null",
    "fractional-id": "its id is no integer",
    "ambiguous": "it has members of two kinds of messages",
    "id-in-use": "its id is that of a request that waits for its answer",
    "token-in-use": "its progress token is that of a request that waits for its answer",
    "bom": "it begins with a byte order mark",
    "invalid-utf-8": "it is not valid UTF-8",
    "nan": "NaN or an infinity stands for a number",
    "lone-surrogate": "a string has half of a surrogate pair",
    "crlf": "its line ends in CR LF",
    "no-final-newline": "its line, the last one, has no line feed",
}
