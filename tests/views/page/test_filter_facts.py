"""Facts for the filters of the page: whatever is shared between rows is what each of them has."""

from pathlib import Path
from typing import Any

import pytest

from mcpspy import read, transcribe
from mcpspy.transcript.filter import facts
from mcpspy.transcript.filter.facts import Subject
from mcpspy.transcript.filter.filter import rules_by_row
from mcpspy.transcript.filter.keys import KEYS, TextTests
from mcpspy.transcript.model import Exchange, UnpairedMessage
from mcpspy.views.page.filter_facts import FilterFacts, filter_keys
from mcpspy.views.timeline.exchange import messages_of
from tests.conftest import ROOT

CAPTURES = sorted((ROOT / "captures").glob("*.mcpspy")) + sorted((ROOT / "tests" / "findings").glob("*.mcpspy"))[::7]
TEXTS: dict[str, Any] = {name: key.test.of for name, key in KEYS.items() if isinstance(key.test, TextTests)}
TEXTS |= {"status": facts.statuses, "dir": facts.directions, "sender": facts.senders}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_each_row_and_message_has_its_facts(path: Path) -> None:
    transcript = transcribe(read(path), keep_frames=True)
    data = FilterFacts(transcript).data(transcript.rows)
    subject = Subject(transcript.captures, rules_by_row(transcript), None)
    for row, (shape, ids, messages, *_others) in zip(transcript.rows, data["rows"], strict=True):
        subject.row, subject.exchange, subject.message = row, row if isinstance(row, Exchange) else None, None
        known: list[Any] = [*messages_of(row)] if isinstance(row, Exchange | UnpairedMessage) else [None]
        for message, (of_message, *_amounts, last) in zip(known, messages, strict=True):
            subject.message = message
            found = {**data["shapes"][shape], **data["shapes"][of_message]}
            found |= {"id": ids, "token": last if isinstance(last, tuple) else ()}
            meant = {name: sorted(text for text in of(subject) if text is not None) for name, of in TEXTS.items()}
            assert {name: sorted(found.get(name, ())) for name in TEXTS} == meant
            carriers = facts.transactions(subject)
            assert found.get("http", ()) == tuple((each.status, each.method, each.target) for each in carriers)


def test_the_page_gets_every_key_with_its_operators_and_an_example() -> None:
    keys = filter_keys()["keys"]
    assert list(keys) == list(KEYS)
    assert all(keys[name]["operators"] == key.operators for name, key in KEYS.items())
    assert {key["form"] for key in keys.values()} == {"texts", "words", "amount", "status", "side", "http", "time"}
