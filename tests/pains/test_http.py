"""Pains of HTTP: proxies that gather, streams that open late or die, sessions that are lost, proofs, clients that share."""

from contextlib import ExitStack, closing, suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from mcpspy.records import Close, Record
from mcpspy.transcript.transcribe import transcribe
from tests.findings.telling import told
from tests.interop.serving import recorded
from tests.pains.stage import Caller, Play, Scene, assert_found, assert_silent, hello, later, over_http, serving, slowed

STEPS = 7
"""Of 0.35 s: longer than a silence has to be to be odd."""


def count(client: Caller) -> None:
    """A call that reports progress."""
    client.greet()
    client.post("tools/call", 1, name="count", arguments={"n": STEPS}, _meta={"progressToken": "t"})


def behind(*proxy: str) -> Play:
    """The same, to a server that mcpspy reaches through another proxy."""

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
    """The same, and leave it after its keep-alives."""
    client.greet()
    stream = client.request("GET")
    for _ in range(3):
        stream.readline()
        stream.readline()


def restarted(*, again: bool) -> Play:
    """A server that is started again in the middle of a session, and a client that begins another, or does not."""

    def play(folder: Path) -> Path:
        with ExitStack() as stack:
            with serving(folder) as number:
                tap = stack.enter_context(recorded(f"http://127.0.0.1:{number}/mcp", folder))
                client = stack.enter_context(closing(Caller(tap)))
                client.greet()
                client.post("tools/list", 1)
            with serving(folder, str(number)):
                client.post("tools/list", 2)
                if again:
                    client.greet()
                client.post("tools/list", 3)
        return folder / "a.mcpspy"

    return play


def list_tools(client: Caller) -> None:
    """A session with one request."""
    client.greet()
    client.post("tools/list", 1)


def forget_session(client: Caller) -> None:
    """The same, without naming the session."""
    client.greet()
    client.fields.clear()
    client.post("tools/list", 1)


def prove(client: Caller) -> None:
    """The same with a proof that the client has a key."""
    client.fields["DPoP"] = "eyJ0eXAiOiJkcG9wK2p3dCJ9.e30."
    client.post("initialize", 0, **hello())


def log_in(client: Caller) -> None:
    """The beginning of a login: a request that is refused, and the metadata that the refusal names."""
    client.post("initialize", 0, **hello())
    client.request("GET", "/.well-known/oauth-protected-resource/mcp").read()


def crowd(client: Caller) -> None:
    """Two clients of HTTP+SSE, both of which count their ids from 0."""
    endpoints = []
    for _ in range(2):
        stream = client.request("GET", "/sse")
        stream.readline()
        endpoints.append(stream.readline().decode().removeprefix("data: ").strip())
    for path in endpoints:
        client.post("initialize", 0, path, **hello("2024-11-05"))


def ends(record: Record) -> bool:
    """Whether a stream ends here that was not meant to."""
    return isinstance(record, Close) and record.how != "eof"


SCENES = (
    Scene(pain=5, rule="events-in-burst", culprit="unclear", ill=behind(), well=behind("streaming")),
    Scene(
        pain=6, rule="late-head", culprit="server", ill=over_http(listen_a_while, "late=2100"), well=over_http(listen_a_while)
    ),
    Scene(
        pain=6,
        rule="idle-stream-cut",
        culprit="unclear",
        ill=later(over_http(listen, "reset=1"), 60, ends),
        well=later(over_http(listen_a_while), 60, ends),
    ),
    Scene(
        pain=6,
        rule="keep-alive-stopped",
        culprit="server",
        ill=slowed(over_http(listen, "reset=800"), 100),
        well=slowed(over_http(listen_a_while), 100),
    ),
    Scene(pain=7, rule="session-unknown", culprit="client", ill=restarted(again=False), well=restarted(again=True)),
    Scene(pain=7, rule="session-missing", culprit="client", ill=over_http(forget_session), well=over_http(list_tools)),
    Scene(
        pain=8,
        rule="foreign-resource",
        culprit="server",
        ill=over_http(log_in, "resource=https://mcp.example/mcp"),
        well=over_http(log_in, "resource=own"),
    ),
    Scene(pain=8, rule="dpop-proof", culprit="mcpspy", ill=over_http(prove, "bound"), well=over_http(list_tools, "bound")),
    Scene(
        pain=17,
        rule="ambiguous-stream",
        culprit="server",
        ill=over_http(crowd, "shared", path="/sse"),
        well=over_http(crowd, path="/sse"),
    ),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)


def test_clients_that_were_given_one_endpoint_are_not_blamed_for_equal_ids() -> None:
    stream = "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages\n"
    hello = '→ POST /messages\n  initialize 0 {"protocolVersion":"2024-11-05","capabilities":{}}\n← 202 Accepted\n'
    answer = '← #2 data: result 0 {"protocolVersion":"2024-11-05","capabilities":{}}\n'
    made = transcribe(told(f"{stream}{stream}{hello}{hello}{answer}{answer}"))
    assert [(one.rule, one.culprit) for one in made.findings] == [("ambiguous-stream", "server")]
