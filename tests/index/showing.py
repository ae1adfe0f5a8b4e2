"""Everything that is shown of a capture, from its index and without it."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mcpspy.capture.file import payloads
from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import read
from mcpspy.index import build, columns, grown, load, seeds, transactions
from mcpspy.index.build import write_index
from mcpspy.index.file import identity
from mcpspy.index.load import indexed_transcript
from mcpspy.records import Damage, Header, Record
from mcpspy.replay.compare.digests import SECTION, digests_entry
from mcpspy.transcript import stored_rows
from mcpspy.transcript.filter.facts import Subject, payload
from mcpspy.transcript.filter.filter import filter_of, filter_rows, rules_by_row
from mcpspy.transcript.filter.grammar import AllOf, AnyOf, Filter, Node, Not, Term, Text
from mcpspy.transcript.filter.keys import KEYS, STATUS_WORDS, TextTests
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.model import Exchange, Numbered, Transcript, UnpairedMessage
from mcpspy.transcript.recent import RecentRows
from mcpspy.transcript.stored_rows import StoredRows
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import transcript_json
from mcpspy.views.json.server_statistics import statistics_json
from mcpspy.views.json.transactions import http_lines
from mcpspy.views.sequence.ladder import ladder
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.statistics import statistics_lines
from mcpspy.views.text.hint import next_commands
from mcpspy.views.timeline.details import Detail
from mcpspy.views.timeline.exchange import carrying_transactions, row_lines
from mcpspy.views.timeline.http_wire import wire_lines
from mcpspy.views.timeline.ordering import Order
from mcpspy.views.timeline.timeline import row_widths, timeline
from tests.conftest import collect_where_many_are_open

VERSION = "1"
_SMALL_BLOCK = 3
FILTERS = (
    "method:tools/call dur>0s",
    "dur>=1ms",
    "not dur>5ms",
    "dur>4us or tool:x",
    "status:error or kind:notification",
    '"x"',
    "size>100b",
    "bytes>=90b kind:notification",
    "bytes>150b or id:1",
    "id:1 status:ok",
    "id:1*",
    "progress>=1",
    "progress:0..1 row:2..4",
    "row>3",
    "call:1",
    "call<4 total>1ms",
    "total:0s..1s",
    "dur:1ms..5ms",
    "after:+1ms",
    "before:+2ms row>1",
    "after:2026-11-21 before:23:59",
    "task:*",
    "model:x",
    "not task:*",
)


def make_blocks_small(patch: pytest.MonkeyPatch) -> None:
    """Put few rows into a block, so that small captures have several."""
    for module in (stored_rows, build, columns, grown, load, transactions):
        patch.setattr(module, "BLOCK_ROWS", _SMALL_BLOCK)
    patch.setattr(stored_rows, "_FEW_BLOCKS", 0)
    patch.setattr(seeds, "NEWEST_ROWS", 2)
    patch.setattr(grown, "MAX_SHARE", 100)
    patch.setattr(payloads, "_SEARCHED_BYTES", 100)


def written(records: list[Record]) -> bytes:
    """Write records that a tap could write, after their header."""
    header, *others = records
    assert isinstance(header, Header)
    kept = [record for record in others if not isinstance(record, Damage | Header)]
    return b"".join([header_line(header), *(record_line(number, record) for number, record in enumerate(kept, 1))])


def index(path: Path) -> bool:
    """Write the index of a capture, as a command does that has read it."""
    before = identity(str(path))
    transcript = transcribe(read(path))
    *known, plain = row_widths(transcript.rows, 1 << 20, with_params=False)
    assert before is not None
    widest = row_widths(transcript.rows, 1 << 20, with_params=True)[-1]
    more = {SECTION: digests_entry}
    return write_index(str(path), transcript, before, VERSION, (known[0], known[1], known[2], plain, widest), more)


def whole(path: Path) -> Transcript:
    return transcribe(read(path), keep_frames=True)


def from_index(path: Path) -> Transcript | None:
    return indexed_transcript(str(path), VERSION, lambda: whole(path), keeps_frames=True)


def shown(transcript: Transcript, *, recounts: bool = True) -> Iterator[object]:
    """Yield everything that `show` can show of a transcript; unless it `recounts`, without what is shown of findings since a time."""
    for width, detail in ((80, None), (200, Detail.PARAMS), (None, Detail.FULL)):
        yield list(timeline(transcript, width=width, detail=detail))
    yield list(next_commands(transcript, ["@"], live=False))
    yield list(transcript_json(transcript, transcript.rows, live=False))
    numbers = [row.row for row in transcript.rows if isinstance(row, Numbered)]
    for number in [*numbers, 0, len(numbers) + 1]:
        row = transcript.row(number)
        yield None if row is None else list(row_lines(transcript, row, width=100))
    yield list(timeline(transcript, rows=(2, 4)))
    for expression in FILTERS:
        chosen = filter_of([expression])
        assert chosen is not None
        yield list(timeline(transcript, filtered=filter_rows(chosen, transcript, transcript.rows)))
    for part in (0, 1, 2, 4) if recounts else ():
        recent = RecentRows(transcript, {0: transcript.captures[0].last_ns * part // 4})
        some = Transcript(transcript.captures, recent.rows, findings(transcript, recent.is_about))
        yield list(timeline(some, since="x"))
    yield list(statistics_lines(transcript, width=100))
    yield statistics_json(transcript, live=False)
    yield list(ladder(diagram(transcript, list(transcript.rows[-5:])), width=100))
    transactions = carrying_transactions(transcript, transcript.rows)
    yield list(http_lines(transcript, transactions))
    yield list(wire_lines(transcript, transactions, width=100, whole=True, whats=["@"]))


def chosen_rows(transcript: Transcript, values_of: Transcript) -> Iterator[object]:
    """Yield the rows that filters choose: by each text that is a fact of a row in `values_of`, and by the examples of all keys."""
    words: dict[str, None] = {}
    subject = Subject(values_of.captures, rules_by_row(values_of), None)
    texts: dict[tuple[str, str], None] = {}
    for row in values_of.rows:
        subject.row, subject.exchange = row, row if isinstance(row, Exchange) else None
        messages = row.messages if isinstance(row, Exchange) else [row.message] if isinstance(row, UnpairedMessage) else [None]
        for subject.message in messages:
            whole = payload(subject).decode("utf-8", "ignore")
            words.update(dict.fromkeys((whole[:9], whole[len(whole) // 2 :][:30], whole[-4:])))
            for key in KEYS.values():
                if isinstance(key.test, TextTests):
                    texts.update(((key.name, text), None) for text in key.test.of(subject) if text)
    terms = [Term(key=key, operator=":", value=text, is_quoted=True) for key, text in texts]
    of_texts = [Text(text=word) for word in words if word]
    slow = Term(key="dur", operator=">", value="1ms")
    nodes: list[Node] = [node for term in terms for node in (term, Not(part=AllOf(parts=(term, slow))))]
    nodes += [*of_texts, *(AllOf(parts=pair) for pair in pairwise(of_texts))]
    nodes += [Not(part=AnyOf(parts=pair)) for pair in pairwise(terms)]
    examples = [filter_of([text]) for key in KEYS.values() for text in (key.example, f'not {key.example} or "x"')]
    examples += [filter_of([f"status:{word}"]) for word in (*STATUS_WORDS, "-32603")]
    for chosen in (*map(Filter, nodes), *examples):
        assert chosen is not None
        result = filter_rows(chosen, transcript, transcript.rows)
        yield str(chosen), result.matching, [(row.at_ns, getattr(row, "row", 0)) for row in result.rows]


def shown_of_all(transcript: Transcript) -> Iterator[object]:
    """Yield everything that is shown of all rows at once."""
    yield list(statistics_lines(transcript, width=100))
    yield statistics_json(transcript, live=False)
    for order in Order:
        yield list(timeline(transcript, order=order))
    yield findings(transcript)


def assert_shows_the_same(path: Path) -> None:
    transcript = from_index(path)
    assert transcript is not None
    assert isinstance(transcript.rows, StoredRows) or transcript.captures[0].is_model
    for of_index, of_capture in zip(shown(transcript), shown(whole(path)), strict=True):
        assert of_index == of_capture
    for of_index, of_capture in zip(chosen_rows(transcript, whole(path)), chosen_rows(whole(path), whole(path)), strict=True):
        assert of_index == of_capture
    transcript.rows = list(transcript.rows)
    for of_index, of_capture in zip(shown_of_all(transcript), shown_of_all(whole(path)), strict=True):
        assert of_index == of_capture
    collect_where_many_are_open()
