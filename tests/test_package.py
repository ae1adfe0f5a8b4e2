"""The packages: what is in them, and that `uvx` and `pipx` run mcpspy from its wheel."""

import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.npm

TOOLS = ROOT / "build" / "packaging" / "bin"
LONG_S = 170
"""The environments that the tools make are filled from an index."""


def run(*words: str | Path, home: Path) -> str:
    """Run a tool with a home folder of its own; return what it printed to stdout."""
    env = {**os.environ, "HOME": str(home), "UV_CACHE_DIR": str(home / "uv"), "PIPX_HOME": str(home / "pipx")}
    env |= {"PIPX_BIN_DIR": str(home / "bin"), "PIPX_MAN_DIR": str(home / "man"), "UV_NO_CONFIG": "1"}
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    if not (TOOLS / "twine").exists():
        pytest.skip("needs `make npm`, which installs what builds packages")
    folder = tmp_path_factory.mktemp("dist")
    run(TOOLS / "python", "-m", "build", "--quiet", "--outdir", folder, ROOT, home=folder / "home")
    return folder


@pytest.fixture(scope="module")
def wheel(packages: Path) -> Path:
    """The wheel."""
    (path,) = packages.glob("*.whl")
    return path


def version() -> str:
    """Read the version that the project declares."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def tracked(*folders: str) -> set[str]:
    """List the files of the project in these folders."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", *folders], capture_output=True, text=True, check=True).stdout
    return set(names.splitlines())


def test_the_index_would_take_both_packages(packages: Path, tmp_path: Path) -> None:
    paths = sorted(packages.glob("mcpspy-*"))
    assert len(paths) == 2
    assert run(TOOLS / "twine", "check", "--strict", *paths, home=tmp_path).count("PASSED") == 2


def test_the_wheel_holds_the_program_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    compiled = {name for name in names if name.endswith(".so")}
    assert names - compiled == {name for name in tracked("mcpspy") if not name.endswith(".c")}
    assert compiled == {"mcpspy/speedups.abi3.so"}


def test_the_sdist_holds_what_its_tests_need(packages: Path) -> None:
    (path,) = packages.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked("mcpspy", "tests", "docs", "captures", "benchmarks") <= names
    assert {"LICENSE", "README.md", "pyproject.toml", "Makefile", "hatch_build.py"} <= names
    assert not [name for name in names if name.endswith(".so")]


def test_the_same_bytes_are_built_again_by_somebody_with_another_umask(packages: Path, tmp_path: Path) -> None:
    build = ("-c", "import os, runpy; os.umask(0o077); runpy.run_module('build', run_name='__main__', alter_sys=True)")
    run(TOOLS / "python", *build, "--quiet", "--outdir", tmp_path / "dist", ROOT, home=tmp_path)
    for path in packages.glob("mcpspy-*"):
        assert (tmp_path / "dist" / path.name).read_bytes() == path.read_bytes(), path.name


def test_uvx_runs_mcpspy_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    assert version() in run(TOOLS / "uvx", "--from", wheel, "mcpspy", "--version", home=tmp_path)
    assert "8 calls" in run(TOOLS / "uvx", "--from", wheel, "mcpspy", "demo", home=tmp_path)


def test_pipx_installs_mcpspy_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    run(TOOLS / "pipx", "install", wheel, home=tmp_path)
    assert version() in run(tmp_path / "bin" / "mcpspy", "--version", home=tmp_path)
    for shell in ("bash", "zsh", "fish"):
        assert "mcpspy" in run(tmp_path / "bin" / "mcpspy", "completion", shell, home=tmp_path)
