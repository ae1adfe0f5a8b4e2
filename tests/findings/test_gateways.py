"""Faults of gateways that were tapped on both sides: the gateway is blamed for its own, and for no other's.

client ──[a.mcpspy]── gateway ──[b.mcpspy]── server
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

import mcpspy
from captures.serving import port, started, tapped
from mcpspy.capture.file.format import header_line, record_line
from mcpspy.cli.check import command
from mcpspy.cli.diff import command as diff
from mcpspy.records import Damage, Frame, Header
from tests.cli.terminal import COPY
from tests.conftest import PEERS
from tests.deadlines import eventually
from tests.known_problems.stage import Caller, Talker, asking, hello, python, serving
from tests.known_problems.test_http import listen
from tests.starting import Program

Talk = Callable[[Caller], None]
COPIED: Any = {"program": tuple(COPY), "start": Program}


@contextmanager
def hops(folder: Path, gateway: str = "", server: str = "") -> Iterator[str]:
    """Run a server, a tap, a reverse proxy and a tap, each with its fault. Yields the URL for clients."""
    with (
        serving(folder, "0", *server.split()) as number,
        tapped(
            f"http://127.0.0.1:{number}/mcp", folder, "--label", "server", "--capture", str(folder / "b.mcpspy"), **COPIED
        ) as inner,
        started(
            [sys.executable, str(PEERS / "reverseproxy.py"), "0", inner, *gateway.split()], folder, folder / "log", {}, Program
        ) as output,
        tapped(
            f"http://127.0.0.1:{port(output)}/mcp",
            folder,
            "--label",
            "gateway",
            "--capture",
            str(folder / "a.mcpspy"),
            **COPIED,
        ) as outer,
    ):
        yield outer


def checked(folder: Path) -> list[dict[str, Any]]:
    """Give the findings of the two captures that are worse than a note."""
    done = CliRunner().invoke(command, [str(folder / "a.mcpspy"), str(folder / "b.mcpspy"), "--json"])
    assert done.stdout, done.stderr
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["severity"] != "note"]


def slow_down(folder: Path, times: int) -> None:
    """Multiply the times of both captures."""
    headers = {name: next(mcpspy.read(folder / name)) for name in ("a.mcpspy", "b.mcpspy")}
    first = min((header for header in headers.values() if isinstance(header, Header)), key=lambda header: header.monotonic_ns)
    since = first.wall_ns, first.monotonic_ns
    for name, header in headers.items():
        assert isinstance(header, Header)
        header.wall_ns, header.monotonic_ns = (
            begin + (time - begin) * times for begin, time in zip(since, (header.wall_ns, header.monotonic_ns), strict=True)
        )
        lines = [header_line(header)]
        for number, record in enumerate(list(mcpspy.read(folder / name))[1:], 1):
            assert not isinstance(record, Damage)
            record.at_ns *= times
            if isinstance(record, Frame):
                record.first_ns *= times
            lines.append(record_line(number, record))
        (folder / name).write_bytes(b"".join(lines))


def call(client: Caller, id: int = 2) -> None:
    """Call the tool that reports progress."""
    client.post("tools/call", id, name="count", arguments={"n": 7}, _meta={"progressToken": "t"})


def work(client: Caller) -> None:
    """List the tools, and call one."""
    client.greet()
    client.post("tools/list", 1)
    call(client)


def work_without_revision(client: Caller) -> None:
    """Do the same without a header field that is required."""
    client.greet()
    del client.fields["MCP-Protocol-Version"]
    client.post("tools/list", 1)
    call(client)


def be_cut(client: Caller) -> None:
    """Call a tool whose answer does not come whole."""
    client.greet()
    with suppress(HTTPException, OSError):
        call(client)


def meet(client: Caller) -> None:
    """Begin two sessions, which both count their ids from 0, and call a tool in each."""
    client.greet()
    first = dict(client.fields)
    client.greet()
    client.post("tools/list", 1)
    client.fields = first
    client.post("tools/list", 1)


def count_far(client: Caller) -> None:
    """Call a tool with a number that a double cannot hold."""
    client.greet()
    client.post("tools/call", 2, name="count", arguments={"n": 1, "seed": 2**60 + 1}, _meta={"progressToken": "t"})


class Fault(NamedTuple):
    """A fault of the gateway, or of the server, and who is to be blamed for what."""

    rule: str
    culprit: str
    gateway: str = ""
    server: str = ""
    talk: Talk = work
    times: int = 1

    def __str__(self) -> str:
        return f"{self.rule}-{self.culprit}"


FAULTS = (
    Fault("events-in-burst", "gateway", gateway="gathers"),
    Fault("changed-by-gateway", "gateway", gateway="rounds", talk=count_far),
    Fault("withheld-by-gateway", "gateway", gateway="mutes"),
    Fault("redirect-loses-body", "gateway", gateway="login"),
    Fault("missing-header", "gateway", gateway="drops=mcp-protocol-version"),
    Fault("missing-header", "client", talk=work_without_revision),
    Fault("http-error", "gateway", gateway="refuses=500"),
    Fault("id-reused", "gateway", gateway="merges", talk=meet),
    Fault("unanswered-request", "gateway", gateway="tires=100", talk=be_cut),
    Fault("keep-alive-stopped", "gateway", gateway="cuts=500", talk=listen, times=100),
    Fault("keep-alive-stopped", "server", server="reset=500", talk=listen, times=100),
)


@pytest.mark.grid(4)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_side_that_made_a_fault_is_blamed_for_it_once(fault: Fault, tmp_path: Path) -> None:
    with hops(tmp_path, fault.gateway, fault.server) as url, closing(Caller(url)) as client:
        fault.talk(client)
    slow_down(tmp_path, fault.times)
    found = [(finding["rule"], finding["culprit"]) for finding in checked(tmp_path)]
    if fault.times > 1:  # then so are the delays of a busy machine, and may be findings too
        found = [named for named in found if named[0] == fault.rule]
    assert found == [(fault.rule, fault.culprit)]


def test_a_gateway_that_passes_everything_on_is_blamed_for_nothing(tmp_path: Path) -> None:
    with hops(tmp_path) as url, closing(Caller(url)) as client:
        work(client)
        count_far(client)
        meet(client)
    assert checked(tmp_path) == []


def test_a_finding_on_both_hops_has_the_rows_of_both_and_names_them(tmp_path: Path) -> None:
    with hops(tmp_path) as url, closing(Caller(url)) as client:
        work_without_revision(client)
    (finding,) = checked(tmp_path)
    assert len(finding["rows"]) == 4
    assert finding["hop"] == "talker ↔ gateway ↔ server"


def test_an_answer_that_a_gateway_keeps_is_no_fault_of_a_client_that_leaves(tmp_path: Path) -> None:
    params = {"name": "count", "arguments": {"n": 0}, "_meta": {"progressToken": "t"}}
    with hops(tmp_path, "swallows") as url, closing(Caller(url)) as client:
        client.greet()
        waiting = client.begin("POST", asking("tools/call", 2, params))
        eventually(lambda: b'\\"content\\"' in (tmp_path / "b.mcpspy").read_bytes(), "the server to answer")
        client.post("tools/list", 3)
        waiting.close()
        eventually(lambda: b'"left"' in (tmp_path / "a.mcpspy").read_bytes(), "the client to leave")
    slow_down(tmp_path, 1000)
    (finding,) = checked(tmp_path)
    assert finding["rule"] in ("given-up", "timed-out")  # by chance the time is that of a usual limit
    assert finding["culprit"] == "gateway"
    assert "; no answer reached the client." in finding["what"]


def test_diff_shows_row_by_row_what_a_gateway_changed(tmp_path: Path) -> None:
    with hops(tmp_path, "drops=mcp-protocol-version") as url, closing(Caller(url)) as client:
        work(client)
    done = CliRunner().invoke(diff, [str(tmp_path / "b.mcpspy"), str(tmp_path / "a.mcpspy"), "--json"])
    compared = json.loads(done.stdout)
    assert (compared["summary"]["different"], compared["hops"], compared["before"][0]["label"]) == (True, True, "gateway")
    assert [(row["name"], row["lost_fields"]) for row in compared["rows"]] == [
        ("tools/list", ["MCP-Protocol-Version"]),
        ("tools/call count", ["MCP-Protocol-Version"]),
    ]
    text = CliRunner().invoke(diff, [str(tmp_path / "a.mcpspy"), str(tmp_path / "b.mcpspy")]).stdout
    assert "two hops of one gateway" in text
    assert text.count("gateway left out MCP-Protocol-Version") == 2


def test_diff_of_a_gateway_that_passes_everything_on_finds_no_difference(tmp_path: Path) -> None:
    with hops(tmp_path) as url, closing(Caller(url)) as client:
        work(client)
    done = CliRunner().invoke(diff, [str(tmp_path / "a.mcpspy"), str(tmp_path / "b.mcpspy")])
    assert "✓ gateway passed everything on" in done.stdout


STRICT = """
import json, sys
begun = False
for line in sys.stdin:
    message = json.loads(line)
    begun |= message["method"] == "initialize"
    if "id" in message:
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "strict", "version": "1"}}
        error = {"code": -32602, "message": "Received request before initialization was complete"}
        answer = {"result": version} if message["method"] == "initialize" else {"result": {}} if begun else {"error": error}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.mark.parametrize(("swallowed", "expected"), [("initialize", {("missing-initialize", "gateway")}), ("nothing", set())])
def test_a_gateway_that_keeps_the_handshake_back_is_blamed_for_its_lack(
    swallowed: str, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    tap = [sys.executable, "-m", "mcpspy", "run", "--quiet", "--label", "server", "--capture", str(tmp_path / "b.mcpspy"), "--"]
    gateway = [*python("swallow.py"), swallowed, *tap, sys.executable, "-c", STRICT]
    with Talker(gateway, "--label", "gateway", "--capture", str(tmp_path / "a.mcpspy")) as client:
        client.say("initialize", 0, **hello())
        client.say("notifications/initialized")
        client.ask("ping", 1)
        client.say("tools/list", 2)
        client.say("ping", 3)
        client.heard()
        client.heard()
        client.close(client.stdin)
        client.rest()
        client.wait()
    found = {(finding["rule"], finding["culprit"]) for finding in checked(tmp_path)}
    assert {(rule, culprit) for rule, culprit in found if rule == "missing-initialize"} == expected


BRIDGES = (
    ("stdout-noise", "gateway", "noise"),
    ("id-type-mismatch", "gateway", "respells"),
    ("session-missing", "gateway", "sessionless"),
    ("unanswered-request", "gateway", "swallows"),
    ("", "", ""),
)


@pytest.mark.parametrize(("rule", "culprit", "fault"), BRIDGES)
def test_a_bridge_from_stdio_is_blamed_for_its_own_faults(rule: str, culprit: str, fault: str, tmp_path: Path) -> None:
    with (
        serving(tmp_path) as number,
        tapped(
            f"http://127.0.0.1:{number}/mcp", tmp_path, "--label", "server", "--capture", str(tmp_path / "b.mcpspy"), **COPIED
        ) as inner,
        Talker(
            [*python("bridge.py"), inner, *fault.split()], "--label", "bridge", "--capture", str(tmp_path / "a.mcpspy")
        ) as client,
    ):
        client.greet()
        client.ask("tools/list", 1)
        client.say("tools/call", 2, name="count", arguments={"n": 1}, _meta={"progressToken": "t"})
        client.ask("tools/list", 3)
        if fault != "swallows":
            client.heard()
        client.close(client.stdin)
        client.rest()
        client.wait()
    assert {(finding["rule"], finding["culprit"]) for finding in checked(tmp_path)} == {(rule, culprit)} - {("", "")}
