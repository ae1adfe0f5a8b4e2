"""A desk to try commands at: a folder with a server, and a store with what a client said to it."""

import json
import shlex
import sys
from pathlib import Path

from tests.conftest import PEERS, ROOT

SERVER = [sys.executable, str(PEERS / "logserver.py"), "0"]


def desk(folder: Path) -> Path:
    """`folder` with a store in `store` that holds a capture called `weather`, and with the server that made it as `./server`."""
    server = folder / "server"
    server.write_text(f"#!/bin/sh\nexec {shlex.join(SERVER)}\n")
    server.chmod(0o755)
    header, _, rest = (ROOT / "captures" / "logs.mcpspy").read_text(encoding="utf-8").partition("\n")
    named = json.loads(header) | {"label": "weather"}
    del named["crc"]  # edited by hand, that is
    capture = folder / "store" / "captures" / "weather.mcpspy"
    capture.parent.mkdir(parents=True, mode=0o700)
    capture.write_text(f"{json.dumps(named)}\n{rest}", encoding="utf-8")
    return folder
