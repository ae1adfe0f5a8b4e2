"""Findings about texts: a tool's failure that is not marked, wrong letters, text that was cut or escaped twice, and null members.

Source: MCP specification, server/tools (errors of tools have `isError: true`) and schema (optional members are left out).
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ....lazy_pattern import lazy_pattern
from ....records import SERVER
from ...mcp.blocks import listed, member
from ...model import Exchange, Kind, Message
from ..facts import CaptureFacts
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name, quoted
from ..words import listed as joined
from .letter_rules import CALL, ESCAPED_TWICE, MISREAD_TEXT, TEXT

_STACK: Final = r"Traceback (most recent call last):\n  File \"a.py\", line 3, in open\nKeyError: 'x'"

_LIST: Final = '→ tools/list 1\n← result 1 {"tools":[{"name":"now","inputSchema":{"type":"object"}'

UNMARKED_FAILURE: Final = protocol_rule(
    name="unmarked-failure",
    title="Failure not marked as an error",
    severity=Severity.NOTE,
    what="A result without isError is the text of an exception with its stack, or is short and says that the call failed.",
    why="The client and the model take the call for a success.",
    blame="The server: it wrote the failure into a result. A tool that reads logs may do so on purpose.",
    example=CALL + TEXT.format(_STACK, ""),
    clean=CALL + TEXT.format(_STACK, ',"isError":true'),
    advice="Return isError: true when a tool fails, with a text that tells the model what to do next.",
)

NULL_MEMBER: Final = protocol_rule(
    name="null-member",
    title="null instead of an absent member",
    what="A list has null as the value of an optional member, which the specification leaves out instead.",
    why="Clients that validate strictly, as the TypeScript SDK's do, reject the whole list.",
    blame="The server: it wrote the list.",
    example=f'{_LIST},"outputSchema":null}}],"nextCursor":null}}',
    clean=f'{_LIST},"annotations":{{"default":null}}}}]}}',
    advice="Leave out what has no value: model_dump(exclude_none=True) in Python, undefined in JavaScript.",
)

TEXT_CUT: Final = protocol_rule(
    name="text-cut",
    title="Text cut in the middle",
    what="The text of a result is JSON that stops in the middle, without a word about it.",
    why="The model takes a part for the whole, and a program that parses the text fails.",
    blame="The server: the message is whole, and the text in it is not.",
    example=CALL + TEXT.format("[⟪1000,×300⟫1000", ""),
    clean=CALL + TEXT.format("[⟪1000,×300⟫1000]", ""),
    advice="Return the rest in pages, or as a resource; if a text has to be cut, say so at its end.",
)

RULES: Final = (UNMARKED_FAILURE, MISREAD_TEXT, NULL_MEMBER, TEXT_CUT, ESCAPED_TWICE)

_starts_with_exception = lazy_pattern(
    r"\s*(?:Error executing tool [^:]{1,80}: |Error: )?(?:Traceback \(most recent call last\):|[\w.$]*(?:Error|Exception)\b)"
)
_has_stack = lazy_pattern(r'\n\s+File "[^"\n]+", line \d+|\n\s+at \S.{0,300}:\d+')

_says_that_it_failed = lazy_pattern(
    r"(?:(?!No )[A-Z][A-Za-z]+ )?[Ee]rror(?:: (?=[A-Za-z\"'(\[<])| (?:\w+ing|while|in) )[^\n]{3,}|(?:Failed|Unable) to .+rror"
)
_begins_with_error = lazy_pattern(rb'"text" ?: ?"(?:(?:[A-Z][A-Za-z]+ )?[Ee]rror|Failed|Unable|\{(?:\\[nrt]|\s)*\\"error)')
_is_error_object = lazy_pattern(r'\{\s*"error"\s*:\s*"[^"\n]{5,}"\s*\}\s*\Z')
_may_be_about_errors = lazy_pattern(
    rb"error|fail|log|trace|exception|diagnos|explain|debug|read|search|grep|tail|show", re.IGNORECASE
)
"""A call with one of these in its name or its arguments may have asked for a text about a failure."""

_SHORT_BYTES: Final = 2_000
_SHORT_LETTERS: Final = 400

_LONG_BYTES: Final = 1_000
"""A text that is cut is long: a limit was reached."""
_HEAD_BYTES: Final = 200
_MAX_CUT_BYTES: Final = 4 << 20
_begins_json = lazy_pattern(rb'"text" ?: ?"(?:\\[nrt]|\s)*[\[{]')
_MAX_BYTES: Final = 100_000
_MAX_LETTERS: Final = 200
_ENCODINGS: Final = ("cp1252", "latin-1")

_wrong_letters = lazy_pattern(
    rb"\xc3[\x82-\xb4](?:\xc2[\x80-\xbf]|\xe2[\x80\x82\x84]|[\xc5\xc6\xcb])|\xef\xbf\xbd"
    rb"|\\u(?:00[c-f][0-9a-f]\\u(?:00[89ab]|20|21|01|02)|fffd)",
    re.IGNORECASE,
)
"""A letter from Â to ô before one that cp1252 or Latin-1 has for 80 to bf, or U+FFFD; as it is, or escaped."""
_escaped_again = lazy_pattern(rb'[\[{"]\s*\\\\\\"|\\"\{\\\\\\"|\\\\n|\\\\u[0-9a-fA-F]{4}')

MAX_SUSPECTS: Final = 2_000
"""So many messages of a capture are searched for wrong letters."""
_READING: Final = {"resources/read", "prompts/get"}

_LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_OPTIONAL: Final = (
    "title", "description", "outputSchema", "annotations", "icons", "execution", "arguments", "mimeType", "size", "_meta",
)  # fmt: skip
_MAX_NAMES: Final = 5


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find unmarked failures, cut texts and wrong letters in calls, and null in lists."""
    texts = _CallTexts(facts.exchanges)
    yield from texts.hits
    suspects = [*filter(_is_suspect, facts.listings), *texts.read, *texts.suspects]
    if suspects:
        from .misread import misread_texts  # few captures need it

        first = facts.first(suspects, MAX_SUSPECTS, (MISREAD_TEXT, ESCAPED_TWICE), "texts that seem wrong")
        yield from misread_texts(sorted(first, key=lambda exchange: exchange.at_ns))
    for listing in facts.listings:
        if listing.method in _LISTS and listing.response is not None and b"null" in listing.response.raw:
            yield from _nulls(listing)


class _CallTexts:
    """Findings about the texts of calls one by one, and the first exchanges whose texts seem wrong."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self.hits: list[Hit] = []
        self.suspects: list[Exchange] = []
        self.read: list[Exchange] = []
        """Suspects among what reads resources and prompts."""
        for exchange in exchanges:
            method = exchange.request.method
            if method == "tools/call":
                if exchange.response is not None:
                    self._call(exchange, exchange.response)
            elif method in _READING and len(self.read) <= MAX_SUSPECTS and _is_suspect(exchange):
                self.read.append(exchange)

    def _call(self, call: Exchange, response: Message) -> None:
        request, result = call.request.raw, response.raw
        if len(result) > _LONG_BYTES and response.kind is Kind.RESULT:
            self.hits += _cut(call)
        if len(result) > _MAX_BYTES or len(request) > _MAX_BYTES:
            return
        if (
            len(result) < _SHORT_BYTES
            and _begins_with_error.search(result)
            and not response.is_error
            and not _shows_stack(result)
        ):
            self.hits += _reported(call)
        is_plain = _is_plain(request)
        if is_plain and _is_plain(result):
            return  # as most are: such a text has neither lines nor letters that could be wrong
        if not response.is_error and _shows_stack(result) and response.kind is Kind.RESULT:
            self.hits += _unmarked(call)
        hits = [] if is_plain else list(_misread(call))
        self.hits += hits
        if not hits and len(self.suspects) <= MAX_SUSPECTS and _is_suspect(call):
            self.suspects.append(call)


def _is_suspect(exchange: Exchange) -> bool:
    """Return whether the bytes of a request or its result may hold wrong letters, or text that was escaped twice."""
    response = exchange.response
    raws = [exchange.request.raw] if response is None else [exchange.request.raw, response.raw]
    return any(len(raw) <= _MAX_BYTES and _seems_wrong(raw) for raw in raws)


def _is_plain(raw: bytes) -> bool:
    """Return whether a payload has neither escaped letters nor any beyond ASCII, which could be wrong."""
    return b"\\" not in raw and raw.isascii()


def _seems_wrong(raw: bytes) -> bool:
    return bool(_wrong_letters.search(raw)) or (b"\\\\" in raw and bool(_escaped_again.search(raw)))


def _shows_stack(result: bytes) -> bool:
    """Return whether a result may have the beginning of a stack, in JSON."""
    return b"Traceback (most" in result or (b"\\" in result and (b"\\n    at " in result or b"\\n\\tat " in result))


def _unmarked(call: Exchange) -> Iterator[Hit]:
    assert call.response is not None
    blocks = listed(call.response.result, "content")
    text = blocks[0].get("text") if blocks else None
    if isinstance(text, str) and _starts_with_exception.match(text) and _has_stack.search(text):
        line = quoted(text.strip().splitlines()[0])
        what = f"The result of {call_name(call)} is the text of an exception, and is not marked with isError: {line}."
        yield hit_in(UNMARKED_FAILURE, call.response, call.row, what, group=call.target or "")


def _reported(call: Exchange) -> Iterator[Hit]:
    """Find a short result that says of the call itself that it failed."""
    response = call.response
    if response is None or response.kind is not Kind.RESULT or _may_be_about_errors.search(call.request.raw):
        return
    blocks = listed(response.result, "content")
    text = blocks[0].get("text") if len(blocks) == 1 else None
    if not isinstance(text, str) or len(text) > _SHORT_LETTERS:
        return
    if _says_that_it_failed.match(text) or _is_error_object.match(text):
        line = quoted(" ".join(text.split()))
        what = f"The result of {call_name(call)} says that the call failed, and is not marked with isError: {line}."
        yield hit_in(UNMARKED_FAILURE, response, call.row, what, group="short")


def _cut(call: Exchange) -> Iterator[Hit]:
    """Find JSON that is well until its text is over."""
    response = call.response
    assert response is not None
    if len(response.raw) > _MAX_CUT_BYTES or not _begins_json.search(response.raw, 0, _HEAD_BYTES):
        return
    blocks = listed(response.result, "content")
    text = blocks[0].get("text") if len(blocks) == 1 else None
    if isinstance(text, str) and len(text) > _LONG_BYTES and _stops(text):
        what = f"The text in the result of {call_name(call)} is JSON that stops after {len(text):,} letters: “…{text[-40:]}”."
        yield hit_in(TEXT_CUT, response, call.row, what, group=call.target or "")


def _stops(text: str) -> bool:
    """Tell whether a parser could go on if only there was more text."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text.rstrip()) - 1 or (
            error.msg.startswith("Unterminated string") and "\n" not in text[error.pos :]
        )
    except RecursionError:
        return False
    return False


def _misread(call: Exchange) -> Iterator[Hit]:
    assert call.response is not None
    response = repr(call.response.body)
    for text in _strings(member(call.request.params, "arguments")):
        for wrong in _misreadings(text):
            if wrong in response and text not in response:
                as_read, as_sent = (quoted(words) for words in (wrong, text))
                what = f"{call_name(call)} was called with {as_sent}, and its response says {as_read}."
                yield hit_in(MISREAD_TEXT, call.response, call.row, what, culprit=SERVER, group=call.target or "")
                return


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value that have letters beyond ASCII."""
    if isinstance(value, str):
        if not value.isascii() and len(value) <= _MAX_LETTERS:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _misreadings(text: str) -> Iterator[str]:
    """Yield what a text becomes if its UTF-8 is decoded with another encoding."""
    for encoding in _ENCODINGS:
        try:
            yield text.encode("utf-8").decode(encoding)
        except UnicodeError:
            continue


def _nulls(listing: Exchange) -> Iterator[Hit]:
    assert listing.response is not None
    result = listing.response.result
    names = ["nextCursor"] if isinstance(result, dict) and "nextCursor" in result and result["nextCursor"] is None else []
    items = listed(result, _LISTS[listing.method])
    names += [name for name in _OPTIONAL if any(name in item and item[name] is None for item in items)]
    if names:
        what = f"The result of {listing.method} has null for {joined(names, _MAX_NAMES)}."
        yield hit_in(NULL_MEMBER, listing.response, listing.row, what, group=listing.method)
