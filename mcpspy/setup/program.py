"""The command with which a client can start this mcpspy, without a PATH, a shim or an activated environment."""

import os
import subprocess
import sys
from pathlib import Path

from ..errors import SetupError
from ..platform.system import CLIENT_VARIABLES, PROGRAM_SUFFIX, client_path

CACHES = ("cache", "caches")

START_S = 20


def program() -> list[str]:
    """Find the console script beside the running interpreter, else use the interpreter with `-m mcpspy`. Both paths are absolute.

    PATH is not searched: pyenv's shims depend on the working folder. `-P` keeps Python from starting a `mcpspy` in the client's
    working folder instead.
    """
    folder = Path(os.path.abspath(sys.executable)).parent
    script = folder / f"mcpspy{PROGRAM_SUFFIX}"
    if script.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    return [os.path.abspath(sys.executable), "-P", "-m", "mcpspy"]


def is_in_cache(argv: list[str]) -> bool:
    """Return whether it is in a cache, as with `uvx` and `pipx run`: wrapped servers do not start once the cache is emptied."""
    return any(part.lstrip(".").casefold() in CACHES for part in Path(argv[0]).parts)


def ensure_starts(argv: list[str]) -> None:
    """Start it as a client would: from another folder, with a small environment. Raises: SetupError."""
    environment = {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ} | {"PATH": client_path()}
    try:
        done = subprocess.run(
            [*argv, "--version"],
            cwd=os.path.abspath(os.sep),
            env=environment,
            capture_output=True,
            timeout=START_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(argv[0], f"cannot be started as a client would: {error}") from error
    if done.returncode:
        raise SetupError(
            argv[0], "cannot be started as a client would; install mcpspy first (pip install, pipx, uv tool install)"
        )
