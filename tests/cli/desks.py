"""A desk to try commands at: a folder with a server, and a store with what a client said to it."""

import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import MCPSPY
from tests.deadlines import DEADLINE_S

SERVER = [sys.executable, "-P", "-m", "mcpspy.demo.server"]
CLIENT = [sys.executable, "-P", "-m", "mcpspy.demo.client"]


def desk(folder: Path) -> Path:
    """`folder` with a store in `store` that holds a capture called `weather`, and with the server that made it as `./server`."""
    server = folder / "server"
    server.write_text(f"#!/bin/sh\nexec {shlex.join(SERVER)}\n")
    server.chmod(0o755)
    capture = folder / "store" / "captures" / "weather.mcpspy"
    capture.parent.mkdir(parents=True, mode=0o700)
    tap = [*MCPSPY, "run", "--quiet", "--label", "weather", "--capture", str(capture), "--", *SERVER]
    subprocess.run([*CLIENT, *tap], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=True)
    return folder
