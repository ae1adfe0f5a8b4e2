"""mcpspy on Windows, as far as Linux can play it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.__main__ import BY_UNIX_SOCKETS
from tests.deadlines import DEADLINE_S

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"


def on_windows(code_or_verb: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python as on Windows, with no more in its environment than the SDKs' clients leave there."""
    played = {"PYTHONPATH": str(Path(__file__).parent), "MCPSPY_TESTED_SYSTEM": "win32", "PATH": os.environ["PATH"]}
    environment = {"USERPROFILE": str(home), "PYTHONUTF8": "1", "COLUMNS": "100"} | played | environment
    return subprocess.run(
        [sys.executable, *code_or_verb],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        cwd=ROOT,
        check=False,
    )


def as_ours(code: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of Python as a module of mcpspy would."""
    return on_windows(
        ["-c", f"import mcpspy, os, sys, select\nexec({code!r}, {{**globals(), '__name__': 'mcpspy.line'}})"],
        home,
        **environment,
    )


@pytest.mark.parametrize("verb", ["show", "check"])
def test_reading_verbs_print_the_same_as_on_linux(verb: str, tmp_path: Path) -> None:
    for capture in ("everything", "cancelled", "agent-weather"):
        arguments = ["-m", "mcpspy", verb, f"captures/{capture}.mcpspy"]
        here = on_windows(arguments, tmp_path, MCPSPY_TESTED_SYSTEM="", HOME=str(tmp_path))
        there = on_windows(arguments, tmp_path)
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize("verb", BY_UNIX_SOCKETS)
def test_a_verb_that_does_not_work_there_says_so(verb: str, tmp_path: Path) -> None:
    refused = on_windows(["-m", "mcpspy", verb], tmp_path)
    assert refused.stderr == f"mcpspy: {verb} does not work on Windows yet; use it in WSL.\n"
    assert refused.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [["diff", "captures/everything.mcpspy", "captures/channels.mcpspy"], ["export", "jsonl", "captures/everything.mcpspy"],
     ["export", "html", "captures/everything.mcpspy", "--output", "-"], ["verify", "captures/everything.mcpspy"]],
)  # fmt: skip
def test_other_verbs_that_read_print_the_same_as_on_linux(arguments: list[str], tmp_path: Path) -> None:
    here = on_windows(["-m", "mcpspy", *arguments], tmp_path, MCPSPY_TESTED_SYSTEM="", HOME=str(tmp_path))
    there = on_windows(["-m", "mcpspy", *arguments], tmp_path)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_a_row_of_a_capture_is_shown(tmp_path: Path) -> None:
    shutil.copy(CAPTURES / "everything.mcpspy", tmp_path / "with spaces.mcpspy")
    shown = on_windows(["-m", "mcpspy", "show", f"{tmp_path / 'with spaces.mcpspy'}:7"], tmp_path)
    assert "notifications/tools/list_changed" in shown.stdout, shown.stderr


def test_the_store_is_in_the_users_folder(tmp_path: Path) -> None:
    store = tmp_path / ".mcpspy" / "captures"
    store.mkdir(parents=True)
    shutil.copy(CAPTURES / "everything.mcpspy", store)
    listed = on_windows(["-m", "mcpspy", "list"], tmp_path)
    assert "everything" in listed.stdout, listed.stderr


@pytest.mark.parametrize("variable", ["LOCALAPPDATA", "APPDATA"])
def test_the_store_is_found_without_the_variable_of_the_users_folder(variable: str, tmp_path: Path) -> None:
    code = "from mcpspy.platform.files import user_home; print(user_home())"
    found = as_ours(code, tmp_path, USERPROFILE="", **{variable: str(tmp_path / "AppData" / "Local")})
    assert found.stdout.strip() == str(tmp_path), found.stderr


def test_a_capture_is_live_as_long_as_its_lock_is_held(tmp_path: Path) -> None:
    code = """
from mcpspy.capture.store.folder import create, is_live
fd, path = create(None, 'CON: <a|b>?', wall_ns=0)
os.write(fd, b'read')
was_live = is_live(path)
read = open(path).read()
os.close(fd)
print(was_live, read, is_live(path))
"""
    assert as_ours(code, tmp_path).stdout.split() == ["True", "read", "False"], as_ours(code, tmp_path).stderr


def test_what_windows_lacks_is_not_there(tmp_path: Path) -> None:
    for code in (
        "os.fork",
        "os.getuid",
        "os.O_NOFOLLOW",
        "os.pread",
        "select.poll",
        "select.epoll",
        "import fcntl",
        "import resource",
    ):
        result = as_ours(code, tmp_path)
        assert "AttributeError" in result.stderr or "ModuleNotFoundError" in result.stderr, code
    assert as_ours("print(sys.platform, os.name)", tmp_path).stdout == "win32 nt\n"


@pytest.mark.parametrize("name", ["a:b", "what?", "NUL", "com1.txt", "end.", "end "])
def test_a_name_that_windows_refuses_is_refused(name: str, tmp_path: Path) -> None:
    assert "Invalid argument" in as_ours(f"open({str(tmp_path / name)!r}, 'w')", tmp_path).stderr


@pytest.mark.parametrize("call", ["os.replace(path + '2', path)", "os.unlink(path)"])
def test_a_file_that_is_open_stays(call: str, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "a2").touch()
    with open(tmp_path / "a"):
        assert "PermissionError" in as_ours(f"path = {str(tmp_path / 'a')!r}; {call}", tmp_path).stderr
    assert as_ours(f"path = {str(tmp_path / 'a')!r}; {call}", tmp_path).returncode == 0


def test_select_takes_sockets_alone(tmp_path: Path) -> None:
    code = "reading, _ = os.pipe(); select.select([reading], [], [], 0)"
    assert "not a socket" in as_ours(code, tmp_path).stderr
