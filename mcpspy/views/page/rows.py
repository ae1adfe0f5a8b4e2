"""Rows as the page lists them, and what each carries when somebody looks: plain values, all text made safe where it is listed.

The script `01-data.js` reads what stands here; the two change together. Refuses to lay out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT
from ...transcript.model import Event, Exchange, Log, ModelCall, Row, Source, Stray, Transcript
from ...transcript.transaction import Transaction
from ..calls import with_call
from ..curl import curl
from ..escape import decoded, safe_text
from ..exchange import messages_of
from ..json_text import payload
from ..phrases import Phrase, event_phrase, log_text, one_line, outcome_phrase, stray_phrase
from ..sequence.layout import Drawing, diagram
from ..sequence.model import Arrow, Aside, Group, GroupKind, LeftOut, Step
from ..transaction import transaction_phrase
from ..units import counted
from .model_calls import listed_call, messages_of_call, told_call

if TYPE_CHECKING:
    from ...transcript.inference.errand import Errand
    from ...transcript.message import Message

CHUNK: Final = 100
"""So many rows share a block of JSON that is read when one of them is looked at."""

MAX_TARGET_LETTERS: Final = 200
MAX_LOG_LETTERS: Final = 400
MAX_CHUNK_SIZES: Final = 60

_Listed = list[Any]


def listed(transcript: Transcript, rows: Sequence[Row]) -> Iterator[tuple[Row, _Listed]]:
    """Each row that the page lists, with the values of its line. Events that say nothing are left out."""
    flagged = {one.row for one in transcript.findings if one.row is not None}
    for row in rows:
        line = listed_row(row, transcript.sources[row.capture], flagged=flagged)
        if line is not None:
            yield row, line


def listed_row(row: Row, source: Source, *, flagged: Container[int]) -> list[Any] | None:
    """The values of a row's line, then the number of its capture, and whether a finding is about it.

    None for an event that says nothing.
    """
    made = _line(row, source)
    return None if made is None else [*made, row.capture, int(made[0] in flagged)]


def _line(row: Row, source: Source) -> _Listed | None:
    """`[row, kind, at, took, from, client, server, method, target, outcome, style, detail, bytes]`."""
    client, server = safe_text(source.client_of(row)), safe_text(source.server)
    match row:
        case Exchange():
            phrase = with_call(outcome_phrase(row), row, source)
            size = row.request.size + (row.response.size if row.response else 0)
            took = row.duration_ns
            words = one_line(row.method), one_line(row.target or "", MAX_TARGET_LETTERS)
            return [row.row, "exchange", row.at_ns, took, row.sender, client, server, *words, *_told(phrase), size]
        case Stray():
            phrase = with_call(stray_phrase(row, source), row, source)
            place = row.row, "stray", row.at_ns, None, row.message.sender, client, server
            return [*place, phrase.word, "", "", phrase.style, phrase.detail, row.message.size]
        case Transaction():
            size = sum(one.body_bytes for one in (row.request, row.response) if one is not None)
            words = one_line(row.method), one_line(row.target, MAX_TARGET_LETTERS)
            times = row.row, "transaction", row.at_ns, row.duration_ns
            return [*times, CLIENT, client, server, *words, *_told(transaction_phrase(row)), size]
        case ModelCall():
            return listed_call(row, (client, server))
        case Log():
            text = one_line(log_text(row.raw, MAX_LOG_LETTERS), MAX_LOG_LETTERS)
            return [0, "log", row.at_ns, None, "", client, server, "stderr", text, "", "dim", "", len(row.raw)]
        case Event():
            said = event_phrase(row.record, source)
            if said is None:
                return None
            return [0, "event", row.at_ns, None, "", client, server, said.word, "", "", said.style, said.detail, 0]


def _told(phrase: Phrase) -> tuple[str, str, str]:
    return phrase.word, phrase.style, phrase.detail


def progress(rows: Sequence[Row]) -> dict[str, list[int]]:
    """When progress came, by the numbers of rows."""
    return {
        str(row.row): [one.at_ns for one in row.notifications if one.method == "notifications/progress"]
        for row in rows
        if isinstance(row, Exchange) and row.progress
    }


def carried(row: Row, transcript: Transcript, errands: Sequence[Errand]) -> dict[str, Any] | None:
    """What a row carries: messages, HTTP, its request as a command. None for one that carries nothing.

    `errands` are those of the transcript, for what is told of a model call.
    """
    if not isinstance(row, Exchange | Stray | Transaction | ModelCall):
        return None
    source = transcript.sources[row.capture]
    made: dict[str, Any] = {}
    if isinstance(row, ModelCall):
        made |= {"told": told_call(row, transcript, errands), "messages": messages_of_call(row, source)}
    elif messages := messages_of(row):
        made["messages"] = [_message(one) for one in messages]
    transactions = source.transactions_of(row)
    if transactions:
        made["http"] = [_transaction(one) for one in transactions]
        made["curl"] = "\n".join(curl(transactions[0], source)) if transactions[0].request is not None else ""
    return made


def _message(one: Message) -> dict[str, Any]:
    said = {"lost": True} if one.unkept_bytes else payload(one.raw)
    return {"from": one.sender, "kind": one.kind.value, "at": one.at_ns, "record": one.number, "bytes": one.size, **said}


def _transaction(one: Transaction) -> dict[str, Any]:
    request, response = one.request, one.response
    sizes = [size for frame in (response.kept if response else ()) for size in frame.chunks][:MAX_CHUNK_SIZES]
    return {
        "number": one.number,
        "connection": one.connection,
        "status": one.status,
        "at": one.at_ns,
        "waited": None if response is None else response.at_ns - one.at_ns,
        "took": one.duration_ns,
        "request": "" if request is None else _head(request.opened.head),
        "response": "" if response is None else _head(response.opened.head),
        "chunks": sizes,
    }


def _head(raw: bytes) -> str:
    return "\n".join(safe_text(line) for line in decoded(raw).strip("\r\n").replace("\r\n", "\n").split("\n"))


def drawn(transcript: Transcript, rows: Sequence[Row], max_messages: int) -> dict[str, Any]:
    """The sequence diagram: names of lanes, and steps one below the other."""
    layout = diagram(transcript, rows, Drawing(max_messages=max_messages))
    lanes = {one.id: at for at, one in enumerate(layout.participants)}
    return {"lanes": [safe_text(one.name) for one in layout.participants], "steps": _steps(layout.steps, lanes, 0)}


def _steps(steps: Sequence[Step], lanes: dict[str, int], depth: int) -> list[dict[str, Any]]:
    """Steps with lanes by their places. Behind a group's title come its steps, as many as `size` says."""
    made: list[dict[str, Any]] = []
    for one in steps:
        match one:
            case Arrow():
                made.append(_said(one, lanes) | {"kind": one.kind.value, "start": lanes[one.start], "end": lanes[one.end]})
            case Aside():
                made.append(_said(one, lanes) | {"start": lanes[one.at]})
            case LeftOut():
                made.append({"title": f"… {counted(one.count, 'more message')}", "depth": depth})
            case Group():
                inner = _steps(one.steps, lanes, depth + 1)
                title = f"loop {one.title}" if one.kind is GroupKind.LOOP else one.title
                made += [{"group": one.kind.value, "title": title, "depth": depth, "size": len(inner)}, *inner]
    return made


def _said(step: Arrow | Aside, lanes: dict[str, int]) -> dict[str, Any]:
    bars = {"opens": step.opens if isinstance(step, Arrow) else "", "closes": step.closes}
    told = {"at": step.at_ns, "text": step.text, "style": step.style, "row": step.row}
    return told | {name: lanes[lane] for name, lane in bars.items() if lane in lanes}
