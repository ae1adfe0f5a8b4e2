"""Programs that `mcpspy tui` starts for a key: other verbs of mcpspy, the user's editor, a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import click


class Programs:
    """The programs. Other verbs run as processes of their own: what they do is theirs, and an error of theirs ends them alone."""

    def verb(self, words: Sequence[str], *, seconds: float = 60.0) -> tuple[int, str, str]:
        """Run `mcpspy WORDS`. Returns its exit status, its output, and what it said."""
        done = subprocess.run(
            [sys.executable, "-m", "mcpspy", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        )
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def begin(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start `mcpspy WORDS`, which runs on."""
        return subprocess.Popen(
            [sys.executable, "-m", "mcpspy", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def edited(self, text: str) -> str | None:
        """Let the user edit a text; None if it was left as it is, or the editor failed."""
        return click.edit(text, extension=".json")
