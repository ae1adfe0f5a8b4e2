"""A client before a server, recorded, and the same client before the mock of that: it shows, word for word, the same.

The scenes are long ones: progress, questions, large messages, twenty calls at once, errors, and calls that are given up.
"""

from pathlib import Path

import pytest

from tests.interop.http_scenes import PYTHON
from tests.interop.matrix import mocking
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
