"""mcpspy between the newest inspector, which brings a Node of its own, and servers of both SDKs, over both kinds of HTTP."""

from dataclasses import replace
from pathlib import Path

import pytest

from captures.serving import LOOPBACK_ONLY, ROOT
from tests.conftest import NpmProgram
from tests.interop.faults import faults
from tests.interop.http_scenes import TOOL_CALL
from tests.interop.scenes import PYSERVER
from tests.interop.serving import HttpScene, play_both
from tests.interop.wires import disagreements

MODULES = ROOT / "build" / "inspector" / "node_modules"
INSPECTOR = (
    str(MODULES / ".bin" / "node"),
    str(MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"),
    "--cli",
    "--server-url",
    "URL",
    "--transport",
)


def scene(transport: str, server: tuple[str, ...], path: str, tool: str, *arguments: str) -> HttpScene:
    """Make a scene in which the inspector calls one tool."""
    return HttpScene(client=(*INSPECTOR, transport, *TOOL_CALL, tool, "--tool-arg", *arguments), server=server, path=path)


LARGE = f"message={'large ' * 20_000}"
SCENES = {
    "the official server, Streamable HTTP": scene("http", (*PYSERVER[:-1], "http", "0"), "/mcp", "add", "a=1", "b=2"),
    "the official server, HTTP+SSE": scene("sse", (*PYSERVER[:-1], "sse", "0"), "/sse", "add", "a=1", "b=2"),
    "server-everything, Streamable HTTP": replace(
        scene("http", ("mcp-server-everything", "streamableHttp"), "/mcp", "echo", LARGE), variables=LOOPBACK_ONLY
    ),
    "server-everything, HTTP+SSE": replace(
        scene("sse", ("mcp-server-everything", "sse"), "/sse", "echo", LARGE), variables=LOOPBACK_ONLY
    ),
}


@pytest.fixture(autouse=True)
def _installed(npm_program: NpmProgram) -> None:
    npm_program("mcp-server-everything")
    if not Path(INSPECTOR[1]).exists():
        pytest.skip("the inspector is not installed: make npm")


@pytest.mark.parametrize("name", SCENES)
def test_the_inspector_sees_the_same_with_mcpspy_as_without_the_capture_holds_the_wire_and_nothing_is_found(
    name: str, tmp_path: Path
) -> None:
    run = play_both(SCENES[name], tmp_path)
    assert run.direct.status == 0, run.direct.errors
    assert run.tapped == run.direct
    assert disagreements(run.wires, run.records) == []
    assert faults(run.records) == []
