"""A finding on its way: made from its rule, with the time it is sorted by and the group it is counted in."""

from typing import NamedTuple

from ..finding import Finding, Severity
from ..model import Exchange, Message, UnpairedMessage
from .rule import Rule

QUOTE_LETTERS = 80


class Found(NamedTuple):
    """`group` is equal for findings of a rule that are counted as one; empty: each is one of its own."""

    at_ns: int
    finding: Finding
    group: str = ""


def found(
    rule: Rule,
    *,
    at_ns: int,
    capture: int,
    number: int,
    row: int | None,
    what: str,
    culprit: str,
    blame: str = "",
    advice: str = "",
    severity: Severity | None = None,
    group: str = "",
    count: int = 1,
) -> Found:
    """A finding of `rule`, which also gives the severity, the blame and the advice that are not given here."""
    finding = Finding(
        rule=rule.name,
        severity=severity or rule.severity,
        capture=capture,
        number=number,
        row=row,
        at_ns=at_ns,
        what=what,
        culprit=culprit,
        blame=blame or rule.blame,
        advice=advice or rule.fix,
        count=count,
    )
    return Found(at_ns, finding, group)


def found_in(
    rule: Rule,
    message: Message,
    row: int,
    what: str,
    *,
    culprit: str = "",
    blame: str = "",
    advice: str = "",
    severity: Severity | None = None,
    group: str = "",
    count: int = 1,
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
        blame=blame,
        advice=advice,
        severity=severity,
        group=group,
        count=count,
    )


def call(row: Exchange | UnpairedMessage) -> str:
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
