"""The order in which `mcpspy mock` sends: what came before an answer in the capture comes before it, however the client sends.

A session is written as words: `>1` is a request and `<1` its answer, `<+1` progress of it, `<log` a notification, `<banner` a line
that is no message, `<ask` a request of the server, which the client never answers, `>note` a notification of the client, `>odd` a
line of the client that is no message, `<odd` the error about that, `>.` the end of the client's input.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.live.mock.mocking import Mocking, written
from tests.live.mock.mocking_http import HttpMocking
from tests.transcript.dialogue import Dialogue, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import initialize

if TYPE_CHECKING:
    from pathlib import Path

LINES: dict[str, Any] = {
    "<log": notification("notifications/message", {"level": "info", "data": "x"}),
    "<banner": b"Loading the model...\n",
    "<ask": request("s", "sampling/createMessage", {}),
    ">0": initialize(0),
    ">note": notification(),
    ">odd": b"odd\n",
    "<odd": error(None, -32700),
}


def line(word: str) -> Any:
    """Return the line that a word stands for."""
    if word in LINES:
        return LINES[word]
    if word.startswith("<+"):
        return progress(f"t{word[2:]}")
    return tool_call(int(word[1:]), f"tool-{word[1:]}", f"t{word[1:]}") if word[0] == ">" else result(int(word[1:]))


def word_of(data: bytes) -> str:
    """Return the word for a line of the mock."""
    if data == LINES["<banner"].strip():
        return "<banner"
    message = json.loads(data)
    match message.get("method"):
        case "notifications/message":
            return "<log"
        case "notifications/progress":
            return f"<+{message['params']['progressToken'][1:]}"
        case "sampling/createMessage":
            return "<ask"
    return f"<{message['id']}" if "result" in message else "<odd"


def recorded(words: str) -> Dialogue:
    dialogue = Dialogue()
    for word in words.split():
        if word == ">.":
            dialogue.client_leaves()
        elif word[0] == ">":
            dialogue.client(line(word))
        else:
            dialogue.server(line(word))
    return dialogue


SESSIONS = [
    ">1 >2 >3 <banner <1 <2 <3",
    ">1 >2 >3 >. <banner <1 <2 <3",
    ">1 >note >2 >. <log <1 <2",
    ">1 >note <banner <1",
    ">1 >2 <log <1 <log <2",
    ">1 >2 <banner <2 <1",
    ">1 >2 <+2 <1 <2",
    ">1 >2 <+1 <+2 <2 <+1 <1",
    ">1 >2 >3 <3 <1 <2",
    ">1 >2 <ask <1",
    ">1 >2 <1 <banner <2 <log",
    "<banner >1 >2 <log <1 <2",
    ">1 <1 >2 >3 <banner <3 <2",
    ">1 >2 >3 <1 <log <1 <2 <3",
    ">1 >2 >. <1 <banner <2 <log",
    ">1 >odd >2 <odd <1 <2",
]


@pytest.mark.parametrize("words", SESSIONS)
def test_a_client_that_sends_everything_at_once_gets_the_recorded_order(words: str, tmp_path: Path) -> None:
    with Mocking(written(tmp_path / "order.mcpspy", recorded(words).records)) as mock:
        mock.send(b"".join(as_bytes(line(word)) for word in words.split() if word[0] == ">" and word != ">."))
        sent = [word_of(data) for data in mock.ends()[1]]
    assert sent == [word for word in words.split() if word[0] == "<"]


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


ONE_BY_ONE = [
    (">1 >2 >3 <banner <1 <2 <3", "<banner <1 <2 <3"),
    (">1 >2 >3 >. <banner <1 <2 <3", "<banner <1 <2 <3"),
    (">1 >2 >. <log <2 <1", "<1 <log <2"),
    (">1 >2 <log <1 <log <2", "<log <1 <log <2"),
    (">1 <1 >2 >3 <banner <3 <2", "<1 <2 <banner <3"),
    # twins, in which the message follows an answer: it may be about that, and stays with it
    (">1 >2 <2 <log <1", "<1 <2 <log"),
    (">1 <1 <log >2 <2", "<1 <log <2"),
    (">1 >2 <1 <2 <log >. <banner", "<1 <2 <log <banner"),
    # the error about a line that is no message stays with that line
    (">1 >odd <odd <1 >2 <2", "<1 <odd <2"),
]


@pytest.mark.parametrize(("words", "expected"), ONE_BY_ONE)
def test_a_client_that_waits_for_each_answer_gets_before_it_what_came_before_it(
    words: str, expected: str, tmp_path: Path
) -> None:
    sent: list[str] = []
    with Mocking(written(tmp_path / "order.mcpspy", recorded(words).records)) as mock:
        assert mock.process.stdout is not None
        for word in words.split():
            if word[0] == ">" and word != ">.":
                mock.send(line(word))
            while word[1:].isdigit() and word[0] == ">" and (not sent or sent[-1] != f"<{word[1:]}"):
                sent.append(word_of(mock.process.stdout.readline().rstrip(b"\n")))
        assert mock.process.stdin is not None
        mock.process.stdin.close()
        mock.process.stdin = None
        sent += [word_of(data) for data in mock.process.stdout.read().splitlines()]
    assert sent == expected.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (">1 >2 <log <1 <2", "<log <1 <2"),
        (">1 >2 <log <2 <1", "<1 <log <2"),
        (">1 >2 <2 <log <1", "<1 <2 <log"),  # a twin: it may be about the answer
    ],
)
def test_over_http_the_order_is_kept_too(words: str, expected: str, tmp_path: Path) -> None:
    capture = written(tmp_path / "order.mcpspy", recorded(f"{OPENED} {words}").records)
    with HttpMocking(capture, "--transport", "sse") as mock:
        stream = mock.connect().ask(method="GET", path="/sse")
        sender = mock.connect()
        sender.path = stream.event()["data"]
        for word in f"{OPENED} {words}".split():
            if word[0] == ">":
                assert sender.ask(line(word)).response.read() is not None
        sent = [word_of(json.dumps(stream.next()).encode()) for _ in range(4)]
    assert sent == ["<0", *expected.split()]


OPENED = ">0 <0 >note"
