"""Programs that `mcpspy tui` starts for a key: other verbs of mcpspy, the user's editor, a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ...tui.verbs import VerbResult

MCPSPY: Final = (sys.executable, "-P", "-m", "mcpspy")
LONGEST_S: Final = 600.0
END_S: Final = 5.0


class Programs:
    """The programs. Other verbs run as processes of their own: what they do is theirs, and an error of theirs ends them alone."""

    def __init__(self) -> None:
        self._web: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, words: Sequence[str], cwd: str = "") -> VerbResult:
        """Run `mcpspy WORDS` to its end."""
        process = subprocess.Popen(
            [*MCPSPY, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or None,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._running.append(process)
        try:
            output, said = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return VerbResult(1, "", f"mcpspy {words[0]} took longer than {LONGEST_S:.0f} s, and was ended")
        finally:
            self._running.remove(process)
        return VerbResult(process.returncode, output.decode("utf-8", "replace"), said.decode("utf-8", "replace"))

    def stop(self) -> None:
        """End the verbs that run: a call is cancelled."""
        for process in list(self._running):
            process.terminate()

    def page(self) -> str:
        """Start `mcpspy web` on a free port, unless it runs, and return its address; empty if it did not start."""
        if self._web is None or self._web.poll() is not None:
            self._web = subprocess.Popen(
                [*MCPSPY, "web", "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._web.stdout is not None
            self._address = self._web.stdout.readline().decode().strip()
        return self._address

    def browse(self, address: str) -> None:
        """Open an address in a browser with a window; one for terminals gets none, and ends. May block for some seconds."""
        with suppress(subprocess.TimeoutExpired):  # then it is a browser that stays until it is closed
            subprocess.run(
                [sys.executable, "-P", "-m", "webbrowser", address],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                start_new_session=True,
                timeout=END_S,
            )

    def edited(self, text: str) -> str | None:
        """Let the user edit a text; None if it was left as it is."""
        import click

        try:
            return click.edit(text, extension=".json")
        except click.ClickException:
            return None

    def close(self) -> None:
        """End what runs."""
        self.stop()
        if self._web is None:
            return
        self._web.terminate()
        try:
            self._web.wait(END_S)
        except subprocess.TimeoutExpired:
            self._web.kill()
            self._web.wait()
        if self._web.stdout is not None:
            self._web.stdout.close()
