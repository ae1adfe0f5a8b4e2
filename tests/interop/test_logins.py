"""Logins end through mcpspy as they do without it, whatever the challenge and the metadata look like, and whoever the issuer is."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import PEERS, BuiltProgram
from tests.interop.login_shapes import SHAPES
from tests.interop.serving import HttpScene, play, recorded, serving
from tests.interop.test_generations import FIRST, SECOND, python, typescript
from tests.tiers import current_tier

CLIENTS = {
    "Python 1": python("mcp1", "loginclient.py", "URL"),
    "Python 2": python("", "loginclient.py", "URL"),
    "TypeScript 1": typescript(FIRST, "oauth_client.mjs", "URL"),
    "TypeScript 2": typescript(SECOND, "oauth_client.mjs", "URL"),
}
ALL = [(client, shape) for shape in SHAPES for client in CLIENTS]
FEW = [
    ("Python 2", shape)
    for shape in (
        "itself, all of it",
        "without quotes",
        "at a path of its own",
        "as in 2025-03-26",
        "itself, and checks the resource",
    )
]


@pytest.mark.parametrize(("client", "shape"), current_tier()(sample=FEW, more=ALL[:: len(CLIENTS) + 1], full=ALL))
def test_a_login_ends_as_it_does_without_mcpspy(client: str, shape: str, tmp_path: Path, built: BuiltProgram) -> None:
    sdk = CLIENTS[client]
    if sdk.needs:
        built(sdk.needs)
    server = (sys.executable, str(PEERS / "loginserver.py"), json.dumps(SHAPES[shape]))
    scene = HttpScene(client=sdk.words, server=server, path="/mcp")
    with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tap:
        direct, through = (play(scene, place, tmp_path / name) for place, name in ((url, "direct"), (tap, "tapped")))
    assert (through.output, through.status) == (direct.output, direct.status), through.errors
