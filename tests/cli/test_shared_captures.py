"""Captures over HTTP that several clients share: each row is in the recording of its client, and no row is in none."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.store.folder import captures_folder
from mcpspy.records import CLIENT_PROCESSES, Note, Record
from tests.capture.making import header, lines
from tests.cli.terminal import run
from tests.transcript.dialogue import result
from tests.transcript.traffic import Traffic, initialize

NAMED = {"claude": 11, "cursor": 12}


def shared(agents: dict[str, str], **unknown: str) -> None:
    """Store a capture of two clients, and of requests on connections that nobody noted, by the program that they name."""
    traffic = Traffic(header=header())
    for name, pid in NAMED.items():
        fields = {"User_Agent": agents[name]}
        traffic.post(initialize(0, name), connection=pid, fields=fields).answer(200, result(0), Mcp_Session_Id=f"s-{name}")
    for target, agent in unknown.items():
        traffic.call("GET", f"/{target}", fields={"User_Agent": agent} if agent else {}).answer(404, b"?")
    processes = [{"pid": pid, "name": name, "start": 2, "first_ns": 0, "last_ns": 9} for name, pid in NAMED.items()]
    extra = {"connections": [[pid, pid] for pid in NAMED.values()], "processes": processes}
    records: list[Record] = [*traffic.records[1:], Note(at_ns=traffic.tick(), topic=CLIENT_PROCESSES, text="…", extra=extra)]
    path = Path(captures_folder()) / "shared.mcpspy"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(records, of=traffic.records[0], end_ns=traffic.tick()))  # type: ignore[arg-type]


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
