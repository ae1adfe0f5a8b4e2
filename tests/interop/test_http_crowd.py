"""Many clients at once, whose request ids are the same: nobody gets another's answer, and the capture gives nobody one."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy import Exchange, transcribe
from tests.conftest import PEERS
from tests.interop.http_scenes import official
from tests.interop.serving import HttpScene, play_tapped
from tests.tiers import Tier, current_tier

MILLION = 1_000_000


def crowd(kind: str, mode: str, count: int) -> HttpScene:
    server = official(kind, mode, logged="")
    client = (sys.executable, str(PEERS / "crowd.py"), mode, str(count), "URL")
    return HttpScene(client=client, server=server.server, path=server.path)


def sums(exchange: Exchange) -> tuple[int, int]:
    """Return the number that a client sent, and the sum that it got."""
    output: dict[str, Any] = json.loads(exchange.request.raw)["params"]["arguments"]
    assert exchange.response is not None, f"{output} was not answered"
    return output["a"], json.loads(exchange.response.raw)["result"]["structuredContent"]["result"]


CROWDS = [("http", "auto"), ("sse", "legacy"), ("http", "legacy"), ("sse", "auto")]


@pytest.mark.parametrize(("kind", "mode"), current_tier()(sample=CROWDS[:1], more=CROWDS, full=CROWDS))
def test_each_of_many_clients_gets_its_own_answer(kind: str, mode: str, tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=12, more=100, full=100)
    played, records = play_tapped(crowd(kind, mode, count), tmp_path / "crowd")
    assert played.status == 0, played.errors
    right = [(number, number + MILLION) for number in range(count)]
    assert sorted(tuple(map(int, line.split())) for line in played.output.splitlines()) == right
    calls = [row for row in transcribe(records).rows if isinstance(row, Exchange) and row.request.method == "tools/call"]
    assert sorted(map(sums, calls)) == right
