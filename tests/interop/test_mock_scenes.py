"""A client before a server, recorded, and the same client before the mock of that: it shows, word for word, the same.

The scenes are long ones: progress, questions, large messages, twenty calls at once, errors, and calls that are given up.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import NpmProgram
from tests.interop import scenes
from tests.interop.http_scenes import PYTHON
from tests.interop.matrix import mocking
from tests.interop.playing import Played, Playing, Scene, tap
from tests.interop.serving import play, play_tapped
from tests.tiers import Tier, current_tier

ALL = [(name, transport) for name in PYTHON for transport in ("streamable", "sse")]
SOME = [
    ("Streamable HTTP, modern", "sse"),
    ("HTTP+SSE, legacy", "streamable"),
    ("stateless, legacy", "streamable"),
    ("JSON responses, modern", "streamable"),
]


@pytest.mark.parametrize(("name", "transport"), current_tier()(sample=SOME[:1], more=SOME, full=ALL))
def test_a_client_shows_the_same_before_the_mock_of_its_server(name: str, transport: str, tmp_path: Path, tier: Tier) -> None:
    before, _ = play_tapped(PYTHON[name], tmp_path / "server")
    (tmp_path / "mock").mkdir()
    with mocking(tmp_path / "server" / "a.mcpspy", transport, tmp_path / "mock") as url:
        after = play(PYTHON[name], url, tmp_path / "mock")
    assert before.status == 0, before.errors
    assert after.output == before.output


def hold_alike(scene: Scene, folder: Path) -> None:
    """Before the server and before its mock, in folders of one name."""
    capture, work = folder / "a.mcpspy", folder / "work"
    before = played(scene, work, tap(scene, "--capture", str(capture)))
    mock = (sys.executable, "-m", "mcpspy", "mock", str(capture), "--capture", str(folder / "own.mcpspy"))
    assert played(replace(scene, server=mock), work).output == before.output
    assert before.status == 0, before.errors


def played(scene: Scene, work: Path, through: list[str] | None = None) -> Played:
    shutil.rmtree(work, ignore_errors=True)
    return Playing(scene, work, through or ()).end()


@pytest.mark.parametrize(
    "name", current_tier()(sample=["mcp-server-git, legacy"], more=list(scenes.PYTHON), full=list(scenes.PYTHON))
)
def test_on_stdio_a_client_shows_the_same_too(name: str, tmp_path: Path, tier: Tier) -> None:
    hold_alike(scenes.PYTHON[name], tmp_path)


@pytest.mark.parametrize("name", scenes.NPM)
def test_on_stdio_a_client_shows_the_same_before_the_mock_of_a_server_of_npm(
    name: str, tmp_path: Path, npm_program: NpmProgram
) -> None:
    npm_program("mcp-inspector")  # scenes name programs as users do; here one is looked for
    hold_alike(scenes.NPM[name], tmp_path)
