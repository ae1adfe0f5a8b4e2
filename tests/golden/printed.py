"""Outputs of mcpspy about golden captures, made in one process: `python -m tests.golden.printed NAME…` writes them as JSON.

Each capture is the only one in a store of its own and is named relative to the working directory, so no output has a path of
this machine.
"""

import gzip
import io
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcpspy.cli.main import main

FOLDER = Path(__file__).parent / "format-1"
OLDER = ("capture-1-stdio", "capture-1-http")
"""Captures that lie in the folder above: they were made before this one was."""

VERBS = {
    "show": ["show", "CAPTURE", "--json"],
    "http": ["show", "CAPTURE", "--http", "--json"],
    "stats": ["show", "CAPTURE", "--stats", "--json"],
    "messages": ["export", "jsonl", "CAPTURE"],
    "check": ["check", "CAPTURE", "--json"],
    "verify": ["verify", "CAPTURE", "--json"],
    "list": ["list", "--json"],
}
"""The command lines by the names of their outputs."""


def path_of(name: str) -> Path:
    """Return where a golden capture lies."""
    if name in OLDER:
        return FOLDER.parent / f"{name}.mcpspy"
    packed = FOLDER / f"{name}.mcpspy.gz"
    return packed if packed.exists() else FOLDER / f"{name}.mcpspy"


def contents(name: str) -> bytes:
    """Return the bytes of a golden capture, unpacked."""
    data = path_of(name).read_bytes()
    return gzip.decompress(data) if path_of(name).suffix == ".gz" else data


def outputs(name: str) -> dict[str, Any]:
    """Return what each verb prints about a golden capture, with its exit status."""
    before = os.getcwd()
    with TemporaryDirectory() as home:
        folder = Path(home) / "captures"
        folder.mkdir(mode=0o700)
        (folder / f"{name}.mcpspy").write_bytes(contents(name))
        os.environ["MCPSPY_HOME"] = home
        os.chdir(folder)
        try:
            return {verb: run([word.replace("CAPTURE", f"{name}.mcpspy") for word in words]) for verb, words in VERBS.items()}
        finally:
            os.chdir(before)


def run(words: list[str]) -> dict[str, Any]:
    """Run one command line in this process. Returns its exit status, and the list of objects that it prints."""
    status, printed = run_command(words)
    return {"status": status, "printed": parsed(printed)}


def run_bytes(words: list[str]) -> bytes:
    """Do the same. Returns the exit status and all that it prints, as it is."""
    status, printed = run_command(words)
    return b"%d\n%b" % (status, printed)


def run_command(words: list[str]) -> tuple[int, bytes]:
    """Run one command line in this process. Returns its exit status, and what it prints."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["mcpspy", *words], output, io.StringIO()
    try:
        status = main()
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    output.flush()
    assert isinstance(output.buffer, io.BytesIO)
    return status, output.buffer.getvalue()


def parsed(data: bytes) -> list[Any]:
    """Parse objects of JSON: one over all lines, or one a line."""
    try:
        return [json.loads(data)]
    except ValueError:
        return [json.loads(line) for line in data.splitlines()]


if __name__ == "__main__":
    json.dump({name: outputs(name) for name in sys.argv[1:]}, sys.stdout)
