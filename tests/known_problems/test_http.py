"""Problems of HTTP: proxies that collect, streams that open late or die, dead sessions, DPoP, clients that share."""

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from mcpspy.records import Close, Note, Open, Record
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.interop.serving import recorded
from tests.known_problems.stage import Caller, Case, Play, assert_found, assert_silent, hello, later, over_http, serving, slowed

STEPS = 7
"""Times 0.35 s: longer than the silence that the rule looks for."""


MOVED = 301


def count(client: Caller) -> None:
    """Make a call that reports progress."""
    client.greet()
    client.post("tools/call", 1, name="count", arguments={"n": STEPS}, _meta={"progressToken": "t"})


def behind(*proxy: str) -> Play:
    """Reach the server through another proxy."""

    def play(folder: Path) -> Path:
        with (
            serving(folder) as server,
            serving(folder, "0", str(server), *proxy, peer="gatherer.py") as number,
            recorded(f"http://127.0.0.1:{number}/mcp", folder) as tap,
            closing(Caller(tap)) as client,
        ):
            count(client)
        return folder / "a.mcpspy"

    return play


def listen(client: Caller) -> None:
    """Open the stream of a session, and read it to its end."""
    client.greet()
    with suppress(OSError, HTTPException):
        client.request("GET").read()


def listen_a_while(client: Caller) -> None:
    """Open it, and leave it after its keep-alives."""
    client.greet()
    stream = client.request("GET")
    for _ in range(3):
        stream.readline()
        stream.readline()


def outlive_stream(client: Caller) -> None:
    """Open the stream of a session, read it to its end, and go on."""
    listen(client)
    client.post("tools/list", 1)


def listen_and_list(client: Caller) -> None:
    """Open the stream of a session, read its keep-alives, and go on without it."""
    listen_a_while(client)
    client.post("tools/list", 1)


def ask_for_stream_and_list(client: Caller) -> None:
    """Ask for the stream of a session, and go on before the head of the response is there."""
    client.greet()
    client.begin("GET")
    client.post("tools/list", 1)


def restarted(*faults: str, again: bool) -> Play:
    """Restart the server in the middle of a session; the client begins a new one, or does not."""

    def play(folder: Path) -> Path:
        with ExitStack() as stack:
            with serving(folder, "0", *faults) as number:
                tap = stack.enter_context(recorded(f"http://127.0.0.1:{number}/mcp", folder))
                client = stack.enter_context(closing(Caller(tap)))
                client.greet()
                client.post("tools/list", 1)
            with serving(folder, str(number), *faults):
                client.post("tools/list", 2)
                if again:
                    client.greet()
                client.post("tools/list", 3)
        return folder / "a.mcpspy"

    return play


def list_tools(client: Caller) -> None:
    """Do a session with one request."""
    client.greet()
    client.post("tools/list", 1)


def forget_session(client: Caller) -> None:
    """Do the same without naming the session."""
    client.greet()
    client.fields.clear()
    client.post("tools/list", 1)


def prove(client: Caller) -> None:
    """Do the same with a DPoP proof."""
    client.fields["DPoP"] = "eyJ0eXAiOiJkcG9wK2p3dCJ9.e30."
    client.post("initialize", 0, **hello())


def log_in(client: Caller) -> None:
    """Begin a login: send a request that is refused, and fetch the metadata that the refusal names."""
    client.post("initialize", 0, **hello())
    client.request("GET", "/.well-known/oauth-protected-resource/mcp").read()


def crowd(client: Caller) -> None:
    """Run two clients of HTTP+SSE that both count their ids from 0."""
    endpoints = []
    for _ in range(2):
        stream = client.request("GET", "/sse")
        stream.readline()
        endpoints.append(stream.readline().decode().removeprefix("data: ").strip())
    for path in endpoints:
        client.post("initialize", 0, path, **hello("2024-11-05"))


def ends(record: Record) -> bool:
    """Return whether a stream breaks off here."""
    return isinstance(record, Close) and record.how != "eof"


def lists(record: Record) -> bool:
    """Tell whether the request for the tools begins here: it comes after the handshake and the stream."""
    return isinstance(record, Open) and record.transaction > 3


def is_left(record: Record) -> bool:
    """Tell whether the client leaves a stream here, or leaves before there is one."""
    return (isinstance(record, Note) and record.topic in {"half-closed", "left"}) or ends(record)


CASES = (
    Case(problem=5, rule="events-in-burst", culprit="unclear", faulty=behind(), sound=behind("streaming")),
    Case(
        problem=6,
        rule="late-head",
        culprit="server",
        faulty=over_http(listen_a_while, "late=2100"),
        sound=over_http(listen_a_while),
    ),
    Case(
        problem=6,
        rule="late-head",
        culprit="server",
        faulty=later(over_http(ask_for_stream_and_list, "headless"), 10, is_left),
        sound=later(over_http(ask_for_stream_and_list), 10, is_left),
    ),
    Case(
        problem=6,
        rule="stream-not-reopened",
        culprit="server",
        faulty=later(over_http(outlive_stream, "brief"), 10, lists),
        sound=later(over_http(listen_and_list), 10, lists),
    ),
    Case(
        problem=6,
        rule="idle-stream-cut",
        culprit="unclear",
        faulty=later(over_http(listen, "reset=1"), 60, ends),
        sound=later(over_http(listen_a_while), 60, ends),
    ),
    Case(
        problem=6,
        rule="keep-alive-stopped",
        culprit="server",
        faulty=slowed(over_http(listen, "reset=800"), 100),
        sound=slowed(over_http(listen_a_while), 100),
    ),
    Case(problem=7, rule="session-unknown", culprit="client", faulty=restarted(again=False), sound=restarted(again=True)),
    Case(
        problem=7,
        rule="session-unknown",
        culprit="server",
        faulty=restarted("vague", again=False),
        sound=restarted("vague", again=True),
    ),
    Case(problem=7, rule="session-missing", culprit="client", faulty=over_http(forget_session), sound=over_http(list_tools)),
    Case(
        problem=8,
        rule="foreign-resource",
        culprit="server",
        faulty=over_http(log_in, "resource=https://mcp.example/mcp"),
        sound=over_http(log_in, "resource=own"),
    ),
    Case(
        problem=8, rule="dpop-proof", culprit="mcpspy", faulty=over_http(prove, "bound"), sound=over_http(list_tools, "bound")
    ),
    Case(
        problem=17,
        rule="ambiguous-stream",
        culprit="server",
        faulty=over_http(crowd, "shared", path="/sse"),
        sound=over_http(crowd, path="/sse"),
    ),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)


def test_clients_that_were_given_one_endpoint_are_not_blamed_for_equal_ids() -> None:
    stream = "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages\n"
    hello = '→ POST /messages\n  initialize 0 {"protocolVersion":"2024-11-05","capabilities":{}}\n← 202 Accepted\n'
    answer = '← #2 data: result 0 {"protocolVersion":"2024-11-05","capabilities":{}}\n'
    made = transcribe(records(f"{stream}{stream}{hello}{hello}{answer}{answer}"))
    assert [(finding.rule, finding.culprit) for finding in made.findings] == [("ambiguous-stream", "server")]


def open_once(client: Caller) -> None:
    """Send initialize, and follow a redirect as clients do."""
    response = client.post("initialize", 0, **hello())
    if response.status == MOVED:
        client.request("GET", response.headers["Location"]).read()
    else:
        client.greet()


@pytest.mark.parametrize(
    ("fault", "talk", "rule"),
    [
        ("moved", open_once, "redirect-loses-body"),
        ("renamed", count, "unheard-answer"),
        ("plain", list_tools, "body-contradicts-head"),
    ],
)
def test_a_server_that_answers_in_a_way_that_clients_do_not_read_is_to_blame(
    fault: str, talk: Callable[[Caller], None], rule: str, tmp_path: Path
) -> None:
    case = Case(problem=0, rule=rule, culprit="server", faulty=over_http(talk, fault), sound=over_http(talk))
    for folder in (tmp_path / "faulty", tmp_path / "sound"):
        folder.mkdir()
    assert_found(case, tmp_path / "faulty")
    assert_silent(case, tmp_path / "sound")
