"""The scenes: which client says what to which server. `python` ones need PyPI alone, `npm` ones the programs of tests/npm."""

import json
import sys
from typing import Any

from captures.make import TOOLS, call, files
from tests.conftest import PEERS
from tests.interop.playing import Scene, git_repository

PYCLIENT = (sys.executable, str(PEERS / "pyclient.py"), "stdio")
PYSERVER = (sys.executable, str(PEERS / "pyserver.py"), "stdio")
MODULE = (sys.executable, str(PEERS / "module.py"))
STUBBORN = (sys.executable, str(PEERS / "stubborn.py"), "--grandchild", "FOLDER/stubborn.log")
INSPECTOR = ("mcp-inspector", "--cli")


def steps(mode: str, *wanted: dict[str, Any]) -> tuple[str, ...]:
    """Return the command line of the client that does these steps (tests/peers/stepclient.py)."""
    return (sys.executable, str(PEERS / "stepclient.py"), mode, json.dumps(wanted))


ZONES = {"source_timezone": "Europe/Berlin", "time": "16:30", "target_timezone": "Asia/Tokyo"}
LETTERS = 3_000_000
"""More than any pipe holds: in either direction one message is many reads and, where the capture is concerned, several parts."""

PYTHON = {
    "official server, modern": Scene(client=(*PYCLIENT, "auto"), server=PYSERVER, opening="server/discover"),
    "official server, legacy": Scene(client=(*PYCLIENT, "legacy"), server=PYSERVER),
    "mcp-server-time, modern": Scene(
        client=steps("auto", TOOLS, call("convert_time", **ZONES), call("get_current_time", timezone="Mars/Olympus")),
        server=(*MODULE, "mcp_server_time", "--local-timezone=UTC"),
        opening="server/discover",
    ),
    "mcp-server-git, legacy": Scene(
        client=steps(
            "legacy",
            TOOLS,
            call("git_status", repo_path="FOLDER/repository"),
            {
                "together": [
                    call("git_log", repo_path="FOLDER/repository"),
                    call("git_diff_unstaged", repo_path="FOLDER/repository"),
                ]
            },
            call("git_status", repo_path="FOLDER/elsewhere"),
        ),
        server=(*MODULE, "mcp_server_git", "--repository", "FOLDER/repository"),
        prepare=git_repository,
    ),
}

NPM = {
    "server-everything, sampling, elicitation, roots, progress": Scene(
        client=steps(
            "legacy",
            TOOLS,
            {"list": "prompts"},
            {"list": "resources"},
            {"read": "demo://resource/static/document/structure.md"},
            call("echo", message="zwölf\u2028\u0085 \N{PILE OF POO} \\ \x00"),
            {**call("trigger-long-running-operation", duration=0.4, steps=4), "progress": True},
            call("trigger-sampling-request", prompt="What is a tap?"),
            call("trigger-elicitation-request"),
            call("get-roots-list"),
            {"together": [call("echo", message=str(number)) for number in range(20)]},
            call("no-such-tool"),
        ),
        server=("mcp-server-everything", "stdio"),
    ),
    "server-everything, large, to a client that first tries the modern era": Scene(
        client=steps("auto", {"call": "echo", "large": {"message": LETTERS}}),
        server=("mcp-server-everything", "stdio"),
        opening="server/discover",
    ),
    "server-filesystem": Scene(
        client=steps(
            "legacy",
            call("list_directory", path="FOLDER/files"),
            call("read_text_file", path="FOLDER/files/menü.txt"),
            call("write_file", path="FOLDER/files/new.txt", content="new\n"),
            call("list_directory", path="FOLDER/files"),
            call("read_text_file", path="FOLDER/diary.txt"),
        ),
        server=("mcp-server-filesystem", "FOLDER/files"),
        prepare=files,
    ),
    "server-memory": Scene(
        client=steps(
            "auto",
            call("create_entities", entities=[{"name": "mcpspy", "entityType": "program", "observations": ["records"]}]),
            call("search_nodes", query="records"),
            call("open_nodes", names=["nobody"]),
        ),
        server=("mcp-server-memory",),
        variables={"MEMORY_FILE_PATH": "FOLDER/memory.jsonl"},
        opening="server/discover",
    ),
    "inspector, official server": Scene(
        client=INSPECTOR,
        server=PYSERVER,
        after=("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2"),
        is_node=True,
        eats_dashes=True,
    ),
    "inspector, server-everything": Scene(
        client=INSPECTOR,
        server=("mcp-server-everything", "stdio"),
        after=("--method", "tools/call", "--tool-name", "echo", "--tool-arg", f"message={'large ' * 20_000}"),
        is_node=True,
        eats_dashes=True,
    ),
}
