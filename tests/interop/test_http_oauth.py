"""OAuth through mcpspy: a client that is asked to log in does so at the server's own authorization server, and comes back in."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mcpspy
from captures.serving import port, started
from mcpspy.records import CLIENT_PROCESSES, Note, Open
from tests.conftest import NPM_MODULES, NPM_SCRIPTS, PEERS, NpmProgram
from tests.interop.faults import faults
from tests.interop.scenes import steps
from tests.interop.serving import HttpScene, play, recorded, serving
from tests.tiers import current_tier

CALL = {"call": "whoami", "arguments": {}}


def guarded(client: tuple[str, ...], issuer: str = "http://127.0.0.1:9") -> HttpScene:
    """Make a scene with a server that requires a token of `issuer`."""
    return HttpScene(client=client, server=(sys.executable, str(PEERS / "authserver.py"), "0", issuer), path="/mcp")


def asking(mode: str) -> tuple[str, ...]:
    return (sys.executable, str(PEERS / "loginclient.py"), mode, "URL")


@contextmanager
def authorizing(folder: Path) -> Iterator[tuple[str, Callable[[], list[dict[str, str]]]]]:
    """An authorization server. Yields its URL, and what it was asked."""
    folder.mkdir()
    (folder / "home").mkdir()
    with started([sys.executable, str(PEERS / "issuer.py"), "0"], folder, folder / "issuer.log", {}) as output:
        yield f"http://127.0.0.1:{port(output)}", lambda: [json.loads(line) for line in output().splitlines()[1:]]


LOGINS = [(mode, options) for mode in ("auto", "legacy") for options in ((), ("--redact", "none"))]


@pytest.mark.parametrize(("mode", "options"), current_tier()(sample=LOGINS[:1], more=LOGINS, full=LOGINS))
def test_a_client_logs_in_through_mcpspy(mode: str, options: tuple[str, ...], tmp_path: Path) -> None:
    with authorizing(tmp_path / "issuer") as (issuer, requests):
        scene = guarded(asking(mode), issuer)
        with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run", *options) as tap:
            played = play(scene, tap, tmp_path / "run")
        assert played.status == 0, played.errors
        assert played.output == "me\n"
        assert [(request["method"], request["path"]) for request in requests()] == [
            ("GET", "/.well-known/oauth-authorization-server"),
            ("POST", "/register"),
            ("GET", "/authorize"),
            ("POST", "/token"),
        ]
        assert {request["resource"] for request in requests()} == {None, tap}, "the resource is what the client knows: mcpspy"
    assert faults(list(mcpspy.read(tmp_path / "run" / "a.mcpspy"))) == []


def test_a_client_on_the_typescript_sdk_logs_in_through_mcpspy(tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")  # which brings the SDK
    program = ("node", str(NPM_SCRIPTS / "oauth_client.mjs"), str(NPM_MODULES), "URL")
    with authorizing(tmp_path / "issuer") as (issuer, requests):
        scene = guarded(program, issuer)
        with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tap:
            played = play(scene, tap, tmp_path / "run")
        assert played.output == '[{"type":"text","text":"me"}]\n', played.errors
        assert {request["resource"] for request in requests()} == {None, tap}


def test_what_is_mapped_is_recorded_as_it_came_and_as_it_was_sent_on(tmp_path: Path) -> None:
    with authorizing(tmp_path / "issuer") as (issuer, _):
        scene = guarded(asking("legacy"), issuer)
        with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run", "--redact", "none") as tap:
            play(scene, tap, tmp_path / "run")
    records = list(mcpspy.read(tmp_path / "run" / "a.mcpspy"))
    ours, theirs = tap.removesuffix("/mcp").encode(), url.removesuffix("/mcp").encode()
    challenge = next(record for record in records if isinstance(record, Open) and record.head.startswith(b"HTTP/1.1 401"))
    assert b'resource_metadata="' + theirs in challenge.head
    assert challenge.forwarded is not None
    assert challenge.forwarded == challenge.head.replace(theirs, ours)
    (metadata,) = (record for record in records if isinstance(record, mcpspy.records.Frame) and b'"resource":' in record.data)
    assert metadata.forwarded == metadata.data.replace(theirs, ours)
    assert json.loads(metadata.forwarded)["authorization_servers"] == [f"{issuer}/"]


def test_a_token_from_the_command_line_lets_a_client_in_without_a_flow(tmp_path: Path) -> None:
    scene, folder = guarded((*steps("auto", CALL), "URL")), tmp_path / "run"
    with serving(scene, folder) as url, recorded(url, folder, "--header", "Authorization: Bearer good") as tap:
        played = play(scene, tap, folder)
    assert played.status == 0, played.errors
    assert '"text": "me"' in played.output
    assert b"Bearer good" not in (folder / "a.mcpspy").read_bytes()


def test_a_client_that_cannot_log_in_fails_as_it_does_without_mcpspy(tmp_path: Path) -> None:
    scene = guarded((*steps("auto", CALL), "URL"))
    with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tap:
        direct, through = (play(scene, place, tmp_path / name) for place, name in ((url, "direct"), (tap, "tapped")))
    assert direct.status != 0
    assert through == direct


def test_a_proof_that_is_bound_to_an_address_is_named_as_what_cannot_work(tmp_path: Path) -> None:
    client = (
        "python",
        "-c",
        "import sys, httpx2; print(httpx2.get(sys.argv[1], headers={'DPoP': 'proof'}).status_code)",
        "URL",
    )
    scene = guarded(client)
    with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tap:
        assert play(scene, tap, tmp_path / "run").output == "401\n"
    notes = [record for record in mcpspy.read(tmp_path / "run" / "a.mcpspy") if isinstance(record, Note)]
    assert [note.topic for note in notes if note.topic != CLIENT_PROCESSES] == ["dpop"]
