"""A mock before a replay: what a capture serves, over whichever transport, is what the same capture asks for, and nothing differs.

No server and no SDK is needed for that, so all captures are played: those of captures/, and the calls of tests/transcript/recorded.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.terminal import COPY
from tests.conftest import ROOT
from tests.deadlines import SCENE_S
from tests.interop.matrix import CAPTURES, SERVED, TRANSPORTS, mocking
from tests.starting import finished
from tests.tiers import current_tier

RECORDED = ROOT / "tests" / "transcript" / "recorded"
FILES = [*(CAPTURES / f"{name}.mcpspy" for name in SERVED), *sorted(RECORDED.glob("*.mcpspy"))]

SENT_AWAY = ("$.server.exit.code", "$.server.exit.signal")
"""Of a server that had to be sent away the mock plays all but that."""

CELLS = [(file, transport) for file in FILES for transport in TRANSPORTS]
CALLS = [cell for cell in CELLS if cell[0].parent == RECORDED]
"""Those of captures/ are played to real clients and servers too."""
SAMPLE = [
    cell for cell in CELLS if (cell[0].stem, cell[1]) in (("research", "stdio"), ("urls", "streamable"), ("stateless", "sse"))
]


@contextmanager
def served(capture: Path, transport: str, folder: Path) -> Iterator[list[str]]:
    """The words that name the mock of a capture to `mcpspy replay`."""
    if transport == "stdio":
        yield ["--", *COPY, "mock", str(capture), "--capture", str(folder / "own.mcpspy")]
    else:
        with mocking(capture, transport, folder) as url:  # to who does not say who asks it says what the server said
            yield ["--url", url, "--transport", transport, "--header", "Authorization: Bearer good"]


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize(
    ("capture", "transport"),
    current_tier()(sample=SAMPLE, more=CALLS, full=CELLS),
    ids=lambda cell: cell.stem if isinstance(cell, Path) else cell,
)
def test_a_replay_before_a_mock_of_the_same_capture_meets_no_difference(capture: Path, transport: str, tmp_path: Path) -> None:
    with served(capture, transport, tmp_path) as target:
        words = [*COPY, "replay", str(capture), "--yes", "--json", "--capture", str(tmp_path / "live.mcpspy")]
        done = finished([*words, *target], timeout_s=SCENE_S)
    assert done.stdout, done.stderr
    (client,) = json.loads(done.stdout)["clients"]
    (server,) = client["comparison"]["servers"]
    calls = [
        call
        for call in server["calls"]
        if not (capture.stem == "goodbye" and transport != "stdio" and call["method"] == "roots/list")
    ]
    identity = [difference for difference in server["identity"] if difference["path"] not in SENT_AWAY]
    assert (calls, identity, server["definitions"], client["late"], client["misses"]) == ([], [], [], [], [])
    assert client["requests"] > 0
