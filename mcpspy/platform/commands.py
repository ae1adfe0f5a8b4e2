"""Commands as Windows finds and starts them: `npx` is `npx.cmd`, a script that cmd.exe runs, which takes arguments in its own way.

The official SDKs' clients find them so too, by `cross-spawn` and by `shutil.which`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

_USUAL_EXTENSIONS: Final = ".COM;.EXE;.BAT;.CMD"
_SCRIPTS: Final = (".bat", ".cmd")
_FOR_CMD: Final = re.compile(r'[()\][%!^"`<>&|;, *?]')
"""The characters that mean something to cmd.exe, each of which a `^` makes plain."""
_SHIM: Final = re.compile(r"node_modules[\\/]\.bin[\\/][^\\/]+\.cmd$", re.IGNORECASE)
"""A script of npm's that calls cmd.exe a second time with its arguments."""


def command_line(argv: Sequence[str]) -> list[str] | str:
    """Return the command with the path of its program; or, if that is a script, the line that cmd.exe has to run.

    A command that cannot be found is returned as it is.
    """
    program = find(argv[0]) or argv[0]
    if not program.lower().endswith(_SCRIPTS):
        return [program, *argv[1:]]
    words = [_FOR_CMD.sub(r"^\g<0>", program), *(_argument(word, twice=bool(_SHIM.search(program))) for word in argv[1:])]
    return " ".join(words)


def by_cmd(line: str) -> str:
    """Return the command that has cmd.exe run a line."""
    return f'{os.environ.get("COMSPEC") or "cmd.exe"} /d /s /c "{line}"'


def find(command: str) -> str | None:
    """Find the program of a command: in PATH, unless it names a folder, and with each extension of PATHEXT, unless it has one."""
    listed = (os.environ.get("PATHEXT") or _USUAL_EXTENSIONS).split(";")
    extensions = [extension for extension in listed if extension]
    has_one = any(command.lower().endswith(extension.lower()) for extension in extensions)
    folders = [""] if os.path.dirname(command) else os.environ.get("PATH", "").split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, command)
        for extension in ("",) if has_one else (*extensions, *(name.lower() for name in extensions)):
            if os.path.isfile(path + extension):
                return path + extension
    return None


def _argument(word: str, *, twice: bool) -> str:
    """Quote an argument as C programs read it, then for cmd.exe."""
    quoted = re.sub(r'(\\*)"', r'\1\1\\"', word)
    quoted = '"' + re.sub(r"(\\+)$", r"\1\1", quoted) + '"'
    quoted = _FOR_CMD.sub(r"^\g<0>", quoted)
    return _FOR_CMD.sub(r"^\g<0>", quoted) if twice else quoted
