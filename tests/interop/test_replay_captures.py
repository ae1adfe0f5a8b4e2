"""Each capture of captures/ whose session ended well, played by `mcpspy replay` to the server that made it: nothing differs.

What is left out, and what is volatile, is named in matrix.py.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captures.make import STORIES, put
from captures.serving import environment, port, started
from mcpspy.capture.file.reader import read
from mcpspy.records import CLIENT
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import NpmProgram
from tests.deadlines import SCENE_S
from tests.interop.matrix import REPLAYED, SERVED, Replayed, placed
from tests.tiers import current_tier

USUAL = Replayed()
NPM = [
    name
    for name in SERVED
    if STORIES[name].command[0] in ("mcp-server-everything", "mcp-server-filesystem", "mcp-server-memory")
]
PYTHON = [name for name in SERVED if name not in NPM]


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
    with started(words, folder, folder / "home" / "server.log", variables) as said:
        yield ["--url", f"http://127.0.0.1:{port(said)}{story.path}"]


def replay(name: str, folder: Path, *ignored: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of a replay."""
    how = REPLAYED.get(name, USUAL)
    variables = {key: value.replace("FOLDER", str(folder)) for key, value in STORIES[name].variables.items()}
    with placed(name, folder) as capture, server(name, folder) as target:
        words = [sys.executable, "-m", "mcpspy", "replay", str(capture), "--yes", "--json"]
        words += [
            "--capture",
            str(folder / "own.mcpspy"),
            *how.options,
            *(word for rule in ignored for word in ("--ignore", rule)),
        ]
        done = subprocess.run(
            [*words, *target],
            cwd=folder,
            env={**environment(folder), **variables},
            capture_output=True,
            text=True,
            timeout=SCENE_S,
            check=False,
        )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, told


def hold_alike(name: str, folder: Path) -> None:
    """Nothing differs, and all that the recorded client asked was asked."""
    how = REPLAYED.get(name, USUAL)
    status, told = replay(name, folder, *how.volatile)
    (client,) = told["clients"]
    assert (status, client["comparison"]["summary"]["different"], client["lost"]) == (0, False, None), told
    exchanges = transcribe(read(str(folder / f"{name}.mcpspy"))).exchanges
    assert client["requests"] == sum(one.sender == CLIENT for one in exchanges) - how.unsent
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


@pytest.mark.parametrize("name", [name for name, how in REPLAYED.items() if how.volatile])
def test_what_is_left_out_as_volatile_does_differ(name: str, tmp_path: Path) -> None:
    status, told = replay(name, tmp_path)
    assert (status, told["clients"][0]["comparison"]["summary"]["changed"]) == (1, 1)
