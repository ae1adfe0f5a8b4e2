"""What a shell completes: verbs, options, captures, rules and filters, asked as bash asks."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    for label in ("weather", "a$(touch evil)"):
        words = [sys.executable, "-m", "mcpspy", "run", "--label", label, "--", "cat"]
        said = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        subprocess.run(words, input=said, stdout=subprocess.DEVNULL, timeout=DEADLINE_S, check=True)
    return tmp_path


def offered(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash would offer at the end of a line."""
    monkeypatch.setenv("_MCPSPY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    done = run()
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one.startswith("plain,")]


def test_verbs_and_options_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy sh", monkeypatch) == ["show"]
    assert "--stats" in offered("mcpspy show --s", monkeypatch)
    assert offered("mcpspy export sv", monkeypatch) == ["svg"]


def test_sittings_and_labels_are_offered_where_a_capture_goes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy show we", monkeypatch) == ["weather"]
    assert "@" in offered("mcpspy export html @", monkeypatch)


def test_a_label_that_a_shell_would_run_is_not_offered(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [one for one in offered("mcpspy show ", monkeypatch) if "touch" in one]


def test_rules_are_offered_behind_each_comma(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy check --select server-die", monkeypatch) == ["server-died"]
    monkeypatch.delenv("_MCPSPY_COMPLETE")


def test_keys_of_filters_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tool:" in offered("mcpspy show -F to", monkeypatch)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_what_it_reads(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_MCPSPY_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout.encode(), timeout=DEADLINE_S, check=True)


def test_a_shell_that_nobody_knows_is_refused() -> None:
    done = run("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
