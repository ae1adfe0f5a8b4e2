"""The README shows only what was run: its commands print what stands below them, and its example runs."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import COPY
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "start.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "api",
            "call",
            "check",
            "diff",
            "howto",
            "import",
            "mock",
            "model",
            "numbers",
            "pictures",
            "replay",
            "share",
        )
    ),
]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```\n\nprints\n\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOW = re.compile(r"(-replay   )\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(  ok  )[\d.]+ [µm]?s(?=, recorded)")
COLUMNS = "100"


def dialogues(page: Path) -> list[tuple[str, str]]:
    """Return each command of a page's console blocks, with the output that the page shows for it."""
    pairs = []
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            pairs.append((command, output))
    return pairs


def printed(command: str) -> str:
    """Run `command`, a call of mcpspy, in the repository's folder on a terminal as wide as the pages are, and return its output.

    It may end with `< FILE`.
    """
    words, _, file = command.partition(" < ")
    name, *arguments = shlex.split(words)
    assert name == "mcpspy", f"a page shows the output of mcpspy alone, not of {name}"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": COLUMNS, "PYTHONIOENCODING": "utf-8", "TZ": "UTC"}
    run = subprocess.run(
        [*COPY, *arguments],
        cwd=ROOT,
        env=environment,
        input=(ROOT / file).read_bytes() if file else b"",
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return run.stdout.decode()


@pytest.mark.parametrize(("command", "output"), [dialogue for page in PAGES for dialogue in dialogues(page)])
def test_a_page_shows_what_the_command_prints(command: str, output: str) -> None:
    assert NOW.sub(r"\1\2", printed(command)) == NOW.sub(r"\1\2", output)


@pytest.mark.parametrize(
    ("code", "output"), [code for page in PAGES for code in PYTHON.findall(page.read_text(encoding="utf-8"))]
)
def test_an_example_prints_what_the_page_says(code: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        exec(compile(code, "README.md", "exec"), {})
    assert stdout.getvalue() == output


def test_the_readme_shows_output_and_stays_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(dialogues(ROOT / "README.md")) >= 2
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(("target", "program"), [("demo", "mcpspy demo"), ("test", "pytest")])
def test_the_readme_names_the_commands_that_run_it_and_that_test_it(target: str, program: str) -> None:
    assert f"`make {target}`" in (ROOT / "README.md").read_text(encoding="utf-8")
    recipe = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    ).stdout
    assert recipe.splitlines()[-1].startswith(f".venv/bin/{program}")


def test_a_page_has_an_example_of_the_library() -> None:
    assert [page for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))]


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page}" in index} == pages
