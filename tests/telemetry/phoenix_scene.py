"""Arize Phoenix as a receiver: spans are sent to it twice, and read back through its API. Printed as JSON.

It runs in a network of its own, for Phoenix's port for gRPC is open to all networks. The spans of the last capture are sent once,
when all others were sent twice: when they are there, so are the others.
"""

import json
import os
import subprocess
import sys
import urllib.request
from typing import Any

from tests.cli.terminal import MCPSPY
from tests.deadlines import SCENE_S, eventually

PORT = 6006
URL = f"http://127.0.0.1:{PORT}"


def main(phoenix: str, folder: str, *captures: str) -> None:
    """Start Phoenix, send, and print all spans that it has."""
    settings = {
        "PHOENIX_WORKING_DIR": folder,
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(PORT),
        "PHOENIX_GRPC_PORT": "4317",
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with open(os.path.join(folder, "log"), "wb") as log:
        server = subprocess.Popen([phoenix, "serve"], env=os.environ | settings, stdout=log, stderr=log)
    try:
        eventually(lambda: server.poll() is not None or answers(), "Phoenix", SCENE_S)
        *twice, last = captures
        for words in (*twice, *twice):
            send(*words.split(","))
        send(last)
        marker = eventually(lambda: [span for span in spans() if span["name"] == "last"], "the last span", SCENE_S)
        sys.stdout.write(json.dumps({"spans": spans(), "last": len(marker)}))
    finally:
        server.terminate()
        server.wait()


def send(*words: str) -> None:
    """Send captures together."""
    subprocess.run([*MCPSPY, "otlp", *words, "--no-metrics", "--endpoint", URL], check=True, timeout=SCENE_S)


def answers() -> bool:
    """Return whether Phoenix answers."""
    try:
        with urllib.request.urlopen(f"{URL}/healthz", timeout=1) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def spans() -> list[dict[str, Any]]:
    """Return all spans of the project into which Phoenix puts those that name none."""
    try:
        with urllib.request.urlopen(f"{URL}/v1/projects/default/spans?limit=1000", timeout=10) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]
            return found
    except urllib.error.HTTPError:  # there is no such project yet
        return []


if __name__ == "__main__":
    main(*sys.argv[1:])
