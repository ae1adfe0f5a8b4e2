"""Messages of 2026-07-28 that an intercept withholds or answers, at real servers.

For each action the client sees what the intercept says, the server sees what the client sent minus what was withheld, with the
fields that the client gave it, and nobody is accused of anything. What is expected of messages that reach the server is what it
answers without mcpspy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from socket import MSG_PEEK
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.cli.terminal import run
from tests.conftest import BuiltProgram
from tests.deadlines import DEADLINE_S
from tests.interop import wires
from tests.interop.serving import HttpScene, logged, recorded, serving
from tests.interop.test_edits import ADD, DISCOVER, ENVELOPE, LIST, PLACE, PROMPT, READ, SPEAKERS, fields, request
from tests.interop.test_generations import SERVERS
from tests.tiers import current_tier

COUNT = request("tools/call", name="count", arguments={"to": 2})
COUNT["params"]["_meta"] = ENVELOPE | {"progressToken": "p"}
UNKNOWN = request("no/such")
NOTIFICATION = request("notifications/cancelled", requestId=99_999, reason="x")
MESSAGES = {
    "add": ADD, "count": COUNT, "place": PLACE, "prompt": PROMPT, "read": READ, "list": LIST, "discover": DISCOVER,
    "unknown": UNKNOWN, "none such": request("tools/call", name="none", arguments={}),
}  # fmt: skip
RESULT = {"content": [{"type": "text", "text": "ours \u00e9"}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ANSWER = {"jsonrpc": "2.0", "id": "another", "error": {"code": -32042, "message": "ours", "data": [1]}}


class Seen(NamedTuple):
    """A response as the client saw it: its status, its messages, whether they are events, and the field Retry-After."""

    status: int
    messages: list[Any]
    is_stream: bool = False
    retry_after: str = ""


SILENCE = Seen(0, [])
"""No response came."""


def error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


WITHHELD: dict[str, tuple[str, Seen]] = {
    "drop": ("drop", SILENCE),
    "error": ('error -32000 "try later"', Seen(200, [error(-32000, "try later")])),
    "error of a missing method": ('error -32601 "no \u00e9"', Seen(200, [error(-32601, "no \u00e9")])),
    "respond with a result": ("respond RESULT", Seen(200, [{"result": RESULT}])),
    "respond with an answer": ("respond ANSWER", Seen(200, [{"error": ANSWER["error"]}])),
    "status 503": ("status 503", Seen(503, [])),
    "status 429": ('status 429 "Retry-After: 2"', Seen(429, [], retry_after="2")),
    "status 401": ("status 401 \"WWW-Authenticate: Bearer scope=x\"", Seen(401, [])),
    "status 404": ("status 404", Seen(404, [])),
    "status 202": ("status 202", Seen(202, [])),
    "a delay before an error": ('delay 1ms\n{match} => error -1 "x"', Seen(200, [error(-1, "x")])),
    "two that answer": ('error -1 "x"\n{match} => status 500', Seen(200, [error(-1, "x")])),
    "an edit before an error": ('set params.x=1\n{match} => error -1 "x"', Seen(200, [error(-1, "x")])),
}  # fmt: skip
"""Actions on requests, which the server does not get, and what the client sees."""
PASSED = {
    "drop once before": "drop nth=2",
    "an error never": 'error -1 "x" nth=2',
    "a status later": "status 500 after=1h",
    "another tool": None,
}
"""Actions that do not happen; None is one on another message."""
ANSWERED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "drop an answer": ("drop", None),
    "an error for an answer": ('error -5 "x"', error(-5, "x")),
    "a result for an answer": ("respond RESULT", {"result": RESULT}),
    "an answer for an answer": ("respond ANSWER", {"error": ANSWER["error"]}),
}
"""Actions on answers: the server gets the request."""


def post(url: str, message: dict[str, Any]) -> HTTPConnection:
    """Send a message on a connection of its own."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=DEADLINE_S)
    head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **fields(message)}
    connection.request("POST", parts.path, json.dumps(message), head)
    return connection


def answer(connection: HTTPConnection) -> Seen:
    """Read the response."""
    with closing(connection):
        response = connection.getresponse()
        text = response.read().decode()
    media_type = response.getheader("Content-Type", "")
    texts = [text] if "json" in media_type else [line[5:] for line in text.splitlines() if line.startswith("data:")]
    messages = [json.loads(data) for data in texts if data.strip()]
    return Seen(response.status, messages, "event-stream" in media_type, response.getheader("Retry-After", ""))


def unanswered(connection: HTTPConnection) -> Seen:
    """Return the silence of a connection on which nothing came, or else what came."""
    connection.sock.setblocking(False)
    try:
        connection.sock.recv(1, MSG_PEEK)
    except BlockingIOError:
        connection.close()
        return SILENCE
    connection.sock.settimeout(DEADLINE_S)
    return answer(connection)


@dataclass
class Session:
    """The messages of a session by number: as the client saw them directly and through mcpspy, and as the server saw them."""

    direct: dict[int, Seen] = field(default_factory=dict)
    through: dict[int, Seen] = field(default_factory=dict)
    received: dict[int, tuple[dict[str, str], dict[str, Any]]] = field(default_factory=dict)
    notified: tuple[Seen, Seen] = (SILENCE, SILENCE)
    notifications: int = 0
    capture: Path = Path()


CELLS = [
    *((name, what) for name in (*WITHHELD, *PASSED, *ANSWERED, "no intercept") for what in MESSAGES),
    ("drop progress", "count"), ("drop all of the server", "count"),
]  # fmt: skip
ACTING = {*WITHHELD, *ANSWERED, "drop all of the server"}
NUMBERS = {cell: 1000 + at for at, cell in enumerate(CELLS)}


def rules(folder: Path) -> Iterator[str]:
    """Write all intercepts."""
    for name, value in (("RESULT", RESULT), ("ANSWER", ANSWER)):
        (folder / name).write_text(json.dumps(value))
    for (name, _), number in NUMBERS.items():
        match = f"id:{number} kind:request"
        if name in WITHHELD:
            action = WITHHELD[name][0].format(match=match)
        elif name in PASSED:
            action = PASSED[name] or 'error -1 "x"'
            match += " tool:other" if PASSED[name] is None else ""
        elif name in ANSWERED:
            match, action = f"id:{number} (kind:result or kind:error)", ANSWERED[name][0]
        elif name == "drop progress":
            match, action = f"id:{number} kind:notification", "drop"
        elif name == "drop all of the server":
            match, action = f"id:{number} sender:server", "drop"
        else:
            continue
        for word in ("RESULT", "ANSWER"):
            action = action.replace(word, str(folder / word))
        yield f"{match} => {action}"
    yield "method:notifications/cancelled => drop"


@pytest.fixture(scope="module", params=current_tier()(sample=SPEAKERS[:1], more=SPEAKERS, full=SPEAKERS))
def session(request: pytest.FixtureRequest, built: BuiltProgram, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """All cells at one server."""
    server = request.param
    if SERVERS[server].needs:
        built(SERVERS[server].needs)
    scene = HttpScene(client=(), server=(*SERVERS[server].words, "http", "mirrored"), path="/mcp")
    folder = tmp_path_factory.mktemp("actions")
    intercepts = folder / "intercepts.txt"
    intercepts.write_text("\n".join(rules(folder)) + "\n")
    session = Session(capture=folder / "a.mcpspy")
    with (
        serving(scene, folder / "run") as url,
        logged(url, folder, "inner") as inner,
        recorded(inner, folder, "--redact", "none", "--allowed-host", "127.0.0.1", "--intercepts", str(intercepts)) as through,
    ):
        silent = []
        for (name, what), number in NUMBERS.items():
            message = MESSAGES[what] | {"id": number}
            session.direct[number] = answer(post(url, message))
            connection = post(through, message)
            if name == "drop" or (name == "drop an answer" and not session.direct[number].is_stream):
                silent.append((number, connection))
            else:
                session.through[number] = answer(connection)
        session.notified = answer(post(url, NOTIFICATION)), answer(post(through, NOTIFICATION))
        for number, connection in silent:
            session.through[number] = unanswered(connection)
    for connected in wires.logged(folder / "inner"):
        for sent in connected.requests:
            message = json.loads(sent.body)
            heads = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in sent.head.decode().split("\r\n"))
            }
            session.notifications += "id" not in message
            if "id" in message:
                assert message["id"] not in session.received, "it came twice"
                session.received[message["id"]] = heads, message
    return session


def expected(name: str, what: str, session: Session) -> Seen:
    """Return what the client has to see of a cell."""
    number = NUMBERS[name, what]
    direct = session.direct[number]
    if name in WITHHELD:
        seen = WITHHELD[name][1]
        return seen._replace(messages=[{"jsonrpc": "2.0", "id": number, **message} for message in seen.messages])
    if name == "drop all of the server":
        return direct._replace(messages=[]) if direct.is_stream else SILENCE
    if name == "drop progress":
        return direct._replace(messages=[message for message in direct.messages if "id" in message])
    if name not in ANSWERED:
        return direct
    ours = ANSWERED[name][1]
    if ours is None and not direct.is_stream:
        return SILENCE
    kept = [message for message in direct.messages if "id" not in message]
    return direct._replace(messages=kept if ours is None else [*kept, {"jsonrpc": "2.0", "id": number, **ours}])


@pytest.mark.parametrize(("name", "what"), CELLS, ids=[f"{what}: {name}" for name, what in CELLS])
def test_the_client_sees_what_the_intercept_says_and_the_server_what_was_not_withheld(
    name: str, what: str, session: Session
) -> None:
    number = NUMBERS[name, what]
    assert session.through[number] == expected(name, what, session)
    message = MESSAGES[what] | {"id": number}
    if name in WITHHELD:
        assert number not in session.received
        return
    heads, body = session.received[number]
    assert body == message
    sent = {name.lower(): value for name, value in fields(message).items()}
    assert {name: value for name, value in heads.items() if name.startswith("mcp-")} == sent


def test_a_notification_that_is_dropped_is_accepted_and_does_not_reach_the_server(session: Session) -> None:
    direct, through = session.notified
    assert (through, direct.status // 100, session.notifications) == (Seen(202, []), 2, 0)


def test_check_accuses_nobody_of_what_an_intercept_did(session: Session) -> None:
    findings = json.loads(run("check", "--json", str(session.capture)).stdout)["findings"]
    assert {finding["severity"] for finding in findings} <= {"info", "note"}, findings
    assert {finding["culprit"] for finding in findings} <= {"unclear"}, findings


def test_the_capture_says_what_happened_to_each_message(session: Session) -> None:
    rows = json.loads(run("show", "--json", str(session.capture)).stdout)["rows"]
    exchanges = {row["id"]: row for row in rows if row["kind"] == "exchange"}
    wrong = []
    for cell, number in NUMBERS.items():
        row, seen = exchanges.pop(number), expected(*cell, session)
        wrong += [(cell, row["outcome"])] if not tells(row, cell[0], seen) else []
    assert (wrong, exchanges) == ([], {})


def tells(row: dict[str, Any], name: str, seen: Seen) -> bool:
    """Return whether a row says what the client saw, and what reached the server."""
    flaws = [flaw for message in (row["request"], row["response"]) if message for flaw in message.get("flaws", ())]
    is_withheld = any(flaw.endswith(": not passed on") for flaw in flaws)
    answers = [message for message in seen.messages if "id" in message]
    if is_withheld != (name in WITHHELD) or any(flaw.startswith("intercepted") for flaw in flaws) != (name in ACTING):
        return False
    if not answers:
        return row["outcome"] in ("unanswered", "cancelled", "probe", "http error")
    (message,) = answers
    failure = message.get("error")
    if failure is None:
        return bool(row["outcome"] == ("tool error" if message["result"].get("isError") else "ok"))
    is_probe = row["outcome"] == "probe" and row["method"] == "server/discover"
    shown = row.get("error", {})
    names_it = (shown["code"], shown["message"]) == (failure["code"], failure["message"])
    return names_it and bool(row["outcome"] == "error" or is_probe)
