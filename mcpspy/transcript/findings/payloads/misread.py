"""Findings about texts that were decoded with the wrong encoding, or escaped twice, at the first message that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....records import CLIENT, SERVER
from ...mcp.blocks import listed, member
from ...offers.drift import strings
from ..rule import AGENT, Hit, Severity, hit_in
from ..words import call_name, quoted
from .letter_rules import ESCAPED_TWICE, MISREAD_TEXT
from .letters import LOST, escaped, loss, misreading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...model import Exchange, Message

MAX_LETTERS = 50_000
"""So much of each text is looked at."""


def misread_texts(exchanges: Iterable[Exchange]) -> Iterator[Hit]:
    """Find such texts in the messages of these exchanges, which are in the order of time."""
    known: set[str] = set()
    for exchange in exchanges:
        request, response = exchange.request, exchange.response
        yield from _in_message(exchange, request, strings(member(request.params, "arguments")), known)
        if response is not None:
            yield from _in_message(exchange, response, strings(response.result), known)
            yield from _escaped(exchange, response, _texts(response.result), SERVER)
        yield from _escaped(exchange, request, [text for _, text in strings(member(request.params, "arguments"))], AGENT)


def _in_message(exchange: Exchange, message: Message, texts: Iterable[tuple[str, str]], known: set[str]) -> Iterator[Hit]:
    """Find the first text with wrong letters that no message before had."""
    for path, whole in texts:
        text = whole[:MAX_LETTERS]
        if text.isascii():
            continue
        wrong = misreading(text)
        if wrong is not None and wrong.wrong not in known:
            known.add(wrong.wrong)
            times = f", and {wrong.times - 1:,} more" if wrong.times > 1 else ""
            what = (
                f"{_place(exchange, message, path)} has {quoted(wrong.wrong.encode())} where {quoted(wrong.right.encode())} "
                f"is meant{times}."
            )
            yield _hit(exchange, message, what, wrong.times)
            return
        lost = loss(text) if LOST in text else None
        if lost is not None and lost.word not in known:
            known.add(lost.word)
            what = (
                f"{_place(exchange, message, path)} has U+FFFD in the place of {lost.times:,} "
                f"letter{'s' * (lost.times > 1)}: {quoted(lost.around.encode())}"
                f"{'; it seems to be binary data' if lost.is_binary else ''}."
            )
            yield _hit(exchange, message, what, lost.times)
            return


def _hit(exchange: Exchange, message: Message, what: str, count: int) -> Hit:
    is_sent = message.sender == CLIENT
    blame = (
        "The client: the letters are wrong in its request, and no message before had them."
        if is_sent
        else "The server: the letters are wrong in its response, and no message before had them. Its source may have them so."
    )
    advice = (
        f"Decode as UTF-8 {'what the model and the user write' if is_sent else 'files, databases and what other servers send'}."
    )
    severity = Severity.NOTE if is_sent or count == 1 else None
    group = f"{call_name(exchange)} {message.sender}"
    return hit_in(MISREAD_TEXT, message, exchange.row, what, blame=blame, advice=advice, severity=severity, group=group)


def _escaped(exchange: Exchange, message: Message, texts: Iterable[str], culprit: str) -> Iterator[Hit]:
    """Find the first text of a message that was escaped once too often."""
    for text in texts:
        wrong = escaped(text[:MAX_LETTERS]) if "\\" in text else ""
        if wrong:
            where = "An argument" if message is exchange.request else "A text in the result"
            what = f"{where} of {call_name(exchange)} has {wrong}: {quoted(text.encode('utf-8', 'replace'))}."
            blame = "" if culprit == SERVER else "The agent: the model behind the client wrote the argument so."
            yield hit_in(
                ESCAPED_TWICE, message, exchange.row, what, culprit=culprit, blame=blame,
                group=f"{call_name(exchange)} {culprit}",
            )  # fmt: skip
            return


def _place(exchange: Exchange, message: Message, path: str) -> str:
    if message is exchange.request:
        return f"The argument {path[1:].lstrip('.')[:80]} of {call_name(exchange)}"
    return f"The result of {call_name(exchange)}" + (f" at {path[:80]}" if exchange.method.endswith("/list") else "")


def _texts(result: Any) -> list[str]:
    """List the texts of content blocks."""
    return [text for block in listed(result, "content") if isinstance(text := block.get("text"), str)]
