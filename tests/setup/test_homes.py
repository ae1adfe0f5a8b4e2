"""Every client's files on Linux, macOS and Windows, before and after: `homes/` holds both, the latter under `.wrapped`.

`MCPSPY_WRITE_GOLDEN=1 pytest tests/setup/test_homes.py` writes the latter anew.
"""

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcpspy.setup.clients import CLIENTS, Machine, client_files
from mcpspy.setup.entry import EntryState
from mcpspy.setup.jsonc import parse
from mcpspy.setup.plan import Aim, ConfigFileState, WrapSettings, plan_change, read_state
from mcpspy.setup.ports import ReservedPorts
from mcpspy.setup.spans import Value

HOMES = Path(__file__).parent / "homes"
WRAPPED = ".wrapped"
PROGRAMS = {
    "linux": ["/home/you/.local/bin/mcpspy"],
    "darwin": ["/Users/you/Library/my env/bin/python3", "-P", "-m", "mcpspy"],
    "win32": ["C:\\Users\\you\\venv\\Scripts\\mcpspy.exe"],
}
SYSTEMS = list(PROGRAMS)
SUFFIXES = (".json", ".toml", ".code-workspace")
FILES = [(system, file) for system in SYSTEMS for file in sorted((HOMES / system).rglob("*")) if file.suffix in SUFFIXES]


def machine(system: str, folder: Path) -> Machine:
    """Describe the made-up machine below `folder`."""
    return Machine(platform=system, home=folder / "home", folder=folder / "project", environ={})


def settings(system: str, aim: Aim) -> WrapSettings:
    return WrapSettings(aim=aim, program=PROGRAMS[system], oauth=False, is_free=lambda _: True)


def all_files(system: str, folder: Path, ports: ReservedPorts) -> list[ConfigFileState]:
    return [state for config in client_files(machine(system, folder)) if (state := read_state(config, ports))]


def changed(system: str, folder: Path, aim: Aim, ports: ReservedPorts) -> ReservedPorts:
    """Do it to all servers of all clients."""
    for config in client_files(machine(system, folder)):
        state = read_state(config, ports)
        made = state and plan_change(state, state.servers, settings(system, aim))
        if made:
            config.path.write_bytes(made.text.encode())
            ports = made.ports
    return ports


def copied(system: str, folder: Path) -> Path:
    """Copy that machine's files."""
    return shutil.copytree(HOMES / system, folder / "copy", ignore=shutil.ignore_patterns(f"*{WRAPPED}"))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_files_become_what_they_should_and_then_what_they_were(system: str, tmp_path: Path) -> None:
    folder = copied(system, tmp_path)
    before = contents(folder)
    ports = changed(system, folder, Aim.WRAP, ReservedPorts())
    if os.environ.get("MCPSPY_WRITE_GOLDEN"):
        for name, data in contents(folder).items():
            (HOMES / system / f"{name}{WRAPPED}").write_bytes(data)
    assert contents(folder) == {name: (HOMES / system / f"{name}{WRAPPED}").read_bytes() for name in before}
    assert changed(system, folder, Aim.UNWRAP, ports) == ReservedPorts()
    assert contents(folder) == before


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_file_is_there_that_no_client_reads(system: str, tmp_path: Path) -> None:
    folder = copied(system, tmp_path)
    read = {all_file.file.path.relative_to(folder).as_posix() for all_file in all_files(system, folder, ReservedPorts())}
    assert set(contents(folder)) == read


def test_every_client_is_there_with_both_kinds_of_servers(tmp_path: Path) -> None:
    kinds = {
        (all_file.file.client.name, server.entry.is_http)
        for system in SYSTEMS
        for all_file in all_files(system, copied(system, tmp_path / system), ReservedPorts())
        for server in all_file.servers
        if server.entry.state is EntryState.PLAIN
    }
    assert kinds == {(name, is_http) for name in CLIENTS for is_http in (True, False)} - {("claude-desktop", True)}


def value(parsed: Value) -> Any:
    """Turn a parsed text into Python values, to compare; numbers and literals become their default."""
    match parsed.kind:
        case "object":
            return {member.key: value(member.value) for member in parsed.members}
        case "array":
            return [value(item) for item in parsed.items]
    return parsed.string


@pytest.mark.parametrize(("system", "file"), FILES, ids=lambda value: value if isinstance(value, str) else value.name)
def test_nothing_but_servers_changes_for_any_reader(system: str, file: Path) -> None:
    texts = [path.read_bytes().decode() for path in (file, file.with_name(f"{file.name}{WRAPPED}"))]
    before, after = map(tomllib.loads, texts) if file.suffix == ".toml" else (value(parse(text)) for text in texts)
    ends = [set(text.replace("\r\n", "").partition("\n")[1]) for text in texts]
    assert ends[0] == ends[1]

    def bare(document: Any) -> Any:
        if isinstance(document, dict):
            return {
                key: bare(value)
                for key, value in document.items()
                if key not in ("command", "args", "url", "serverUrl", "httpUrl")
            }
        return document

    assert json.dumps(bare(before), default=str) == json.dumps(bare(after), default=str)
