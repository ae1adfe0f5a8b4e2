"""docs/security.md: what a cloned project brings along chooses nothing, and neither does a capture that somebody sent."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Header
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

SERVER = [sys.executable, str(ROOT / "tests" / "peers" / "logserver.py"), "0"]
SCRIPT = Path(sys.executable).parent / "mcpspy"
BAITS = ("click", "json", "msgspec", "rich", "sitecustomize", "usercustomize", "zlib")
"""Modules that we import, and those that Python does by itself."""
SETTINGS = ".env", "mcpspy.toml", ".mcpspyrc", ".mcpspy/config", ".mcpspy/config.json", "setup.cfg", "pyproject.toml"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the store in its usual place."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("MCPSPY_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cloned project that means harm, which is the folder we are in. Whatever of it is run leaves a file `harm`."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    harm = shlex.quote(str(tmp_path / "harm"))
    python = f"import os\nos.system({f'touch {harm}'!r})\n"
    for name in BAITS:
        (folder / f"{name}.py").write_text(python)
    for name in ("mcpspy/__init__.py", "mcpspy/__main__.py", "mcpspy/cli/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(python)
    program = folder / "bin" / "mcpspy"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {harm}\n")
    program.chmod(0o755)
    wanted = f"MCPSPY_HOME={folder}\nMCPSPY_REDACT=none\nredact = none\n[tool.mcpspy]\nredact = 'none'\ncapture = 'stolen'\n"
    for name in SETTINGS:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(wanted)
    monkeypatch.chdir(folder)
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def hostile_capture(folder: Path) -> Path:
    """Make a capture whose label leads out of every folder."""
    text = (ROOT / "captures" / "time.mcpspy").read_text(encoding="utf-8")
    header, _, rest = text.partition("\n")
    named = json.loads(header) | {"label": "../../../x"}
    del named["crc"]
    path = folder / "sent.mcpspy"
    path.write_text(f"{json.dumps(named)}\n{rest}", encoding="utf-8")
    return path


def test_a_project_runs_nothing_and_sets_nothing(project: Path, home: Path, tmp_path: Path) -> None:
    before = files(project)
    words = [str(SCRIPT), "run", "--quiet", "--", sys.executable, "-P", "-c", "pass", "--api-key=hush-hush-hush"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(words, stdin=subprocess.DEVNULL, env=environment, timeout=DEADLINE_S, check=True)
    (kept,) = (home / ".mcpspy" / "captures").iterdir()
    shown = subprocess.run(
        [str(SCRIPT), "list"], env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    ).stdout
    header = next(read(str(kept)))
    assert isinstance(header, Header)
    assert header.redaction == "credentials"
    assert "hush-hush-hush" not in kept.read_text()
    assert kept.name in shown
    assert files(project) == before
    assert not (tmp_path / "harm").exists()


def test_wherever_we_start_python_by_a_module_it_is_not_one_of_the_folder_we_are_in() -> None:
    unsafe = re.compile(r'(?<!"-P", )"-m"(?!" in)[,\]]')
    starts = [file.name for file in (ROOT / "mcpspy").rglob("*.py") if unsafe.search(file.read_text(encoding="utf-8"))]
    assert not starts


ENTRIES = {
    "mine": {"command": "bin/mcpspy", "args": ["serve"]},
    "wrapped": {"command": "bin/mcpspy", "args": ["run", "--redact", "none", "--capture", "stolen", "--", "bin/mcpspy"]},
}


@pytest.mark.parametrize("words", [("wrap", "--status"), ("wrap", "--yes"), ("unwrap", "--yes"), ("wrap", "--dry-run")])
def test_what_a_clients_file_of_a_project_names_is_started_by_no_verb(
    words: tuple[str, ...], project: Path, home: Path, tmp_path: Path
) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": ENTRIES}))
    done = run(*words)
    assert done.returncode == 0
    assert "mine" in done.stdout + done.stderr
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"command": "uv", "args": ["run", "mcpspy", "run", "--redact", "none", "--label", "x", "--", "y"]}, "--redact none"),
        ({"command": "mcpspy", "args": ["run", "--quiet", "--capture=/tmp/x", "--", "y", "--key"]}, "--quiet --capture=/tmp/x"),
        ({"command": "y", "env": {"MCPSPY_HOME": "/tmp/x", "A": "b"}}, "MCPSPY_HOME=/tmp/x"),
        ({"command": "mcpspy", "args": ["run", "--label=x", "--", "y", "run", "--redact", "none"]}, None),
    ],
)
def test_what_a_clients_file_decides_of_the_recording_is_said(
    entry: dict[str, object], sentence: str | None, project: Path, home: Path
) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"it": entry}}))
    for words in (("--status",), ("--dry-run",)):
        matches = re.findall("recorded with: (.*)", run("wrap", *words).stdout)
        assert matches == ([sentence] if sentence else [])


def test_the_mcpspy_that_wrap_puts_before_a_command_is_this_one(project: Path, home: Path) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": ENTRIES}))
    assert run("wrap", "--yes", "--server", "mine").returncode == 0
    entry = json.loads((project / ".mcp.json").read_text())["mcpServers"]["mine"]
    assert entry == {"command": str(SCRIPT), "args": ["run", "--label", "mine", "--", "bin/mcpspy", "serve"]}


@pytest.mark.parametrize(
    "words",
    [
        ("mock", "sent.mcpspy"),
        ("replay", "sent.mcpspy", "--", "cat"),
        ("export", "pytest", "sent.mcpspy", "-o", "test_it.py"),
        ("check", "sent.mcpspy", "--baseline", "baseline", "--accept"),
        ("export", "share", "sent.mcpspy", "-o", "shared.mcpspy"),
    ],
    ids=" ".join,
)
def test_a_label_that_is_a_path_leads_nowhere(
    words: tuple[str, ...], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    sent = hostile_capture(folder)
    run(*words, stdin=b"")
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - {sent}
    assert made
    assert [path for path in made if not path.is_relative_to(folder) and not path.is_relative_to(home / ".mcpspy")] == []


def test_what_a_project_writes_into_its_file_later_moves_no_tap(project: Path, home: Path) -> None:
    file = project / ".mcp.json"
    file.write_text(
        json.dumps({"mcpServers": {"docs": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer x"}}}})
    )
    assert run("wrap", "--yes", "--server", "docs", "--without-service").returncode == 0
    reserved = (home / ".mcpspy" / "reserved_ports.json").read_text()
    assert "https://mcp.example.com" in reserved
    file.write_text(file.read_text().replace("mcp.example.com", "evil.example"))
    assert run("wrap", "--status").returncode == 0
    assert run("wrap", "--dry-run").returncode == 0
    assert (home / ".mcpspy" / "reserved_ports.json").read_text() == reserved


def test_all_that_mcpspy_keeps_is_its_users_alone(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer x"}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": ENTRIES | {"remote": remote}}))
    before = os.umask(0)
    try:
        assert run("wrap", "--yes", "--quota", "2gb", "--without-service").returncode == 0
        assert run("replay", str(ROOT / "captures" / "logs.mcpspy"), "--only", "tool:weather", "--", *SERVER).returncode in (
            0,
            1,
        )
        assert run("prune", "--keep", "0", "--yes").returncode == 0
        assert run("mock", str(ROOT / "captures" / "logs.mcpspy"), stdin=b"").returncode == 0
    finally:
        os.umask(before)
    kept = [home / ".mcpspy", *(home / ".mcpspy").rglob("*")]
    assert {path.name for path in kept} >= {"captures", "key", "backups", "reserved_ports.json", "quota", "pruned.json"}
    assert not [f"{path.name}: {path.stat().st_mode:o}" for path in kept if path.stat().st_mode & 0o077]
