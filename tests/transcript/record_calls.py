"""Recorder of tests/transcript/recorded: calls of several exchanges between real clients and servers.

    python -m tests.transcript.record_calls all | NAME…

`research`, `sampling`, `urls` and `updates` are the scenes of tests/npm/task_client.mjs with server-everything (`make npm`). In those
whose names begin with `greet` tests/peers/pyserver.py asks the user of stepclient.py a question: in rounds in the modern era, in
the legacy era by a request of its own. Each is played in /tmp/calls, with an environment of PATH, HOME and LANG.
"""

import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from captures.make import Step, client, put
from captures.make import Story as Played
from captures.serving import PEERS, ROOT, play, port, started, tapped

HERE = Path(__file__).parent / "recorded"
FOLDER = Path("/tmp/calls")
"""The same in every recording, and nobody else's: mkdir fails if it exists."""
MODULES = ROOT / "build" / "npm" / "node_modules"
SCENES = ("research", "sampling", "urls", "updates")
GREETINGS = ("stdio-auto", "sse-auto", "http-auto", "http-legacy")
PATHS = {"sse": "/sse", "http": "/mcp"}


def record_scene(scene: str, capture: Path) -> None:
    """Record a scene of the client on the TypeScript SDK."""
    words = ["node", str(ROOT / "tests" / "npm" / "task_client.mjs"), str(MODULES), scene]
    play([*words, "mcpspy", "run", "--capture", str(capture), "--", "mcp-server-everything", "stdio"], FOLDER, {})


def record_greeting(transport: str, mode: str, capture: Path) -> None:
    """Record a call of a tool that asks its user's name."""
    (FOLDER / "labserver.py").symlink_to(PEERS / "pyserver.py")
    steps: list[Step] = [{"known": ["greet", "slow"]}, {"call": "greet", "arguments": {}}]
    if transport == "stdio":
        words = client(Played(command=(), steps=steps, mode=mode))
        play([*words, "mcpspy", "run", "--capture", str(capture), "--", "python", "labserver.py", "stdio"], FOLDER, {})
        return
    with ExitStack() as running:
        output = running.enter_context(started(["python", "labserver.py", transport, "0"], FOLDER, FOLDER / "server.log", {}))
        upstream = f"http://127.0.0.1:{port(output)}{PATHS[transport]}"
        url = running.enter_context(tapped(upstream, FOLDER, "--capture", str(capture)))
        play(put(client(Played(command=(), steps=steps, mode=mode, path=PATHS[transport])), URL=url), FOLDER, {})


def main(names: list[str]) -> int:
    """Record the captures that are named, and return the exit status."""
    known = [*SCENES, *(f"greet-{greeting}" for greeting in GREETINGS)]
    wanted = known if names == ["all"] else names
    if not wanted or not set(wanted) <= set(known):
        sys.stderr.write(f"usage: python -m tests.transcript.record_calls all | NAME…, of: {' '.join(known)}\n")
        return 2
    for name in wanted:
        FOLDER.mkdir(mode=0o700)
        try:
            (FOLDER / "home").mkdir()
            capture = FOLDER / f"{name}.mcpspy"
            if name in SCENES:
                record_scene(name, capture)
            else:
                _, transport, mode = name.split("-")
                record_greeting(transport, mode, capture)
            shutil.copyfile(capture, HERE / f"{name}.mcpspy")
        finally:
            shutil.rmtree(FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
