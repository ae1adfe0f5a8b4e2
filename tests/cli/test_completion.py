"""Tests of completion in a shell: verbs, options, captures, rules and filters, queried as bash does it."""

import os
import pty
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.terminal import ESCAPE, run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, readable

SCRIPT = Path(sys.executable).parent / "mcpspy"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of mcpspy with two captures, one of which has a label that a shell would run."""
    home = tmp_path_factory.mktemp("recorded")
    for label in ("weather", "a$(touch evil)"):
        words = [sys.executable, "-m", "mcpspy", "run", "--label", label, "--", "cat"]
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        environment = {**os.environ, "MCPSPY_HOME": str(home)}
        subprocess.run(words, input=ping, stdout=subprocess.DEVNULL, env=environment, timeout=DEADLINE_S, check=True)
    return home


@pytest.fixture
def store(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(recorded))
    return recorded


def offered(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the completions that bash would offer at the end of a line."""
    monkeypatch.setenv("_MCPSPY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    done = run()
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line.startswith("plain,")]


def test_verbs_and_options_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy sh", monkeypatch) == ["show"]
    assert "--stats" in offered("mcpspy show --s", monkeypatch)
    assert offered("mcpspy export sv", monkeypatch) == ["svg"]


def test_ages_are_offered_where_a_moment_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy check --since 1", monkeypatch) == ["15m", "1h", "1d", "1w"]


def test_recordings_and_labels_are_offered_where_a_capture_goes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy show we", monkeypatch) == ["weather"]
    assert "@" in offered("mcpspy export html @", monkeypatch)


@pytest.mark.parametrize(
    "line", ["diff we", "diff weather we", "verify we", "mock we", "replay we", "check we", "export svg we"]
)
def test_wherever_a_capture_goes_labels_are_offered(line: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(f"mcpspy {line}", monkeypatch) == ["weather"]


def test_a_path_of_json_is_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy check --ignore server-die", monkeypatch) == ["server-died"]
    assert offered("mcpspy diff --ignore server-die", monkeypatch) == []


def test_topics_verbs_and_rules_are_offered_for_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy help pri", monkeypatch) == ["privacy"]
    assert offered("mcpspy help server-die", monkeypatch) == ["server-died"]


def test_a_label_that_a_shell_would_run_is_not_offered(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [label for label in offered("mcpspy show ", monkeypatch) if "touch" in label]


def test_rules_are_offered_after_each_comma(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("mcpspy check --select server-die", monkeypatch) == ["server-died"]
    monkeypatch.delenv("_MCPSPY_COMPLETE")


def test_keys_of_filters_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tool:" in offered("mcpspy show -F to", monkeypatch)
    assert "tool:" in offered("mcpspy replay --only to", monkeypatch)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_what_it_reads(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_MCPSPY_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout.encode(), timeout=DEADLINE_S, check=True)


def test_an_unknown_shell_is_refused() -> None:
    done = run("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


# --- Real shells ---


def in_shell(*words: str) -> str:
    """Run a command with the installed `mcpspy` on its PATH, and return its output."""
    path = os.pathsep.join([str(SCRIPT.parent), os.environ["PATH"]])
    done = subprocess.run(
        words, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_bash_itself_offers_labels_and_leaves_files_to_itself(store: Path) -> None:
    asks = (
        'eval "$(mcpspy completion bash)"; compopt() { echo files; }; '
        'COMP_WORDS=(mcpspy show we); COMP_CWORD=2; COMP_LINE="mcpspy show we"; COMP_POINT=14; '
        '_mcpspy_completion mcpspy; echo "${COMPREPLY[@]}"'
    )
    assert in_shell("bash", "--norc", "-c", asks).splitlines() == ["files", "weather"]


def test_fish_itself_offers_labels_rules_and_files(store: Path, debian_program: DebianProgram, tmp_path: Path) -> None:
    (tmp_path / "west.mcpspy").touch()
    asks = f"cd {shlex.quote(str(tmp_path))}; mcpspy completion fish | source; complete -C 'mcpspy show we'"
    shown = in_shell(debian_program("fish"), "--no-config", "-c", asks)
    assert [line.partition("\t")[0] for line in shown.splitlines()] == ["weather", "west.mcpspy"]


def test_zsh_itself_completes_a_label(store: Path, debian_program: DebianProgram, tmp_path: Path) -> None:
    zsh, path = debian_program("zsh"), os.pathsep.join([str(SCRIPT.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TERM": "dumb", "HOME": str(tmp_path), "PS1": "% "}
    reading, writing = pty.openpty()
    try:
        with subprocess.Popen([zsh, "-f", "-i"], stdin=writing, stdout=writing, stderr=writing, env=environment) as shell:
            os.write(reading, b'autoload -Uz compinit; compinit -u; eval "$(mcpspy completion zsh)"; echo rea""dy\n')
            wait_for(reading, lambda text: "ready" in text)
            os.write(reading, b"mcpspy show we\t")
            wait_for(reading, lambda text: "mcpspy show weather" in text)
            shell.kill()
    finally:
        os.close(reading)
        os.close(writing)


def wait_for(fd: int, is_there: Callable[[str], bool]) -> None:
    """Read what a shell draws until it is there."""
    text, until = "", time.monotonic() + DEADLINE_S
    while not is_there(text):
        assert readable(fd, max(0, until - time.monotonic())), f"waited for what is not in {text!r}"
        text = ESCAPE.sub("", text + os.read(fd, 1 << 16).decode(errors="replace")).replace("\r", "")
