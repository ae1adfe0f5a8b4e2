"""The command line around the verbs: output that cannot be written, and standard streams that are not there."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import MCPSPY, run
from tests.deadlines import DEADLINE_S

CAPTURE = str(Path(__file__).parents[2] / "captures" / "time.mcpspy")
PRINTING = ["show", "show --json", "show --raw", "export text", "export jsonl", "export mermaid", "verify"]


def through_shell(command: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run `mcpspy command` on a capture, with its streams redirected by a shell."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *MCPSPY, *command.split(), CAPTURE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )


@pytest.mark.grid(3)
@pytest.mark.parametrize("command", PRINTING)
def test_a_full_disk_is_reported_once(command: str) -> None:
    done = through_shell(command, ">/dev/full")
    said = "mcpspy: No space left on device; make room on the disk, or name a file on another one.\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.grid(3)
@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_error(command: str, redirection: str) -> None:
    done = through_shell(command, redirection)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_is_written_does_not_become_standard_output(tmp_path: Path) -> None:
    written = tmp_path / "messages"
    through_shell(f"export jsonl -o {written}", ">&-")
    assert written.read_text() == through_shell("export jsonl", "").stdout


def test_a_proxy_whose_capture_has_no_name_is_a_usage_error() -> None:
    done = run("proxy", "http://127.0.0.1:1/mcp", "--listen", "127.0.0.1:0", "--capture", "")
    assert done.returncode == 2
    assert "--capture needs the name of a file; it is empty." in done.stderr
