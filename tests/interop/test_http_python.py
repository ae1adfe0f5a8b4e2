"""mcpspy between HTTP clients and servers on the official Python SDK, in both eras: neither can tell that it is there."""

import json
from pathlib import Path

import pytest

from mcpspy.records import CLIENT
from tests.interop.http_scenes import PYTHON
from tests.interop.serving import play_both, play_logged
from tests.interop.wires import disagreements, recorded

pytestmark = pytest.mark.parametrize("name", PYTHON)


def test_the_client_sees_the_same_with_mcpspy_as_without(name: str, tmp_path: Path) -> None:
    direct, tapped = play_both(PYTHON[name], tmp_path)
    assert direct.status == 0, direct.errors
    assert tapped == direct


def test_the_capture_holds_the_bytes_of_the_wire(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "logged"
    played, records = play_logged(PYTHON[name], folder)
    assert played.status == 0, played.errors
    assert disagreements(folder, records) == []
    posted = [json.loads(message.body) for one in recorded(records, CLIENT) for message in one.requests if message.body]
    assert PYTHON[name].opening in {message["method"] for message in posted[:1]}
