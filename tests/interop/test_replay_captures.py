"""Each capture of captures/ whose session ended well, played by `mcpspy replay` to the server that made it: nothing differs.

What is left out, and what is volatile, is named in matrix.py.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from captures.make import STORIES, put
from captures.serving import environment, port, started
from mcpspy.capture.file.reader import read
from mcpspy.records import CLIENT, Header
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import COPY
from tests.conftest import NpmProgram, Peer
from tests.deadlines import SCENE_S
from tests.interop.matrix import CAPTURES, REPLAYED, SERVED, TIME, Replayed, placed
from tests.starting import finished
from tests.tiers import current_tier

USUAL = Replayed()
NPM = [
    name
    for name in SERVED
    if STORIES[name].command[0] in ("mcp-server-everything", "mcp-server-filesystem", "mcp-server-memory")
]
PYTHON = [name for name in SERVED if name not in NPM]
DAYS = {
    1: {"datetime", "day_of_week"},
    7: {"datetime"},
    181: {"datetime", "day_of_week", "is_dst", "time_difference"},  # the 21st of May: summer in Berlin, and never in Tokyo
}
"""So many days after `time` was recorded, these members of results differ."""


@contextmanager
def server(name: str, folder: Path) -> Iterator[list[str]]:
    """The words that name a story's server to `mcpspy replay`: its command, or its URL; then it runs."""
    story, places = STORIES[name], {"FOLDER": str(folder), "PORT": "0", "ISSUER": "http://127.0.0.1:9"}
    story.prepare(folder)
    words = put(story.command, **places)
    if not story.path:
        yield ["--", *words]
        return
    variables = dict(zip(story.variables, put(list(story.variables.values()), **places), strict=True))
    with started(words, folder, folder / "home" / "server.log", variables) as output:
        yield ["--url", f"http://127.0.0.1:{port(output)}{story.path}"]


def time_server(peer: Peer, days: int) -> list[str]:
    """Return the command of the time server, with its clock so many days after its capture."""
    header = next(read(str(CAPTURES / "time.mcpspy")))
    assert isinstance(header, Header)
    moment = datetime.fromtimestamp(header.wall_ns / 1e9, UTC) + timedelta(days=days)
    return [*peer("timeserver.py"), moment.isoformat(), *STORIES["time"].command[1:]]


def replay(name: str, folder: Path, rules: Sequence[str] = (), command: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of a replay with these ignore rules; to `command` in place of the story's server, if there is one."""
    how = REPLAYED.get(name, USUAL)
    variables = {key: value.replace("FOLDER", str(folder)) for key, value in STORIES[name].variables.items()}
    with placed(name, folder) as capture, server(name, folder) as usual:
        target = ["--", *command] if command else usual
        words = [*COPY, "replay", str(capture), "--yes", "--json"]
        words += [
            "--capture",
            str(folder / "own.mcpspy"),
            *how.options,
            *(word for rule in rules for word in ("--ignore", rule)),
        ]
        done = finished([*words, *target], folder, {**environment(folder), **variables}, timeout_s=SCENE_S)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


def hold_alike(name: str, folder: Path, command: Sequence[str] = ()) -> None:
    """Check that nothing differs, and that every request of the recorded client was sent."""
    how = REPLAYED.get(name, USUAL)
    status, report = replay(name, folder, how.rules, command)
    (client,) = report["clients"]
    assert (status, client["comparison"]["summary"]["different"], client["lost"]) == (0, False, None), report
    exchanges = transcribe(read(str(folder / f"{name}.mcpspy"))).exchanges
    assert client["requests"] == sum(exchange.sender == CLIENT for exchange in exchanges) - how.unsent
    assert len(client["unsent"]) == how.unsent
    assert client["comparison"]["summary"]["same"] == len(exchanges) - how.unsent


@pytest.mark.parametrize("name", current_tier()(sample=["oauth", "sse", "stateless", "time"], more=PYTHON, full=PYTHON))
def test_a_capture_played_to_the_server_that_made_it_meets_no_difference(name: str, tmp_path: Path) -> None:
    hold_alike(name, tmp_path)


@pytest.mark.parametrize("name", NPM)
def test_a_capture_played_to_the_npm_server_that_made_it_meets_no_difference(
    name: str, tmp_path: Path, npm_program: NpmProgram
) -> None:
    npm_program("mcp-server-everything")  # the server is named as users do; here it is looked for
    hold_alike(name, tmp_path)


@pytest.mark.parametrize("days", DAYS)
def test_the_time_server_meets_no_difference_on_another_day(days: int, tmp_path: Path, peer: Peer) -> None:
    hold_alike("time", tmp_path, time_server(peer, days))


@pytest.mark.parametrize(("days", "names"), DAYS.items())
def test_without_ignore_rules_the_two_calls_that_tell_the_time_differ(
    days: int, names: set[str], tmp_path: Path, peer: Peer
) -> None:
    status, report = replay("time", tmp_path, command=time_server(peer, days))
    (server,) = report["clients"][0]["comparison"]["servers"]
    changed = [call for call in server["calls"] if call["how"] == "changed"]
    assert (status, len(server["calls"])) == (1, len(changed))
    assert [call["target"] for call in changed] == ["get_current_time", "convert_time"]
    assert {change["path"].rpartition(".")[2] for call in changed for change in call["answer"]} == names


def test_each_name_that_is_left_out_does_differ_on_some_day() -> None:
    assert set.union(*DAYS.values()) == set(TIME)
