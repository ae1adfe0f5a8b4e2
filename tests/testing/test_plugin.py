"""The plugin itself: loading it costs nothing to those who do not use it, and it works with other plugins."""

import subprocess
import sys

import pytest

from tests.deadlines import DEADLINE_S
from tests.imported import assert_absent
from tests.tiers import Tier

pytest_plugins = ["pytester"]


def test_loading_it_imports_nothing_but_the_plugin() -> None:
    code = "import sys, pytest; before = {*sys.modules}; import mcpspy.pytest_plugin; print(*sorted({*sys.modules} - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert ran.stdout.split() == ["mcpspy", "mcpspy.pytest_plugin"]


def test_pytest_finds_it_by_itself(project: pytest.Pytester) -> None:
    ran = project.runpytest("--fixtures", "-q")
    ran.stdout.fnmatch_lines(["mcpspy -- */mcpspy/pytest_plugin.py:*"])


def test_a_test_without_the_fixture_imports_nothing_more(project: pytest.Pytester) -> None:
    project.makepyfile("import sys\n\ndef test_nothing():\n    print('modules:', *sys.modules)\n")
    ran = project.runpytest_subprocess("-s")
    ran.assert_outcomes(passed=1)
    (modules,) = [line for line in ran.outlines if "modules: " in line]
    assert_absent({"mcpspy.testing"}, modules.split())


@pytest.mark.more
def test_workers_of_xdist_play_record_and_report_as_one_process_does(project: pytest.Pytester, tier: Tier) -> None:
    count = tier(sample=3, more=20, full=100)
    project.makepyfile(
        f"""
        import sys
        import pytest
        from client import ask

        @pytest.mark.parametrize("number", range({count}))
        def test_weather(mcpspy, number):
            ask(mcpspy.serve("weather"), ("weather", {{"city": "上海" if number == 1 else "北京"}}))

        @pytest.mark.parametrize("number", range({count}))
        def test_shared(mcpspy, number):
            ask(mcpspy.serve("shared", record=[sys.executable, "server.py", "0"]), ("weather", {{"city": "北京"}}))
        """
    )
    ran = project.runpytest_subprocess("-n", "2")
    ran.assert_outcomes(passed=2 * count - 1, failed=1)
    ran.stdout.fnmatch_lines(
        ["captures/weather.mcpspy: 1 of 2 requests was never recorded", "*- mcpspy: captures/weather.mcpspy -*"]
    )
    assert sorted(path.name for path in (project.path / "captures").iterdir()) == ["shared.mcpspy", "weather.mcpspy"]
    project.runpytest("--mcpspy-record=none", "-k", "shared").assert_outcomes(passed=count, deselected=count)
