"""Correlated values of two recorded sessions: the later one is given the values of the earlier one, so that both can be compared.

    before   5  open  → {"ticket": "b5d729fbfa7d"}       6  write {"ticket": "b5d729fbfa7d"}
    after    5  open  → {"ticket": "4795321d6374"}       6  write {"ticket": "4795321d6374"}

The calls are paired as they are, which needs no equal params. The places from which `before` took its values name those of `after`.
A value that the client of `after` did not take from there, as a wrong id, stays, and is a difference.
"""

from collections import defaultdict
from collections.abc import Sequence

from ....records import SERVER
from ....transcript.model import Exchange, Kind, Message, Transcript, UnpairedMessage
from ...compare.compare import call_pairs, server_pairs
from ...compare.ignore import Ignore
from ...mock.content import VOLATILE
from .reader import read_correlations
from .run import CorrelationRun


def restore_correlated(before: Transcript, after: Transcript, ignore: Sequence[str] = ()) -> None:
    """Put the correlated values of `before` into the messages of `after`. Raises: PathError: for a path of `ignore`."""
    rules = Ignore.of((*VOLATILE, *ignore))
    correlations = read_correlations(before)
    old_rows, new_rows = _by_capture(before), _by_capture(after)
    for old, new in server_pairs(before.captures, after.captures):
        if old is None or new is None:
            continue
        run = CorrelationRun(correlations)
        old_calls, new_calls = (
            [row for row in rows if isinstance(row, Exchange)] for rows in (old_rows[old.index], new_rows[new.index])
        )
        partners = {
            pair[1].row: pair[0].row
            for pair in call_pairs(old_calls, new_calls, rules)
            if pair[0] is not None and pair[1] is not None
        }
        theirs = [
            (partners.get(row.row) if isinstance(row, Exchange) else 0, message)
            for row in new_rows[new.index]
            for message in _messages(row)
        ]
        for row, message in theirs:
            if message.sender == SERVER and row is not None:
                run.feed(row, message)
        for message in (message for row in old_calls for message in _messages(row)):
            run.fill(message)
        for row, message in theirs:
            message.raw = run.as_recorded(row or 0, message.raw)


def _by_capture(transcript: Transcript) -> defaultdict[int, list[Exchange | UnpairedMessage]]:
    rows: defaultdict[int, list[Exchange | UnpairedMessage]] = defaultdict(list)
    for row in transcript.rows:
        if isinstance(row, Exchange | UnpairedMessage):
            rows[row.capture].append(row)
    return rows


def _messages(row: Exchange | UnpairedMessage) -> list[Message]:
    if isinstance(row, Exchange):
        return row.messages
    return [] if row.message.kind is Kind.MALFORMED else [row.message]
