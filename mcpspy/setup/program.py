"""How a client can start this mcpspy: by a path that needs no PATH, no shim and no activated environment."""

import os
import subprocess
import sys
from pathlib import Path

from ..errors import SetupError

CACHES = ("cache", "caches")

START_S = 20
SMALL_PATH = "/usr/bin:/bin"
"""What a client with a window may have for a PATH."""


def program() -> list[str]:
    """The console script beside the interpreter that runs us, else that interpreter with `-m mcpspy`. Both paths are absolute.

    It is not looked for on PATH: pyenv's shims depend on the folder one works in. `-P` keeps a `mcpspy` in the client's
    folder from being started instead.
    """
    folder = Path(os.path.abspath(sys.executable)).parent
    script = folder / ("mcpspy.exe" if sys.platform == "win32" else "mcpspy")
    if script.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    return [os.path.abspath(sys.executable), "-P", "-m", "mcpspy"]


def is_passing(argv: list[str]) -> bool:
    """Whether it lies in a cache, as with `uvx` and `pipx run`: once that is emptied, what is wrapped does not start any more."""
    return any(part.lstrip(".").casefold() in CACHES for part in Path(argv[0]).parts)


def ensure_starts(argv: list[str]) -> None:
    """Start it as a client would, from another folder and with a small environment. Raises: SetupError."""
    names = ("HOME", "LOGNAME", "SHELL", "TERM", "USER", "SYSTEMROOT", "APPDATA", "USERPROFILE")
    environment = {name: os.environ[name] for name in names if name in os.environ} | {"PATH": SMALL_PATH}
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
