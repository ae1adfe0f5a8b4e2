"""Records the captures of this folder anew, each from a real client and a real server; runs of agents are in `runs`.

    python -m captures.make all | NAME…               record, and draw the ladder
    python -m captures.make --ladders all | NAME…     draw the ladders of the captures that are here

A story runs in /tmp/demo, made for it and removed after it, and its whole environment is PATH, HOME and LANG, so that nothing of
the machine gets into a capture. The client is tests/peers/stepclient.py, on the official Python SDK, or another of tests/peers.
Servers come from PyPI (`make test` installs them) and npm (`make npm`).
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captures.runs import RUNS, captures_of, record_run
from captures.serving import LOOPBACK_ONLY, PEERS, environment, play, port, started, tapped

HERE = Path(__file__).parent
DEMO = Path("/tmp/demo")  # noqa: S108 - the same in every recording, and nobody else's: mkdir fails if it exists
MAX_S = 60

PORTS = (8000, 8765, 9000)
"""Of the server, of mcpspy and of the authorization server, in the captures that are kept; elsewhere any that is free."""

Step = dict[str, Any]


def nothing(folder: Path) -> None:
    """Prepare nothing: the server keeps no state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A server's command, the client's steps (stepclient.py says how they are written), and what has to be there before.

    FOLDER stands for the folder of the story in all that is text. `mode` is the SDK's: `auto` tries the modern era first,
    `legacy` opens with `initialize`. A server with a `path` is one of HTTP, and listens where PORT says, in its command or its
    variables; ISSUER is the address of an authorization server, which is there if the command speaks of it. A `client` of its
    own, a program of tests/peers and its arguments, gets the URL where URL stands.
    """

    command: Sequence[str]
    steps: Sequence[Step] = ()
    mode: str = "legacy"
    path: str = ""
    client: Sequence[str] = ()
    prepare: Callable[[Path], None] = nothing
    variables: dict[str, str] = field(default_factory=dict)


def call(name: str, **arguments: Any) -> Step:
    """Make the step that calls a tool."""
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
    (folder / "labserver.py").symlink_to(PEERS / "pyserver.py")


def peer(program: str) -> Callable[[Path], None]:
    """FOLDER/program: a server of tests/peers."""

    def link(folder: Path) -> None:
        (folder / program).symlink_to(PEERS / program)

    return link


def known(*names: str) -> Step:
    """Make the step that spares the client the full list of tools: the stories need no more than these."""
    return {"known": names}


TOOLS: Step = {"list": "tools"}
PAGE = call("fetch", url="http://example.org/")
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
            known("create_entities", "create_relations", "search_nodes", "open_nodes"),
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
        mode="auto",
        command=["mcp-server-filesystem", "files"],
        steps=[known("list_allowed_directories"), call("list_allowed_directories")],
        prepare=files,
    ),
    "cancelled": Story(
        command=EVERYTHING,
        steps=[
            known(LONG, "echo"),
            {**call(LONG, duration=2, steps=5), "progress": True, "timeout_s": 1.0},
            call(LONG, duration=1.2, steps=1),
            call("echo", message="still here"),
        ],
    ),
    "goodbye": Story(command=EVERYTHING, steps=[known("echo"), call("echo", message="hello")]),
    "refused": Story(command=["mcp-server-filesystem", "no-such-folder"], steps=[TOOLS]),
    "question": Story(
        mode="auto",
        command=["python", "labserver.py"],
        steps=[TOOLS, {**call("slow", n=2), "progress": True}, call("greet"), {"read": "lab://café/x"}, call("sing")],
        prepare=labserver,
    ),
    "logs": Story(
        command=["python", "logserver.py", "0.5"],
        steps=[
            TOOLS,
            call("calculator", operation="add", a=1000, b=9),
            call("weather", city="北京"),
            call("calculator", operation="divide", a=1, b=0),
        ],
        prepare=peer("logserver.py"),
    ),
    "sse": Story(command=["python", "pageserver.py", "PORT"], path="/sse", steps=[TOOLS, PAGE], prepare=peer("pageserver.py")),
    "channels": Story(
        command=["python", "dialects.py", "PORT"],
        path="/sse",
        client=["walkclient.py", "channels", "URL"],
        prepare=peer("dialects.py"),
    ),
    "prompts": Story(
        command=["python", "dialects.py", "PORT", "0.12"],
        path="/mcp",
        client=["walkclient.py", "prompts", "URL"],
        prepare=peer("dialects.py"),
    ),
    "streamable": Story(
        command=["mcp-server-everything", "streamableHttp"],
        path="/mcp",
        steps=[
            known(LONG, "trigger-sampling-request", "trigger-elicitation-request"),
            call(LONG, duration=0.6, steps=1),
            call("trigger-sampling-request", prompt="What is a tap?"),
            call("trigger-elicitation-request"),
        ],
        variables=LOOPBACK_ONLY,
    ),
    "resumed": Story(
        command=["mcp-server-everything", "streamableHttp"],
        path="/mcp",
        client=["resumeclient.py", "URL", LONG, json.dumps({"duration": 1.2, "steps": 4})],
        variables=LOOPBACK_ONLY,
    ),
    "stateless": Story(
        mode="auto",
        command=["python", "labserver.py", "http", "PORT"],
        path="/mcp",
        steps=[
            TOOLS,
            {**call("slow", n=2), "progress": True},
            call("greet"),
            {"read": "lab://café/x"},
            {**call("slow", n=20), "timeout_s": 0.8},
        ],
        prepare=labserver,
    ),
    "oauth": Story(
        command=["python", "authserver.py", "PORT", "ISSUER"],
        path="/mcp",
        client=["loginclient.py", "legacy", "URL"],
        prepare=peer("authserver.py"),
    ),
}


def record(name: str, folder: Path, ports: tuple[int, int, int] = (0, 0, 0)) -> Path:
    """Play a story in `folder`, which is there and empty. Returns the capture: a file in it."""
    story = STORIES[name]
    (folder / "home").mkdir()
    story.prepare(folder)
    capture = folder / "home" / f"{name}.mcpspy"
    tap = ["--label", name, "--capture", str(capture)]
    if story.path:
        record_http(story, folder, tap, ports)
    else:
        words = put((*client(story), "mcpspy", "run", *tap, "--", *story.command), FOLDER=str(folder))
        play(words, folder, {key: value.replace("FOLDER", str(folder)) for key, value in story.variables.items()})
    return capture


def record_http(story: Story, folder: Path, tap: Sequence[str], ports: tuple[int, int, int]) -> None:
    """Play a story whose server listens: it, mcpspy before it, and where it needs one an authorization server beside it."""
    at, listen, issuer_at = map(str, ports)
    home, issuer = folder / "home", ""
    with ExitStack() as running:
        if "ISSUER" in story.command:
            words = ["python", str(PEERS / "issuer.py"), issuer_at]
            issuer = f"http://127.0.0.1:{port(running.enter_context(started(words, folder, home / 'issuer.log', {})))}"
        words = put(story.command, PORT=at, ISSUER=issuer)
        variables = {key: at if key == "PORT" else value for key, value in story.variables.items()}
        said = running.enter_context(started(words, folder, home / "server.log", variables))
        url = running.enter_context(tapped(f"http://127.0.0.1:{port(said)}{story.path}", folder, *tap, listen=int(listen)))
        play(put(client(story), URL=url), folder, {})


def client(story: Story) -> list[str]:
    """Return the words that start a story's client, up to its server."""
    if story.client:
        program, *arguments = story.client
        return ["python", str(PEERS / program), *arguments]
    return ["python", str(PEERS / "stepclient.py"), story.mode, json.dumps(story.steps), *(["URL"] if story.path else [])]


def put(words: Sequence[str], **places: str) -> list[str]:
    """Replace names in the words with their values."""
    for name, value in places.items():
        words = [word.replace(name, value) for word in words]
    return list(words)


def keep(name: str) -> None:
    """Record a story, or a run, in DEMO, and put its captures in their places here."""
    DEMO.mkdir(mode=0o700)
    try:
        made = record_run(name, DEMO, keeps_ports=True) if name in RUNS else [record(name, DEMO, PORTS)]
        for path in made:
            shutil.copyfile(path, HERE / path.name)
    finally:
        shutil.rmtree(DEMO)


def files_of(name: str) -> list[Path]:
    """List the captures of a story, which is one, or of a run."""
    return [HERE / f"{capture}.mcpspy" for capture in (captures_of(name) if name in RUNS else [name])]


def ladder(*captures: Path) -> bytes:
    """Draw captures with `mcpspy export text` on a terminal of 80 columns."""
    words = [sys.executable, "-m", "mcpspy", "export", "text", *map(str, captures)]
    env = {**environment(captures[0].parent), "COLUMNS": "80"}
    return subprocess.run(words, env=env, capture_output=True, timeout=MAX_S, check=True).stdout


def main(words: list[str]) -> int:
    """Record and draw the stories and runs named. Returns the exit status."""
    names = [word for word in words if word != "--ladders"]
    known = [*STORIES, *RUNS]
    wanted = known if names == ["all"] else names
    if not wanted or not set(wanted) <= set(known):
        sys.stderr.write(f"usage: python -m captures.make [--ladders] all | NAME…, of: {' '.join(known)}\n")
        return 2
    for name in wanted:
        if "--ladders" not in words:
            keep(name)
        (HERE / f"{name}.txt").write_bytes(ladder(*files_of(name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
