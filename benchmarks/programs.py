"""The C programs that play client and server, the same for every peer, and where results go."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "c"
OUT = HERE / "out"

STDIO_DRIVE = SOURCES / "stdio_drive"
STDIO_SERVER = SOURCES / "stdio_server"
HTTP_DRIVE = SOURCES / "http_drive"
HTTP_UP = SOURCES / "http_up"


def build() -> None:
    """Compile what is older than its source.

    Raises:
        FileNotFoundError: if there is no gcc.
        subprocess.CalledProcessError: if a source does not compile.
    """
    OUT.mkdir(exist_ok=True)
    for source in SOURCES.glob("*.c"):
        program = source.with_suffix("")
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            fresh = program.with_suffix(f".{os.getpid()}")  # somebody else may be running the old one, or building too
            subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", fresh, source], check=True)
            fresh.replace(program)
