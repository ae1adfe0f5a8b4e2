"""The short ways of watchers leave the same notes as `feed`: for usual calls, and for payloads that do not concern them."""

import json
import os
import tempfile
from array import array
from collections import deque
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, SERVER, Header, Open
from mcpspy.transcript import watching
from mcpspy.transcript.exchange import Exchange, UnpairedMessage
from mcpspy.transcript.findings import facts as facts_module
from mcpspy.transcript.findings.facts import CaptureFacts
from mcpspy.transcript.findings.finders import CAPTURE_FINDERS, TRANSCRIPT_FINDERS, finder
from mcpspy.transcript.findings.protocol import schemas, types
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import Row, Transcript
from mcpspy.transcript.stats import context
from mcpspy.transcript.transcribe import transcribe
from mcpspy.transcript.watching import ExchangesByKind, Watchers, usual_calls

TEXTS = (
    "ok",
    "Error: it failed",
    "a\nb",
    "Traceback (most recent call last):\n  File",
    "cafÃ©",
    "é",
    "[" + "1," * 600,
    "x" * 12_000,
)
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
BLOCKS: tuple[dict[str, str], ...] = (*({"type": "text", "text": text} for text in TEXTS), IMAGE)

Step = dict[str, Any]

steps: st.SearchStrategy[list[Step]] = st.lists(
    st.fixed_dictionaries(
        {
            "tool": st.sampled_from(["a", "a", "a", "b", "c"]),
            "arguments": st.sampled_from([{"q": 1}, {"q": 1}, {"q": 2}, {"q": "é"}, {"id": 7}, None]),
            "more": st.sampled_from([{}, {}, {}, {"task": {}}, {"_meta": {"progressToken": 1}}]),
            "content": st.sampled_from([BLOCKS[0], BLOCKS[0], BLOCKS[0], *BLOCKS]),
            "failed": st.sampled_from([False, False, False, True]),
            "step": st.sampled_from([1, 1, 1, 3, 0, -2]),
            "waits_ms": st.sampled_from([1, 1, 1, 1500]),
            "takes_ms": st.sampled_from([1, 1, 1, 3, 2500]),
            "other": st.sampled_from(["", "", "", "", "", "ping", "read", "log", "progress", "changed", "lost"]),
        }
    ),
    min_size=1,
    max_size=40,
)


def dialogue(steps: list[Step], *, begins: bool) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the messages of a session in the order of time: time in milliseconds, stream, message."""
    sent: list[tuple[int, int, dict[str, Any]]] = []
    if begins:
        revision = {"protocolVersion": "2025-11-25", "capabilities": {}}
        sent.append(
            (0, 0, {"id": 900, "method": "initialize", "params": {**revision, "clientInfo": {"name": "c", "version": "1"}}})
        )
        sent.append((0, 1, {"id": 900, "result": {**revision, "serverInfo": {"name": "s", "version": "1"}}}))
        tools = [{"name": name, "inputSchema": {"type": "object", "required": ["q"]}} for name in "ab"]
        sent += [(0, 0, {"id": 901, "method": "tools/list"}), (0, 1, {"id": 901, "result": {"tools": tools}})]
    at_ms, id = 1, 1
    for step in steps:
        at_ms, id = at_ms + step["waits_ms"], max(1, id + step["step"])
        arguments = {} if step["arguments"] is None else {"arguments": step["arguments"]}
        sent.append(
            (at_ms, 0, {"id": id, "method": "tools/call", "params": {"name": step["tool"], **arguments, **step["more"]}})
        )
        ends_ms = at_ms + step["takes_ms"]
        match step["other"]:
            case "ping":
                sent += [(at_ms, 1, {"id": "p", "method": "ping"}), (at_ms, 0, {"id": "p", "result": {}})]
            case "read":
                contents = [{"uri": "a:b", "mimeType": "application/json", "text": "no"}]
                sent.append((at_ms, 0, {"id": id + 500, "method": "resources/read", "params": {"uri": "a:b"}}))
                sent.append((at_ms, 1, {"id": id + 500, "result": {"contents": contents}}))
            case "log":
                sent.append((at_ms, 1, {"method": "notifications/message", "params": {"level": "info", "data": "hi"}}))
            case "progress":
                sent.append((at_ms, 1, {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}))
            case "changed":
                sent.append((at_ms, 1, {"method": "notifications/tools/list_changed"}))
            case "lost":
                continue
        result = {"content": [step["content"]]} | ({"isError": True} if step["failed"] else {})
        sent.append((ends_ms, 1, {"id": id, "result": result}))
        at_ms = ends_ms if step["step"] != 3 else at_ms
    return sorted(sent, key=lambda message: message[0])


def recorded(sent: list[tuple[int, int, dict[str, Any]]]) -> Transcript:
    """Write messages to a capture, and read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.mcpspy"
        header = Header(capture_id="c", wall_ns=0, monotonic_ns=0, pid=1, tapped={"transport": "stdio", "argv": ["s"]})
        writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), header_line(header))
        writer((Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")))
        for at_ms, stream, message in sent:
            line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"
            writer.frame(stream, at_ms * 1_000_000, line)
        writer.close(10**12)
        return transcribe(read(path), with_findings=False)


def state(value: Any) -> Any:
    """Return all that an object holds, with messages and rows as they are."""
    if isinstance(value, Message | Exchange | UnpairedMessage):
        return id(value)
    if callable(value):
        return getattr(value, "__qualname__", "")
    if isinstance(value, dict):
        return [(state(key), state(item)) for key, item in value.items()]
    if isinstance(value, list | tuple | array | deque):
        return [type(value).__name__, *map(state, value)]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    names = [*getattr(value, "__dict__", ()), *getattr(value, "__struct_fields__", ())]
    names += [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    own = type(value).__module__.startswith("mcpspy.")
    if own and names:
        return [(name, state(getattr(value, name))) for name in names if name != "_validators"]  # by the ids of objects
    return repr(value) if isinstance(value, str | bytes | int | float | None) else type(value).__name__


def classes(names: tuple[str, ...], table: str) -> list[Any]:
    return [watcher for name in names for watcher in getattr(finder(name), table, ())]


def blocks(rows: list[Row], sizes: list[int]) -> list[list[Row]]:
    """Cut rows into blocks of these sizes, over and over."""
    cut: list[list[Row]] = []
    while rows:
        size = sizes[len(cut) % len(sizes)]
        cut.append(rows[:size])
        rows = rows[size:]
    return cut


@pytest.fixture(scope="module", autouse=True)
def low_limits() -> Any:
    """Let limits be reached soon."""
    with pytest.MonkeyPatch.context() as patch:
        limits: list[tuple[ModuleType, str, int]] = [
            (schemas, "MAX_EACH", 3),
            (types, "MAX_EACH", 3),
            (context, "_ALL_OF", 5),
            (context, "_EVERY", 3),
            (facts_module, "SAMPLED", 6),
        ]
        for module, name, value in limits:
            patch.setattr(module, name, value)
        yield


@given(steps=steps, begins=st.booleans(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=60)
def test_watchers_that_are_fed_together_note_what_each_of_them_notes(
    steps: list[Step], *, begins: bool, sizes: list[int]
) -> None:
    transcript = recorded(dialogue(steps, begins=begins))
    of_exchanges, of_rows = classes(CAPTURE_FINDERS, "WATCHERS"), classes(TRANSCRIPT_FINDERS, "ROW_WATCHERS")
    facts = CaptureFacts(transcript.captures[0], transcript.rows)
    together = Watchers(facts, transcript, of_exchanges, of_rows)
    own_rows = transcript.__dict__[watching._ROW_WATCHERS]
    each = {watcher: watcher() for watcher in of_exchanges}
    each_of_rows = {watcher: watcher(transcript) for watcher in of_rows}
    for rows in blocks([*transcript.rows], sizes):
        kinds = ExchangesByKind([row for row in rows if isinstance(row, Exchange)])
        together.feed(rows, kinds, usual_calls(kinds.calls))
        for alone in each.values():
            alone.feed(getattr(kinds, watching._kind_of(alone)))
        for alone in each_of_rows.values():
            alone.feed(kinds.calls if watching._kind_of(alone) == "calls" else rows)
    for watcher, fed in (each | each_of_rows).items():
        assert state((facts.watchers | own_rows)[watcher]) == state(fed), watcher


@given(steps, st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=40)
def test_plain_calls_are_taken_in_together_as_one_by_one(steps: list[Step], sizes: list[int]) -> None:
    transcript = recorded(dialogue(steps, begins=False))
    exchanges = [row for row in transcript.rows if isinstance(row, Exchange)]
    together, each = (CaptureFacts(transcript.captures[0], transcript.rows) for _ in range(2))
    for block in blocks([*exchanges], sizes):
        usual = usual_calls([row for row in block if isinstance(row, Exchange) and row.request.method == watching.CALL])
        if usual is not None and usual.is_plain and len(usual.calls) == len(block):
            together.plain_calls(usual)
        else:
            for row in block:
                assert isinstance(row, Exchange)
                together.exchange(row)
    for exchange in exchanges:
        each.exchange(exchange)
    assert state(together) == state(each)


def test_most_calls_are_usual() -> None:
    step = {"tool": "a", "arguments": {"q": 1}, "more": {}, "content": BLOCKS[0], "failed": False, "step": 1, "other": ""}
    transcript = recorded(dialogue([step | {"waits_ms": 1, "takes_ms": 1}] * 3, begins=False))
    usual = usual_calls([row for row in transcript.rows if isinstance(row, Exchange)])
    assert usual is not None
    assert usual.is_plain
    assert usual.is_sequence
