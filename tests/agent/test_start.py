"""The start of `mcpspy mcp`: it imports of the official SDK what it needs, and all of it for those who ask for more."""

import json
import subprocess
import sys

CODE = """
import json, sys
from mcpspy.agent.sdk_alone import alone
with alone():
    import mcpspy.agent.server
    import mcpspy.agent.server as again
from pydantic import BaseModel
before = sorted(sys.modules)
import mcp
from mcp.server import MCPServer
print(json.dumps([before, mcp.Client.__module__, MCPServer.__module__, BaseModel.model_config]))
with alone():
    import mcpspy.agent.server
"""


def test_the_sdk_is_imported_without_its_client_and_is_whole_for_those_who_ask() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    modules, client, server, config = json.loads(done.stdout)
    assert not {"mcp.client", "mcp.client.client", "mcp.server.mcpserver", "mcpspy.agent.reports"} & set(modules)
    assert "mcp.server.lowlevel.server" in modules
    assert client == "mcp.client.client"
    assert server.startswith("mcp.server.mcpserver")
    assert config == {}, "models of others are built when they are made"
