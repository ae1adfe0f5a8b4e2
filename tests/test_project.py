"""The project about itself: one version, one changelog, and test machinery that does what CONTRIBUTING.md says of it."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mcpspy import __version__
from tests.deadlines import SCENE_S
from tests.tiers import Tier, covering, current_tier, spread

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_a_dependency_has_a_lower_bound_that_is_tested_and_no_upper_one() -> None:
    extras = [line for name, lines in PROJECT["optional-dependencies"].items() if name != "test" for line in lines]
    lacking = [line for line in [*PROJECT["dependencies"], *extras] if not re.match(r"[\w.-]+>=[\d.]+(;|$)", line)]
    assert not lacking


def test_every_extra_that_a_text_names_exists() -> None:
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "mcpspy").rglob("*.py")]
    named = {extra for path in paths for extra in re.findall(r"mcpspy\[([a-z]+)\]", path.read_text(encoding="utf-8"))}
    assert named <= set(PROJECT["optional-dependencies"])


def test_what_a_command_asks_to_install_is_in_its_extra() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "mcpspy/cli").rglob("*.py"))
    asked = re.findall(r"['\"]([\w-]+>=[\d.]+)['\"]", source)
    assert asked
    assert set(asked) <= {line for lines in PROJECT["optional-dependencies"].values() for line in lines}


def test_the_changelog_opens_with_this_version_or_with_what_comes_after_it() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]" or headings[0].startswith(f"[{__version__}] - ")


def run_pytest(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test file in a folder of its own, under this project's conftest."""
    (folder / "test_sample.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(folder / "temporary"),  # else it sweeps the folder of us and of all who run beside us
            "--rootdir",
            str(folder),
            str(folder),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        timeout=SCENE_S,
        check=False,
    )


SKIPS = {
    "in a test": "import pytest\ndef test_it(): pytest.skip('the reason')\n",
    "by a mark": "import pytest\n@pytest.mark.skip(reason='the reason')\ndef test_it(): pass\n",
    "of a module": "import pytest\npytest.skip('the reason', allow_module_level=True)\n",
}


@pytest.mark.parametrize("source", SKIPS.values(), ids=SKIPS)
def test_a_skip_is_a_failure_where_nothing_may_be_skipped(tmp_path: Path, source: str) -> None:
    done = run_pytest(tmp_path, source, MCPSPY_NO_SKIP="1")
    assert done.returncode not in {0, 5}
    assert "the reason (a skip is a failure under MCPSPY_NO_SKIP=1)" in done.stdout


def test_a_skip_is_a_skip_at_a_desk(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, SKIPS["in a test"], MCPSPY_NO_SKIP="")
    assert "1 skipped" in done.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    source = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert False\n"
    assert run_pytest(tmp_path, source, MCPSPY_NO_SKIP="1").returncode == 0


def test_who_asks_for_an_npm_program_is_marked_npm(tmp_path: Path) -> None:
    source = "def test_plain(): pass\ndef test_npm(npm_program, request): assert request.node.get_closest_marker('npm')\n"
    assert "2 passed" in run_pytest(tmp_path, source).stdout


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, Tier.SAMPLE), ({"CI": "true"}, Tier.SAMPLE), ({"CI": "true", "MCPSPY_TIER": "full"}, Tier.FULL)],
)
def test_the_tier_is_the_sample_unless_one_is_named(environment: dict[str, str], expected: Tier) -> None:
    assert current_tier(environment) is expected


def test_each_tier_does_its_own_count() -> None:
    assert [tier(sample=1, more=2, full=3) for tier in Tier] == [1, 2, 3]


def test_the_tests_can_send_signals_though_a_script_runs_them_in_the_background(tmp_path: Path) -> None:
    raises = "with pytest.raises(KeyboardInterrupt): signal.raise_signal(signal.SIGINT)"
    source = f"import signal, pytest\ndef test_it():\n    {raises}\n"
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run_pytest(tmp_path, source).returncode == 0
    finally:
        signal.signal(signal.SIGINT, kept)


@pytest.fixture(scope="module")
def store_of_a_module() -> Path:
    return Path(os.environ["MCPSPY_HOME"])


def test_no_test_sees_the_store_of_whoever_runs_it(
    store: Path, store_of_a_module: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert store_of_a_module.is_relative_to(tmp_path_factory.getbasetemp())
    assert os.environ["MCPSPY_HOME"] == str(store)
    assert store.is_relative_to(tmp_path_factory.getbasetemp())
    assert not store.exists()


def test_a_grid_is_covered_by_as_few_cells_as_its_longest_axis_has_values() -> None:
    cells = [{"row": row, "column": column} for row in range(3) for column in range(4)]
    tried = [cell for cell, is_chosen in zip(cells, covering(cells), strict=True) if is_chosen]
    assert len(tried) == 4
    assert sorted(cell["column"] for cell in tried) == [0, 1, 2, 3]
    assert {cell["row"] for cell in tried} == {0, 1, 2}


@pytest.mark.parametrize(("count", "chosen", "numbers"), [(7, 3, [0, 3, 6]), (2, 5, [0, 1]), (5, 1, [0]), (6, 6, [*range(6)])])
def test_cells_are_spread_over_a_grid(count: int, chosen: int, numbers: list[int]) -> None:
    assert [number for number, is_chosen in enumerate(spread(count, chosen)) if is_chosen] == numbers
