"""Commands as Windows finds and starts them."""

import os
from pathlib import Path

import pytest

from mcpspy.platform.commands import by_cmd, command_line, find


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with spaces in PATH, with programs of each kind."""
    folder = tmp_path / "Program Files" / "nodejs"
    folder.mkdir(parents=True)
    for name in ("npx.cmd", "node.exe", "tool.bat", "py.exe", "server.py"):
        (folder / name).touch()
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), str(folder)]))
    monkeypatch.delenv("PATHEXT", raising=False)
    return folder


def as_made(line: object) -> str:
    """Return a line with the extensions of our files; where case does not matter, they come as PATHEXT has them."""
    return str(line).replace(".CMD", ".cmd")


def same(path: str | None, file: Path) -> bool:
    """Return whether a path names a file, in any case."""
    return path is not None and path.lower() == str(file).lower()


@pytest.mark.parametrize(
    ("command", "found"),
    [("npx", "npx.cmd"), ("node", "node.exe"), ("py", "py.exe"), ("npx.cmd", "npx.cmd"), ("tool", "tool.bat")],
)
def test_a_command_is_found_with_an_extension(command: str, found: str, folder: Path) -> None:
    assert same(find(command), folder / found)


def test_a_path_needs_no_path_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert same(find(str(folder / "npx")), folder / "npx.cmd")


@pytest.mark.parametrize("command", ["nowhere", "server.py", "NPX.PS1"])
def test_what_windows_does_not_start_is_not_found(command: str, folder: Path) -> None:
    assert find(command) is None
    assert command_line([command, "x"]) == [command, "x"]


def test_the_extensions_are_those_of_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHEXT", ".EXE;.PY")
    assert same(find("server"), folder / "server.py")
    assert find("npx") is None


def test_a_program_gets_its_arguments_as_they_are(folder: Path) -> None:
    command = command_line(["py", "-3", "a b", '"'])
    assert same(command[0], folder / "py.exe")
    assert command[1:] == ["-3", "a b", '"']


def test_a_script_is_a_line_for_cmd_exe_in_which_nothing_means_anything(folder: Path) -> None:
    line = as_made(command_line(["npx", "-y", "a b", '50%&|<>"^', "C:\\x\\"]))
    path = str(folder / "npx.cmd").replace(" ", "^ ")
    assert line == f'{path} ^"-y^" ^"a^ b^" ^"50^%^&^|^<^>\\^"^^^" ^"C:\\x\\\\^"'


def test_a_script_of_npm_that_calls_cmd_exe_again_gets_them_twice_as_plain(folder: Path) -> None:
    shims = folder / "node_modules" / ".bin"
    shims.mkdir(parents=True)
    (shims / "server.cmd").touch()
    assert as_made(command_line([str(shims / "server"), "a&b"])).endswith('server.cmd ^^^"a^^^&b^^^"')


def test_the_line_is_run_by_what_comspec_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMSPEC", "C:\\Windows\\system32\\cmd.exe")
    assert by_cmd("x") == 'C:\\Windows\\system32\\cmd.exe /d /s /c "x"'
