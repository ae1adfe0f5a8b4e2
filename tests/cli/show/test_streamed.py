"""`mcpspy show` of a large capture on a terminal, which shows rows as it reads them."""

import json
from pathlib import Path

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.cli.show.streamed import WAITING_ROWS, EndedRows
from mcpspy.records import Frame
from mcpspy.transcript.model import Row
from mcpspy.transcript.transcribe import Transcriber
from tests.capture.making import closes, header, opens
from tests.cli.terminal import on_terminal, run
from tests.transcript.dialogue import Dialogue

TEXT_BYTES = 900_000
CALLS = 25


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of 25 calls with large results, and of one with an error."""
    talk = []
    for id in range(CALLS + 1):
        ask = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": f"read_{id}"}}
        answer = {"result": {"content": [{"type": "text", "text": "x" * TEXT_BYTES}]}}
        if id == CALLS:
            answer = {"error": {"code": -32602, "message": "no such file"}}  # type: ignore[dict-item]  # another shape
        for stream, message in enumerate((ask, {"jsonrpc": "2.0", "id": id, **answer})):
            at_ns = (2 * id + stream) * 1_000_000
            talk.append(Frame(stream, at_ns, at_ns, json.dumps(message).encode() + b"\n"))
    path = tmp_path_factory.mktemp("large") / "large.mcpspy"
    numbered = enumerate([*opens(), *talk, *closes(10**9)], 1)
    path.write_bytes(b"".join([header_line(header()), *(record_line(number, record) for number, record in numbered)]))
    return path


def test_rows_come_first_and_the_summary_last(large: Path) -> None:
    with on_terminal("show", str(large), columns=100) as shown:
        assert shown.rest() == 0
        words = shown.words
    rows = [words.index(f"read_{id} ") for id in range(CALLS + 1)]
    assert rows == sorted(rows)
    assert words.index(" 26 calls ") > rows[-1]
    assert "no such file" in words


def test_other_outputs_of_it_have_the_summary_first(large: Path) -> None:
    assert " 26 calls " in run("show", str(large)).stdout.splitlines()[0]
    with on_terminal("show", str(large), "-F", "status:error", columns=100) as shown:
        assert shown.rest() == 0
        assert shown.words.index(" 26 calls ") < shown.words.index("no such file")


def rows_of(dialogue: Dialogue) -> tuple[Transcriber, list[Row]]:
    transcriber = Transcriber()
    for record in dialogue.records:
        transcriber.feed(record)
    return transcriber, transcriber.transcript.rows


def test_a_row_waits_for_the_ones_before_it() -> None:
    dialogue = Dialogue()
    dialogue.line(0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    dialogue.line(0, b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    dialogue.line(1, b'{"jsonrpc":"2.0","id":2,"result":{}}\n')
    _, rows = rows_of(dialogue)
    queue = EndedRows(rows)
    shown = queue.take()
    assert shown == rows[:-2]
    assert [*shown, *queue.rest()] == rows
    assert queue.rest() == []


def test_a_row_that_takes_long_comes_when_it_ends() -> None:
    dialogue = Dialogue()
    dialogue.line(0, b'{"jsonrpc":"2.0","id":"long","method":"ping"}\n')
    for _ in range(WAITING_ROWS + 1):
        dialogue.line(1, b'{"jsonrpc":"2.0","method":"notifications/message"}\n')
    transcriber, rows = rows_of(dialogue)
    queue = EndedRows(rows)
    shown = queue.take()
    assert len(shown) == len(rows) - 1
    before = len(dialogue.records)
    dialogue.line(1, b'{"jsonrpc":"2.0","id":"long","result":{}}\n')
    for record in dialogue.records[before:]:
        transcriber.feed(record)
    (late,) = queue.take()
    assert late not in shown
    assert late in rows
