"""The packages: what is in them, that pip, `uvx` and `pipx` run mcpspy from its wheel, and the workflows that publish them."""

import email.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from mcpspy import __version__
from tests.conftest import ROOT
from tests.golden.test_format_1 import NAMES, changes

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


def tracked(*folders: str) -> set[str]:
    """List the files of the project in these folders."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", *folders], capture_output=True, text=True, check=True).stdout
    return set(names.splitlines())


def metadata(wheel: Path) -> Message:
    """Read the metadata of a wheel; its body is the README as an index shows it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def readme_of(described: Message) -> str:
    """Return the README that metadata has."""
    return str(described.get_payload())


def copy_with_address(folder: Path, address: str) -> Path:
    """Copy the project, and fill in its address."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    project = folder / "pyproject.toml"
    project.write_text(
        project.read_text(encoding="utf-8").replace('repository = ""', f'repository = "{address}"'), encoding="utf-8"
    )
    return folder


def step(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a step of the workflows in a copy of the project, with the Python that has the tools."""
    command = [str(word) for word in (TOOLS / "python", folder / ".ci" / "steps.py", *words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONG_S, check=False)


ADDRESS = "https://git.example.com/ada/mcpspy"


def test_without_an_address_the_metadata_has_no_links(wheel: Path) -> None:
    described = metadata(wheel)
    assert described["Version"] == __version__
    assert described.get_all("Project-URL") is None
    assert not re.findall(r"\]\((?!https?:)", readme_of(described))


def test_with_an_address_every_link_begins_with_it(tmp_path: Path) -> None:
    project = copy_with_address(tmp_path / "project", ADDRESS)
    done = step(project, "packages", tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "dist").glob("*-py3-none-any.whl")
    described = metadata(path)
    urls = dict(url.split(", ") for url in described.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    readme = readme_of(described)
    assert f"[an intercept]({ADDRESS}/blob/v{__version__}/docs/intercept.md)" in readme
    assert all(url.startswith(ADDRESS) for url in [*urls.values(), *re.findall(r"\]\(([^)]*)\)", readme)])


def test_the_classifiers_are_the_pythons_and_systems_of_the_workflow(wheel: Path) -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    pythons = re.findall(r'"(3\.\d+)"', workflow[workflow.index("python: [") :].partition("]")[0])
    classifiers = metadata(wheel).get_all("Classifier", [])
    assert {f"Programming Language :: Python :: {python}" for python in [*pythons, "3"]} == {
        classifier for classifier in classifiers if classifier.startswith("Programming Language")
    }
    systems = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    assert {
        f"Operating System :: {classifier}" for system, classifier in systems.items() if f"{system}-latest" in workflow
    } == {classifier for classifier in classifiers if classifier.startswith("Operating System")}


def test_the_workflows_are_valid_and_run_scripts_of_the_project() -> None:
    paths = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    done = subprocess.run(
        [str(TOOLS / "check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    commands = [command for path in paths for command in re.findall(r"run: (.*)", path.read_text(encoding="utf-8"))]
    ours = (
        r"python \.ci/steps\.py (tests|packages|try|releasable)\b.*|python -m pip install .*|python -m mcpspy demo|make lowest"
    )
    assert [command for command in commands if not re.fullmatch(ours, command)] == []


def test_the_step_that_runs_the_tests_runs_those_it_is_asked_for() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "steps.py"), "tests", "-p", "no:cacheprovider", "tests/wire/test_lines.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("address", "tag", "reason"),
    [
        ("", f"v{__version__}", "pyproject.toml names no repository"),
        (ADDRESS, "v0.1.0", f"the tag is v0.1.0, and mcpspy/__init__.py says {__version__}"),
        (ADDRESS, f"v{__version__}", ""),
    ],
)
def test_what_may_not_be_released_is_refused(address: str, tag: str, reason: str, tmp_path: Path) -> None:
    project = copy_with_address(tmp_path, address)
    changes = project / "CHANGELOG.md"
    changes.write_text(
        re.sub(
            r"^## \[.*", f"## [{__version__}] - 2027-01-02", changes.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE
        ),
        encoding="utf-8",
    )
    done = step(project, "releasable", tag)
    assert reason in done.stderr
    assert done.returncode == (1 if reason else 0)


def test_pip_installs_mcpspy_from_the_wheel(wheel: Path) -> None:
    done = step(ROOT, "try", wheel)
    assert done.returncode == 0, done.stderr
    assert "8 calls" in done.stdout


@pytest.mark.parametrize("pure", ["", "1"])
def test_the_installed_wheel_prints_of_golden_captures_what_this_version_did(pure: str, wheel: Path, tmp_path: Path) -> None:
    run(TOOLS / "uv", "venv", "--quiet", tmp_path / "installed", home=tmp_path)
    python = tmp_path / "installed" / "bin" / "python"
    run(TOOLS / "uv", "pip", "install", "--quiet", "--python", python, wheel, home=tmp_path)
    shutil.copytree(ROOT / "tests" / "golden", tmp_path / "tests" / "golden")
    done = subprocess.run(
        [python, "-m", "tests.golden.printed", *NAMES], cwd=tmp_path, env={**os.environ, "TZ": "UTC", "MCPSPY_PURE": pure},
        capture_output=True, timeout=LONG_S, check=True,
    )  # fmt: skip
    assert changes(dict(json.loads(done.stdout))) == []


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
    assert __version__ in run(TOOLS / "uvx", "--from", wheel, "mcpspy", "--version", home=tmp_path)
    assert "8 calls" in run(TOOLS / "uvx", "--from", wheel, "mcpspy", "demo", home=tmp_path)


def test_pipx_installs_mcpspy_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    run(TOOLS / "pipx", "install", wheel, home=tmp_path)
    assert __version__ in run(tmp_path / "bin" / "mcpspy", "--version", home=tmp_path)
    for shell in ("bash", "zsh", "fish"):
        assert "mcpspy" in run(tmp_path / "bin" / "mcpspy", "completion", shell, home=tmp_path)
