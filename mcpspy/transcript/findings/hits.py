"""Hits on records and on HTTP streams, which have no message to point at."""

from typing import Unpack

from ..http.transaction import Stream, Transaction
from .facts import CaptureFacts
from .rule import Hit, HitDetails, Rule, hit


def hit_on_record(
    rule: Rule, facts: CaptureFacts, at_ns: int, number: int, what: str, culprit: str, **details: Unpack[HitDetails]
) -> Hit:
    """Make a finding about a record with this number that belongs to no row; -1 where it is about all of the capture."""
    return hit(rule, at_ns=at_ns, capture=facts.capture.index, number=number, row=None, what=what, culprit=culprit, **details)


def hit_on_stream(
    rule: Rule,
    facts: CaptureFacts,
    transaction: Transaction,
    stream: Stream,
    what: str,
    culprit: str,
    *,
    at_ns: int | None = None,
    **details: Unpack[HitDetails],
) -> Hit:
    """Make a finding about the request or the response of a transaction; its time is the beginning of that stream, if not given."""
    return hit(
        rule, at_ns=stream.at_ns if at_ns is None else at_ns, capture=transaction.capture, number=stream.record,
        row=facts.row_of(transaction), what=what, culprit=culprit, **details,
    )  # fmt: skip


def hit_on_transaction(
    rule: Rule, facts: CaptureFacts, transaction: Transaction, what: str, culprit: str, **details: Unpack[HitDetails]
) -> Hit:
    """Make a finding about a transaction, at its response if there is one."""
    return hit_on_stream(rule, facts, transaction, transaction.streams[-1], what, culprit, **details)
