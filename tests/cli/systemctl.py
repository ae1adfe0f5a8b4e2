"""The stand-in for systemctl on the PATH of a test, and what it was asked to do."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.conftest import PEERS


class Systemctl:
    """The stand-in in `folder`, as the only `systemctl` on the PATH."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PATH", f"{put_systemctl(folder)}{os.pathsep}{os.environ['PATH']}")

    def calls(self) -> list[list[str]]:
        """Return the command lines since the last call of this method, without `--user`, and forget them."""
        file = self.folder / "calls"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return list(map(json.loads, lines))

    def changes(self) -> list[list[str]]:
        """Return the calls that change something."""
        return [words for words in self.calls() if words[0] not in ("show", "is-active")]

    def fail_at(self, verb: str) -> None:
        """Let a verb fail from now on."""
        (self.folder / "fail").write_text(verb, encoding="utf-8")


def put_systemctl(folder: Path) -> Path:
    """Write the program into `folder`. Returns the folder for the PATH."""
    script = folder / "bin" / "systemctl"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(PEERS / "systemctl.py"), str(folder)])} "$@"\n')
    script.chmod(0o755)
    return script.parent
