"""Records the captures of this folder anew, each from a real client and a real server.

    python captures/make.py all | NAME…               record, and draw the ladder
    python captures/make.py --ladders all | NAME…     draw the ladders of the captures that are here

A story runs in /tmp/demo, made for it and removed after it, and its whole environment is PATH, HOME and LANG, so that nothing of
the machine gets into a capture. The client is tests/peers/stepclient.py, on the official Python SDK. Servers come from PyPI (`make
test` installs them) and npm (`make npm`).
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS = ROOT / "tests" / "peers"
PROGRAMS = (Path(sys.executable).parent, ROOT / "build" / "npm" / "node_modules" / ".bin")
DEMO = Path("/tmp/demo")  # noqa: S108 - the same in every recording, and nobody else's: mkdir fails if it exists
MAX_S = 60

Step = dict[str, Any]


def nothing(folder: Path) -> None:
    """Prepare nothing: the server keeps no state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A server's command, the client's steps (stepclient.py says how they are written), and what has to be there before.

    FOLDER stands for the folder of the story in all that is text. `mode` is the SDK's: `auto` tries the modern era first,
    `legacy` opens with `initialize`.
    """

    command: Sequence[str]
    steps: Sequence[Step]
    mode: str = "legacy"
    prepare: Callable[[Path], None] = nothing
    variables: dict[str, str] = field(default_factory=dict)


def call(name: str, **arguments: Any) -> Step:
    """The step that calls a tool."""
    return {"call": name, "arguments": arguments}


def repository(folder: Path) -> None:
    """FOLDER/repository: two commits, the same wherever they are made, and a change that is not yet one."""
    home = folder / "repository"
    home.mkdir()
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-02T03:04:05Z")

    def git(*words: str) -> None:
        subprocess.run(["git", *identity, *words], cwd=home, env={**environment(folder), **dates}, timeout=MAX_S, check=True)

    git("init", "--quiet")
    for text in ("Buy milk\n", "Buy milk\nCall Grace\n"):
        (home / "todo.txt").write_text(text, encoding="utf-8")
        git("add", "todo.txt")
        git("commit", "--quiet", "--message", text.splitlines()[-1])
    (home / "todo.txt").write_text("Call Grace\n", encoding="utf-8")


def files(folder: Path) -> None:
    """FOLDER/files: what the filesystem server may see; beside it, what it may not."""
    (folder / "files").mkdir()
    (folder / "files" / "menü.txt").write_text("Zwölf Brötchen\n", encoding="utf-8")
    (folder / "diary.txt").write_text("Nothing happened.\n", encoding="utf-8")


def labserver(folder: Path) -> None:
    """FOLDER/labserver.py: the server of tests/peers on the official Python SDK."""
    shutil.copy(PEERS / "pyserver.py", folder / "labserver.py")


TOOLS: Step = {"list": "tools"}
EVERYTHING = ("mcp-server-everything", "stdio")
LONG = "trigger-long-running-operation"

STORIES = {
    "time": Story(
        command=["mcp-server-time", "--local-timezone=UTC"],
        steps=[
            TOOLS,
            call("get_current_time", timezone="Europe/Berlin"),
            call("convert_time", source_timezone="Europe/Berlin", time="16:30", target_timezone="Asia/Tokyo"),
            call("get_current_time", timezone="Mars/Olympus_Mons"),
        ],
    ),
    "git": Story(
        mode="auto",
        command=["mcp-server-git", "--repository", "FOLDER/repository"],
        steps=[
            TOOLS,
            call("git_status", repo_path="FOLDER/repository"),
            call("git_log", repo_path="FOLDER/repository", max_count=2),
            call("git_diff_unstaged", repo_path="FOLDER/repository"),
            call("git_status", repo_path="FOLDER/elsewhere"),
        ],
        prepare=repository,
    ),
    "filesystem": Story(
        command=["mcp-server-filesystem", "files"],
        steps=[
            TOOLS,
            call("list_directory", path="FOLDER/files"),
            call("read_text_file", path="FOLDER/files/menü.txt"),
            call("write_file", path="FOLDER/files/order.txt", content="Zwölf Brötchen, bitte.\n"),
            call("list_directory", path="FOLDER/files"),
            call("read_text_file", path="FOLDER/diary.txt"),
        ],
        prepare=files,
    ),
    "memory": Story(
        command=["mcp-server-memory"],
        steps=[
            TOOLS,
            call(
                "create_entities",
                entities=[
                    {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]},
                    {"name": "Grace", "entityType": "person", "observations": ["wrote the first compiler"]},
                ],
            ),
            call("create_relations", relations=[{"from": "Grace", "to": "Ada", "relationType": "follows"}]),
            call("search_nodes", query="compiler"),
            call("open_nodes", names=["Charles"]),
        ],
        variables={"MEMORY_FILE_PATH": "FOLDER/memory.jsonl"},
    ),
    "everything": Story(
        command=EVERYTHING,
        steps=[
            TOOLS,
            {**call(LONG, duration=0.6, steps=3), "progress": True},
            call("trigger-sampling-request", prompt="What is a tap?"),
            call("trigger-elicitation-request"),
            call("get-roots-list"),
            {"together": [call("echo", message="first"), call("get-sum", a=1, b=2), call("echo", message="third")]},
        ],
    ),
    "probe": Story(
        mode="auto", command=["mcp-server-filesystem", "files"], steps=[call("list_allowed_directories")], prepare=files
    ),
    "cancelled": Story(
        command=EVERYTHING,
        steps=[
            TOOLS,
            {**call(LONG, duration=2, steps=5), "progress": True, "timeout_s": 1.0},
            call(LONG, duration=1.2, steps=1),
            call("echo", message="still here"),
        ],
    ),
    "goodbye": Story(command=EVERYTHING, steps=[call("echo", message="hello")]),
    "refused": Story(command=["mcp-server-filesystem", "no-such-folder"], steps=[TOOLS]),
    "question": Story(
        mode="auto",
        command=["python", "labserver.py"],
        steps=[TOOLS, {**call("slow", n=2), "progress": True}, call("greet"), {"read": "lab://café/x"}, call("sing")],
        prepare=labserver,
    ),
}


def environment(folder: Path) -> dict[str, str]:
    """All that a story gets of the environment; programs of pip and npm are found by their names."""
    path = os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(folder / "home"), "LANG": "C.UTF-8"}


def record(name: str, folder: Path) -> Path:
    """Play a story in `folder`, which is there and empty. Returns the capture: a file in it."""
    story = STORIES[name]
    (folder / "home").mkdir()
    story.prepare(folder)
    capture = folder / "home" / f"{name}.mcpspy"
    client = ["python", str(PEERS / "stepclient.py"), story.mode, json.dumps(story.steps)]
    tap = ["mcpspy", "run", "--label", name, "--capture", str(capture), "--"]
    words = [word.replace("FOLDER", str(folder)) for word in (*client, *tap, *story.command)]
    variables = {key: value.replace("FOLDER", str(folder)) for key, value in story.variables.items()}
    with open(folder / "home" / "client.log", "wb") as log:  # what the client makes of it is no part of the story
        env = {**environment(folder), **variables}
        subprocess.run(words, cwd=folder, env=env, stdout=log, stderr=log, timeout=MAX_S, check=False)
    return capture


def keep(name: str) -> None:
    """Record a story in DEMO, and put the capture in its place here."""
    DEMO.mkdir(mode=0o700)
    try:
        shutil.copyfile(record(name, DEMO), HERE / f"{name}.mcpspy")
    finally:
        shutil.rmtree(DEMO)


def ladder(capture: Path) -> bytes:
    """What `mcpspy export text` prints of a capture."""
    words = [sys.executable, "-m", "mcpspy", "export", "text", str(capture)]
    return subprocess.run(words, env=environment(capture.parent), capture_output=True, timeout=MAX_S, check=True).stdout


def main(words: list[str]) -> int:
    """Record and draw the stories named. Returns the exit status."""
    names = [word for word in words if word != "--ladders"]
    wanted = list(STORIES) if names == ["all"] else names
    if not wanted or not set(wanted) <= set(STORIES):
        sys.stderr.write(f"usage: python captures/make.py [--ladders] all | NAME…, of: {' '.join(STORIES)}\n")
        return 2
    for name in wanted:
        if "--ladders" not in words:
            keep(name)
        (HERE / f"{name}.txt").write_bytes(ladder(HERE / f"{name}.mcpspy"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
