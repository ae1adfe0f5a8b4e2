"""A finding on its way: made from its rule, with the time it is sorted by and the group it is counted in."""

from typing import NamedTuple

from .model import Exchange, Finding, Message, Severity, Stray
from .rules import RULES

QUOTE_LETTERS = 80


class Found(NamedTuple):
    """`group` is equal for findings of a rule that are counted as one; empty: each is one of its own."""

    at_ns: int
    finding: Finding
    group: str = ""


def found(
    rule: str,
    *,
    at_ns: int,
    capture: int,
    number: int,
    row: int | None,
    what: str,
    culprit: str,
    advice: str = "",
    severity: Severity | None = None,
    group: str = "",
) -> Found:
    """A finding of `rule`, which also gives the severity and the advice that are not given here."""
    followed = RULES[rule]
    finding = Finding(
        rule=rule,
        severity=severity or followed.severity,
        capture=capture,
        number=number,
        row=row,
        what=what,
        culprit=culprit,
        advice=advice or followed.fix,
    )
    return Found(at_ns, finding, group)


def found_in(
    rule: str,
    message: Message,
    row: int,
    what: str,
    *,
    culprit: str = "",
    advice: str = "",
    severity: Severity | None = None,
    group: str = "",
) -> Found:
    """A finding of `rule` about a message; its sender is the culprit, if no other is named."""
    return found(
        rule,
        at_ns=message.at_ns,
        capture=message.capture,
        number=message.number,
        row=row,
        what=what,
        culprit=culprit or message.sender,
        advice=advice,
        severity=severity,
        group=group,
    )


def call(row: Exchange | Stray) -> str:
    """A call in a few words: `tools/call search`."""
    message = row.request if isinstance(row, Exchange) else row.message
    return f"{message.method or ''} {message.target or ''}".strip()


def quoted(raw: bytes) -> str:
    """Captured bytes in quotation marks, cut to what a sentence can hold; a view has to escape them."""
    text = raw[: 4 * QUOTE_LETTERS].decode("utf-8", "replace").strip()
    return f"“{text[:QUOTE_LETTERS]}…”" if len(text) > QUOTE_LETTERS else f"“{text}”"


def seconds(ns: int) -> str:
    """A time span in a sentence: `1.2 s`."""
    return f"{ns / 1_000_000_000:.1f} s"
