"""docs/howto.md: the commands of each section work, one after the other, in a project with a client and its server.

`make test` runs the shortest section, CI all of them.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.deadlines import SCENE_S
from tests.tiers import current_tier

PAGE = (ROOT / "docs" / "howto.md").read_text(encoding="utf-8")
PYTHON = [sys.executable, "-P", "-m"]
STEP = re.compile(r"^```sh\n(.*?)^```$|^<!-- the client works(?: with (\S+))? -->$", re.DOTALL | re.MULTILINE)
SECTIONS = {
    title: steps
    for title, _, body in (part.partition("\n") for part in PAGE.split("\n## ")[1:])
    if (steps := list(STEP.finditer(body)))
}


SHORTEST = "Share a capture safely"


def script(steps: list[re.Match[str]]) -> str:
    """Write the shell script of a section: its commands and, where the page says so, the work of a client."""
    lines = ["set -eu"]
    for step in steps:
        commands, capture = step.groups()
        lines.append(commands or f"./client {capture or ''} >client.log 2>&1")
    return "\n".join(lines)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose clients know the server `weather`; `./client` does a client's work, `./client FILE` records it there."""
    folder = tmp_path / "home" / "project"
    (folder / ".git").mkdir(parents=True)
    entry = {"command": str(folder / "server"), "args": ["--units", "metric"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": entry}}, indent=2))
    reads = "import json; one = json.load(open('.mcp.json'))['mcpServers']['weather']; print(one['command'], *one['args'])"
    client = shlex.join([*PYTHON, "mcpspy.demo.client"])
    programs = {
        "server": f"exec {shlex.join([*PYTHON, 'mcpspy.demo.server'])}",
        "client": f'run="mcpspy run --label weather -- ./server"\n'
        f'[ $# = 0 ] || run="mcpspy run --capture $1 --label weather -- ./server"\n'
        f"grep -q mcpspy .mcp.json && run=$({shlex.quote(sys.executable)} -c {shlex.quote(reads)})\nexec {client} $run",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("title", current_tier()(sample=[SHORTEST], more=[*SECTIONS], full=[*SECTIONS]))
def test_the_commands_of_a_section_work(title: str, project: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script(SECTIONS[title])],
        cwd=project,
        env={"HOME": str(project.parent), "PATH": path, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SCENE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    assert not re.search("Traceback|Error: |--help explains", done.stderr), done.stderr


def test_every_section_has_commands_or_real_output() -> None:
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
    assert not [
        title
        for title, text in sections.items()
        if title not in SECTIONS and "```console" not in text and "```python" not in text
    ]
