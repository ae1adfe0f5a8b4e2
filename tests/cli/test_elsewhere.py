"""A store that is empty because `MCPSPY_HOME` is set in the shell and not in the client, and an installation that lacks a package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.making import stored
from tests.cli.terminal import on_pipe, run
from tests.deadlines import DEADLINE_S

LOOKING: dict[str, tuple[str, ...]] = {
    "show": ("show",),
    "show @1": ("show", "@1"),
    "show a label": ("show", "weather"),
    "show --since": ("show", "--since", "1h"),
    "check": ("check",),
    "check --since": ("check", "--since", "1h"),
    "list": ("list",),
    "bare": (),
    "export": ("export", "text"),
    "mock": ("mock", "weather"),
    "replay": ("replay", "weather"),
    "call": ("call", "@:1"),
    "query": ("query", "select 1"),
}
"""Verbs that look into the store."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory whose default store has a capture, and a shell that names another store."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MCPSPY_HOME", str(home / ".mcpspy"))
    stored("weather")
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "other"))
    return home


def told(verb: str) -> str:
    """Return what a verb prints to stderr, which has the extra that `query` needs."""
    words = LOOKING[verb]
    return (run(*words, PYTHONPATH="") if verb == "query" else run(*words)).stderr


@pytest.mark.parametrize("verb", LOOKING)
def test_the_default_store_is_named_if_it_has_something(verb: str, home: Path) -> None:
    said = told(verb)
    assert f"{home}/.mcpspy/captures has captures" in said
    assert "unset it" in said


def test_following_names_it_too_and_waits(home: Path) -> None:
    with on_pipe("show", "-f") as shown:
        shown.wait_for(f"{home}/.mcpspy/captures has captures")


@pytest.mark.parametrize("verb", LOOKING)
def test_it_is_not_named_if_it_is_empty(verb: str, home: Path) -> None:
    (home / ".mcpspy" / "captures" / "weather.mcpspy").unlink()
    assert "has captures" not in told(verb)


@pytest.mark.parametrize("verb", ["show", "check", "list"])
def test_it_is_not_named_beside_recordings(verb: str, home: Path) -> None:
    stored("files")
    assert "has captures" not in run(verb).stderr


def test_the_default_store_itself_is_not_named_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".mcpspy" / "captures" / "weather.mcpspy").unlink()
    monkeypatch.setenv("MCPSPY_HOME", str(home / ".mcpspy"))
    assert "has captures" not in run("show").stderr


WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
sys.argv[0] = "mcpspy"
from mcpspy.__main__ import main
sys.exit(main())
"""


def lacking(package: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run mcpspy in an installation without a package."""
    argv = [sys.executable, "-c", WITHOUT.format(package=package), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=dict(os.environ))


@pytest.mark.parametrize(
    ("package", "words"),
    [("rich", ("export", "text", "@")), ("rich", ("export", "markdown", "@")), ("rich", ("show", "-f")), ("aiohttp", ("web",))],
)
def test_a_package_that_is_missing_is_named_with_what_to_do(package: str, words: tuple[str, ...], store: Path) -> None:
    stored("weather")
    done = lacking(package, *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"mcpspy: this installation lacks the package {package}; install it again: pip install --upgrade mcpspy"
    )
    assert "Traceback" not in done.stderr


def test_what_needs_no_such_package_works_without_it(store: Path) -> None:
    stored("weather")
    assert lacking("rich", "show").returncode == 0


def test_debug_shows_where_it_is_missing(store: Path) -> None:
    stored("weather")
    assert "Traceback" in lacking("rich", "--debug", "export", "text", "@").stderr
