"""The facts of an index about its capture as a whole: the capture, its findings, its calls, and figures; to and from MessagePack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ..capture.file.reader import Reader
from ..records import Exit, Header, Open
from ..transcript.calls.call import Call, Task
from ..transcript.findings.rule import Finding, Unchecked
from ..transcript.model import CaptureInfo, Exchange, Row, UnpairedMessage
from ..transcript.stored_rows import RowFigures, StoredRows
from .transactions import Place, ScopeEntry

if TYPE_CHECKING:
    from ..capture.file.payloads import Payloads

COPIED: Final = (
    "server",
    "client",
    "messages",
    "complete",
    "gaps",
    "damages",
    "escalations",
    "unkept",
    "last_ns",
    "left_ns",
    "unread",
    "closed",
)
"""The fields of a capture's info that are plain values."""


class CallEntry(msgspec.Struct, array_like=True):
    """A call, whose rows are named by their numbers. `keys` are those by which a capture's info knows it."""

    keys: list[int]
    exchanges: list[int]
    rounds: list[int]
    polls: list[int]
    notifications: list[int]
    needed_input: int | None
    answered_by: int | None
    plain: dict[str, Any]
    task: Task | None


class Facts(msgspec.Struct, kw_only=True):
    """All that an index knows but the rows."""

    rows: int
    lines: int
    """The number of lines of the capture."""
    is_checked: bool
    """False if nobody looked for findings in all of it."""
    info: dict[str, Any]
    exit: Place | None
    client_names: list[str]
    client_processes: dict[int, tuple[int, int]]
    client_ports: dict[int, int]
    streams: list[Place]
    """Those of stdio. The others are known by their transactions."""
    scopes: list[ScopeEntry]
    clients: list[str]
    findings: list[Finding]
    hits: list[tuple[int, Finding, str]] | None
    """The hits that the findings were counted of; None if there were too many."""
    limits: list[Unchecked]
    """The limits that rules reached."""
    calls: list[CallEntry]
    figures: RowFigures


encode: Final = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Facts)


def facts_from(data: bytes) -> Facts:
    """Return the facts in a section. Raises: ValueError: if it has none."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("no facts of an index") from error


def copied(info: CaptureInfo) -> dict[str, Any]:
    """Return the plain values of a capture's info."""
    return {name: getattr(info, name) for name in COPIED}


def info_from(facts: Facts, source: Payloads) -> CaptureInfo:
    """Return a capture's info. Raises: ValueError: if the facts do not make one; CaptureError."""
    header = next((record for record in Reader().feed(source.line(0) + b"\n") if isinstance(record, Header)), None)
    info = CaptureInfo(0, header, **{name: facts.info[name] for name in COPIED if name in facts.info})
    if facts.exit is not None:
        info.exit = cast("Exit", source.record(*facts.exit))
    info.client_names = dict.fromkeys(facts.client_names)
    info.client_processes, info.client_ports = facts.client_processes, facts.client_ports
    info.known_clients = facts.clients
    for place in facts.streams:
        opened = cast("Open", source.record(*place))
        info.streams[opened.stream] = opened
    return info


_PLAIN: Final = ("wire_ns", "elicitations", "completed_elicitations", "ended_ns", "task_failed")


def call_entries(info: CaptureInfo) -> list[CallEntry]:
    """Return the entries of a capture's calls."""
    keys: dict[int, list[int]] = {}
    calls: dict[int, Call] = {}
    for key, call in info.calls.items():
        keys.setdefault(id(call), []).append(key)
        calls[id(call)] = call
    return [_call_entry(call, keys[identity]) for identity, call in calls.items()]


def _call_entry(call: Call, keys: list[int]) -> CallEntry:
    return CallEntry(
        keys,
        _numbers(call.exchanges),
        _numbers(call.rounds),
        _numbers(call.polls),
        _numbers(call.notifications),
        None if call.needed_input is None else call.needed_input.row,
        None if call.answered_by is None else call.answered_by.row,
        {name: getattr(call, name) for name in _PLAIN},
        call.task,
    )


def _numbers(rows: list[Exchange] | list[UnpairedMessage]) -> list[int]:
    return [row.row for row in rows]


def join_calls(entries: list[CallEntry], info: CaptureInfo, rows: StoredRows[Row]) -> None:
    """Give a capture's info its calls. Their rows are the same objects from now on, as views compare them by identity."""
    known: dict[int, Any] = {}

    def row(number: int) -> Any:
        if number not in known:
            known[number] = rows.pin(number)
        return known[number]

    for entry in entries:
        call = Call(
            [row(number) for number in entry.exchanges],
            [row(number) for number in entry.rounds],
            [row(number) for number in entry.polls],
            [row(number) for number in entry.notifications],
            entry.task,
            needed_input=None if entry.needed_input is None else row(entry.needed_input),
            answered_by=None if entry.answered_by is None else row(entry.answered_by),
            **entry.plain,
        )
        info.calls.update(dict.fromkeys(entry.keys, call))
