"""Logins end through mcpspy as they do without it, whatever the challenge and the metadata look like, and whoever the issuer is.

One kind cannot: fastmcp 4 names itself in the redirect that ends a login which comes back to its own address from another server.
No proxy sees that redirect, and newer clients refuse the name.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import PEERS, BuiltProgram
from tests.interop.login_shapes import SHAPES
from tests.interop.serving import HttpScene, play, recorded, serving
from tests.interop.test_generations import FIRST, SECOND, python, typescript
from tests.tiers import current_tier

CLIENTS = {
    "Python 1": python("mcp1", "loginclient.py", "auto", "URL"),
    "Python 2": python("", "loginclient.py", "auto", "URL"),
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


FAST_CLIENTS = {
    **CLIENTS,
    "fastmcp 3": python("mcp1", "loginclient.py", "fastmcp", "URL"),
    "fastmcp 4": python("mcp2", "loginclient.py", "fastmcp", "URL"),
}
STRICT = ("Python 2", "TypeScript 2", "fastmcp 4")
"""Clients that compare the issuer with the redirect that ends a login (RFC 9207)."""
FAST = [
    (client, version, mode)
    for client in FAST_CLIENTS
    for version in ("mcp1", "mcp2")
    for mode in ("memory", "proxy", "consent")
    if not (mode == "consent" and client.startswith("TypeScript"))  # whose browser fills in no forms
]
FEW_FAST = [("fastmcp 4", "mcp2", "memory"), ("fastmcp 3", "mcp2", "consent")]


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


@pytest.mark.parametrize(("client", "version", "mode"), current_tier()(sample=FEW_FAST, more=FAST, full=FAST))
def test_a_login_at_fastmcp_ends_as_it_does_without_mcpspy(
    client: str, version: str, mode: str, tmp_path: Path, built: BuiltProgram
) -> None:
    sdk, server = FAST_CLIENTS[client], python(version, "fastloginserver.py", mode)
    for needs in filter(None, (sdk.needs, server.needs)):
        built(needs)
    issuer = HttpScene(client=(), server=(sys.executable, str(PEERS / "loginserver.py"), '{"documents": {}}'), path="")
    with serving(issuer, tmp_path / "issuer") as issuer_url:
        scene = HttpScene(client=sdk.words, server=(*server.words, issuer_url), path="/mcp")
        with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tap:
            through = play(scene, tap.replace("127.0.0.1", "localhost"), tmp_path / "tapped")  # cookies go by the host
    is_refused = client in STRICT and (version, mode) in {("mcp2", "proxy"), ("mcp2", "consent")}
    assert bool(re.search(r"\bme\b", through.output)) is not is_refused, through.errors
