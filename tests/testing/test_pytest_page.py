"""docs/pytest.md shows only what was run: its example passes with and without the server, and fails with this text."""

import inspect
import re
import sys

import pytest

from mcpspy.testing.servers import ServersUnderTest, ServerUnderTest
from tests.conftest import PEERS, ROOT
from tests.test_readme import dialogues, printed

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "pytest.md"
TEXT = PAGE.read_text(encoding="utf-8")
[EXAMPLE] = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
[FAILURE] = re.findall(r"pytest prints:\n\n```\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
HELD = """\
    assert "小雨" in asyncio.run(forecast(server.stdio_parameters(), "北京"))
    assert server.tool_calls == [("weather", {"city": "北京"})]
"""
SILENT = """\
    try:
        asyncio.run(forecast(server.stdio_parameters(), "上海"))
    except Exception:
        pass
"""


def test_the_example_passes_with_and_without_the_server_and_fails_as_the_page_says(project: pytest.Pytester) -> None:
    (project.path / "captures" / "weather.mcpspy").unlink()
    project.makepyfile(test_forecast=EXAMPLE)
    words = [sys.executable, str(PEERS / "sdktests.py"), "--basetemp", str(project.path / "temporary")]
    project.run(*words).assert_outcomes(passed=1)
    (project.path / "server.py").unlink()
    assert HELD in EXAMPLE
    project.makepyfile(test_again=EXAMPLE, test_forecast=EXAMPLE.replace(HELD, SILENT))
    ran = project.run(*words)
    ran.assert_outcomes(passed=1, failed=1)
    assert FAILURE in ran.stdout.str()


@pytest.mark.parametrize(("command", "output"), dialogues(PAGE))
def test_the_page_shows_what_the_command_prints(command: str, output: str) -> None:
    assert printed(command) == output


def named_below(head: str) -> set[str]:
    """Read the names in the first column of a table."""
    table = TEXT.partition(f"| {head} |")[2].partition("\n\n")[0]
    return {name for cell in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", cell)}


def test_the_page_names_all_arguments_of_serve() -> None:
    assert named_below("of `serve`") == set(inspect.signature(ServersUnderTest.serve).parameters) - {"self", "name"}


def test_the_page_names_all_attributes_of_a_server() -> None:
    undocumented = {"allows_misses", "backend", "real", "close", "detailed_misses"}
    assert named_below("of a server") == {name for name in vars(ServerUnderTest) if not name.startswith("_")} - undocumented
