"""Clients and servers of both generations of the official SDKs, and of fastmcp: nobody is accused because they are not of one age.

A client of the second generation probes for the modern era before it falls back to `initialize`; a server of the first does not know
what it is asked. All that is found here would be false, for these are the SDKs as they come, with a scene that has no fault.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.terminal import run
from tests.conftest import NPM_SCRIPTS, PEERS, ROOT, BuiltProgram
from tests.interop.playing import Playing, Scene, tap
from tests.interop.serving import HttpScene, play, recorded, serving
from tests.tiers import current_tier

NODE = "node"
FIRST, SECOND = (str(ROOT / "build" / name / "node_modules") for name in ("npm", "npm2"))
SCENE = "3\ncounted\n"


class Sdk(NamedTuple):
    """A package as a client or a server: what of build it needs, and the words that start it."""

    needs: str
    words: tuple[str, ...]


def python(environment: str, program: str, *words: str) -> Sdk:
    """Give a program of tests/peers, in an environment below build, or in that of the tests."""
    interpreter = str(ROOT / "build" / environment / "bin" / "python") if environment else sys.executable
    return Sdk(f"{environment}/bin/python" if environment else "", (interpreter, str(PEERS / program), *words))


def typescript(modules: str, program: str, *words: str) -> Sdk:
    """Give a program of tests/npm."""
    return Sdk(f"{Path(modules).parent.name}/.installed", (NODE, str(NPM_SCRIPTS / program), modules, *words))


CLIENTS = {
    "Python 1": python("mcp1", "sdkclient.py", "mcp"),
    "Python 2": python("", "sdkclient.py", "mcp"),
    "fastmcp 3": python("mcp1", "sdkclient.py", "fastmcp"),
    "fastmcp 4": python("mcp2", "sdkclient.py", "fastmcp"),
    "TypeScript 1": typescript(FIRST, "sdk_client.mjs", "default"),
    "TypeScript 2": typescript(SECOND, "sdk_client.mjs", "default"),
    "TypeScript 2, auto": typescript(SECOND, "sdk_client.mjs", "auto"),
}
SERVERS = {
    "Python 1": python("mcp1", "sdkserver.py", "mcp"),
    "Python 2": python("", "sdkserver.py", "mcp"),
    "fastmcp 3": python("mcp1", "sdkserver.py", "fastmcp"),
    "fastmcp 4": python("mcp2", "sdkserver.py", "fastmcp"),
    "TypeScript 1": typescript(FIRST, "sdk_server.mjs"),
    "TypeScript 2": typescript(SECOND, "sdk_server.mjs"),
}
PATHS = {"stdio": "", "sse": "/sse", "http": "/mcp"}

ALL = [
    (client, server, transport)
    for client in CLIENTS
    for server in SERVERS
    for transport in PATHS
    if (server, transport) != ("TypeScript 2", "sse")  # it speaks HTTP+SSE no more
]
OLD_OVER_HTTP = [names for names in ALL if names[1:] == ("Python 1", "http")]


@pytest.mark.parametrize(("client", "server", "transport"), current_tier()(sample=OLD_OVER_HTTP, more=ALL, full=ALL))
def test_check_finds_nothing(client: str, server: str, transport: str, tmp_path: Path, built: BuiltProgram) -> None:
    for sdk in (CLIENTS[client], SERVERS[server]):
        if sdk.needs:
            built(sdk.needs)
    words, server_words = CLIENTS[client].words, (*SERVERS[server].words, transport)
    folder = tmp_path / "run"
    if transport == "stdio":
        scene = Scene(client=words, server=server_words)
        played = Playing(scene, folder, tap(scene, "--capture", str(folder / "a.mcpspy"))).end()
    else:
        http = HttpScene(client=(*words, "URL"), server=server_words, path=PATHS[transport])
        with serving(http, folder) as url, recorded(url, folder) as through:
            played = play(http, through, folder)
    assert (played.output, played.status) == (SCENE, 0), played.errors
    captures = list(map(str, folder.glob("*.mcpspy")))  # a client that probes may start its server twice
    done = run("check", *captures)
    assert done.returncode == 0, done.stdout
