"""Files whose names differ in case alone, which macOS and Windows take for one: nothing of mcpspy relies on two."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "captures" / "cancelled.mcpspy"

on_each = pytest.mark.parametrize("system", ["darwin", "win32"])


def played(system: str, home: Path, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python as on this system."""
    environment = {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)]),
        "MCPSPY_TESTED_SYSTEM": system,
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONUTF8": "1",
    }
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=DEADLINE_S, cwd=cwd, check=False
    )


def as_ours(system: str, home: Path, code: str) -> str:
    """Run lines as a module of mcpspy would, and return what they print."""
    code = f"import mcpspy, os\nfrom pathlib import Path\nexec({code!r}, {{**globals(), '__name__': 'mcpspy.line'}})"
    result = played(system, home, "-c", code)
    assert result.returncode == 0, result.stderr
    return result.stdout


@on_each
def test_a_file_is_found_by_its_name_in_another_case_and_keeps_its_own(system: str, tmp_path: Path) -> None:
    (tmp_path / "Folder").mkdir()
    (tmp_path / "Folder" / "File.txt").write_text("one", encoding="utf-8")
    code = f"""
path = {str(tmp_path / "folder" / "FILE.TXT")!r}
print(open(path).read(), Path(path).read_text(), os.path.exists(path))
open(path, 'a').write(' two')
"""
    assert as_ours(system, tmp_path, code).split() == ["one", "one", "True"]
    assert [path.name for path in (tmp_path / "Folder").iterdir()] == ["File.txt"]


@on_each
def test_captures_whose_labels_differ_in_case_alone_are_two_files(system: str, tmp_path: Path) -> None:
    code = """
from mcpspy.capture.store.folder import create
for label in ('weather', 'Weather', 'WEATHER'):
    fd, path = create(None, label, wall_ns=0)
    os.write(fd, label.encode())
    os.close(fd)
"""
    as_ours(system, tmp_path, code)
    folder = tmp_path / ".mcpspy" / "captures"
    assert sorted(path.read_text(encoding="utf-8") for path in folder.glob("*.mcpspy")) == ["WEATHER", "Weather", "weather"]


@on_each
def test_a_capture_never_goes_into_a_file_whose_name_differs_in_case_alone(system: str, tmp_path: Path) -> None:
    (tmp_path / "X.mcpspy").write_bytes(CAPTURE.read_bytes())
    arguments = ["-m", "mcpspy", "run", "--capture", "x.mcpspy", "--", sys.executable, "-c", ""]
    assert played(system, tmp_path, *arguments, cwd=tmp_path).returncode == 0
    assert (tmp_path / "X.mcpspy").read_bytes() == CAPTURE.read_bytes()
    assert sorted(path.name for path in tmp_path.glob("?*.mcpspy")) == ["X.mcpspy", "x-2.mcpspy"]


@on_each
@pytest.mark.parametrize("name", ["CANCELLED.mcpspy", "Cancelled.MCPSPY"])
def test_a_capture_can_be_named_in_any_case(system: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "cancelled.mcpspy").write_bytes(CAPTURE.read_bytes())
    shown, named = (played(system, tmp_path, "-m", "mcpspy", "show", file, cwd=tmp_path) for file in ("cancelled.mcpspy", name))
    assert named.returncode == 0, named.stderr
    assert named.stdout.splitlines()[2:] == shown.stdout.splitlines()[2:]


@on_each
def test_servers_whose_names_differ_in_case_alone_are_wrapped_and_unwrapped(system: str, tmp_path: Path) -> None:
    config = tmp_path / ".cursor" / "mcp.json"
    config.parent.mkdir()
    text = '{"mcpServers": {"weather": {"command": "cat"}, "Weather": {"command": "cat", "args": ["-u"]}}}\n'
    config.write_text(text, encoding="utf-8")
    wrapped = played(system, tmp_path, "-m", "mcpspy", "wrap", "--yes", cwd=tmp_path)
    assert wrapped.returncode == 0, wrapped.stderr
    assert config.read_text(encoding="utf-8").count('"mcpspy"') + config.read_text(encoding="utf-8").count("/mcpspy") >= 2
    assert played(system, tmp_path, "-m", "mcpspy", "unwrap", "--yes", cwd=tmp_path).returncode == 0
    assert config.read_text(encoding="utf-8") == text


@on_each
def test_a_configuration_file_in_another_case_is_found(system: str, tmp_path: Path) -> None:
    config = tmp_path / ".Cursor" / "MCP.json"
    config.parent.mkdir()
    config.write_text('{"mcpServers": {"a": {"command": "cat"}}}\n', encoding="utf-8")
    assert played(system, tmp_path, "-m", "mcpspy", "wrap", "--yes", cwd=tmp_path).returncode == 0
    assert "mcpspy" in config.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.name.lower() == ".cursor"] == [".Cursor"]


@on_each
def test_prune_deletes_a_capture_with_its_index_and_no_other(system: str, tmp_path: Path) -> None:
    folder = tmp_path / ".mcpspy" / "captures"
    folder.mkdir(parents=True)
    for name, capture in (("20200101T000000Z-Weather-7", "cancelled"), ("20200101T000000Z-weather-8", "everything")):
        (folder / f"{name}.mcpspy").write_bytes((ROOT / "captures" / f"{capture}.mcpspy").read_bytes())
    pruned = played(system, tmp_path, "-m", "mcpspy", "prune", "--keep", "1", "--yes", cwd=tmp_path)
    assert pruned.returncode == 0, pruned.stderr
    assert len(list(folder.glob("*.mcpspy"))) == 1
