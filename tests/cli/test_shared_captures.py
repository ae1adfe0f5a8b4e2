"""Captures over HTTP that several clients share: each row is in the recording of its client, and no row is in none."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.folder import captures_folder, create
from mcpspy.records import CLIENT_PROCESSES, Note, Record
from tests.capture.making import SECOND_NS, WALL_NS, header, lines
from tests.cli.terminal import run
from tests.transcript.dialogue import result
from tests.transcript.traffic import Traffic, initialize

NAMED = {"claude": 11, "cursor": 12}


def records_of(agents: dict[str, str], began_ns: int, **unknown: str) -> list[Record]:
    """Return records of two clients, and of requests on connections that nobody noted, by the program that they name."""
    traffic = Traffic(header=header(wall_ns=began_ns))
    for name, pid in NAMED.items():
        fields = {"User_Agent": agents[name]}
        traffic.post(initialize(0, name), connection=pid, fields=fields).answer(200, result(0), Mcp_Session_Id=f"s-{name}")
    for target, agent in unknown.items():
        traffic.call("GET", f"/{target}", fields={"User_Agent": agent} if agent else {}).answer(404, b"?")
    processes = [{"pid": pid, "name": name, "start": 2, "first_ns": 0, "last_ns": 9} for name, pid in NAMED.items()]
    extra = {"connections": [[pid, pid] for pid in NAMED.values()], "processes": processes}
    return [*traffic.records, Note(at_ns=traffic.tick(), topic=CLIENT_PROCESSES, text="…", extra=extra)]


def shared(agents: dict[str, str], **unknown: str) -> None:
    """Store these records as a capture that is complete."""
    first, *records = records_of(agents, WALL_NS, **unknown)
    path = Path(captures_folder()) / "shared.mcpspy"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(records, of=first, end_ns=SECOND_NS))  # type: ignore[arg-type]


def targets() -> dict[str, list[str]]:
    """Return the paths of the rows without a message, by the client of each recording."""
    shown: dict[str, list[str]] = {}
    for recording in json.loads(run("list", "--json").stdout)["recordings"]:
        output: dict[str, Any] = json.loads(run("show", f"@{recording['id']}", "--json").stdout)
        rows = [row["target"] for row in output["rows"] if row["kind"] == "transaction"]
        shown[recording["client_process"]] = rows
    return shown


@pytest.mark.parametrize(
    ("agents", "unknown", "claude", "cursor"),
    [
        ({"claude": "node", "cursor": "cursor/1"}, {"a": "node", "b": "cursor/1"}, ["/a"], ["/b"]),
        ({"claude": "node", "cursor": "node"}, {"a": "node"}, ["/a"], ["/a"]),
        ({"claude": "node", "cursor": "cursor/1"}, {"a": "curl/8"}, ["/a"], ["/a"]),
        ({"claude": "node", "cursor": "cursor/1"}, {"a": ""}, ["/a"], ["/a"]),
        ({"claude": "node", "cursor": "cursor/1"}, {"a": "node", "b": "curl/8", "c": "cursor/1"}, ["/a", "/b"], ["/b", "/c"]),
        ({"claude": "node", "cursor": "cursor/1"}, {}, [], []),
    ],
)
def test_a_row_of_a_connection_that_nobody_noted_is_in_one_recording_at_least(
    agents: dict[str, str], unknown: dict[str, str], claude: list[str], cursor: list[str]
) -> None:
    shared(agents, **unknown)
    assert targets() == {"claude": claude, "cursor": cursor}


@pytest.mark.parametrize(("age_s", "claude"), [(60, ["/a"]), (-600, [])])
def test_while_a_proxy_runs_such_a_row_waits_for_the_note_of_its_client_and_no_longer(age_s: int, claude: list[str]) -> None:
    began_ns = time.time_ns() - age_s * SECOND_NS  # in ten minutes, however slow this machine is
    first, *records = records_of({"claude": "node", "cursor": "node"}, began_ns, a="node")
    fd, _ = create(None, "shared", wall_ns=began_ns)
    writer = Writer(fd, header_line(first))  # type: ignore[arg-type]
    writer(records)
    try:
        assert targets() == {"claude": claude, "cursor": claude}
    finally:
        writer.close(SECOND_NS)
