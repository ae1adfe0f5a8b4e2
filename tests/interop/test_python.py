"""mcpspy between clients and servers on the official Python SDK, in both eras: neither can tell that it is there."""

import json
from pathlib import Path

import pytest

from tests.interop.playing import Playing, escalations, play_logged, stored, tap
from tests.interop.scenes import PYTHON

pytestmark = pytest.mark.parametrize("name", PYTHON)


def test_the_client_sees_the_same_with_mcpspy_as_without(name: str, tmp_path: Path) -> None:
    scene = PYTHON[name]
    runs = Playing(scene, tmp_path / "direct"), Playing(scene, tmp_path / "tapped", tap(scene))
    direct, tapped = (run.end() for run in runs)
    assert direct.status == 0, direct.errors
    assert tapped == direct
    assert escalations(stored(tmp_path / "tapped")) == [], "mcpspy had no reason to do anything but forward"


def test_the_capture_holds_the_bytes_of_the_wire(name: str, tmp_path: Path) -> None:
    scene = PYTHON[name]
    played, client_end, capture, server_end = play_logged(scene, tmp_path / "logged")
    assert played.status == 0, played.errors
    assert capture == client_end
    assert capture == server_end
    assert json.loads(capture.stdin.splitlines()[0])["method"] == scene.opening
