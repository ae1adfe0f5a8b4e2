"""The commands that stand on a page without output: each does what a reader would have it do, or at least is understood.

Those with output are run by tests/test_readme.py, those of docs/howto.md by tests/test_howto.py.
"""

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from tests.cli.desks import desk as made_desk
from tests.cli.helps import COMMANDS
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.imports.packet_files import pcapng
from tests.imports.test_har import ENTRY, har
from tests.imports.test_mcphawk import database_of as stored
from tests.imports.test_mcpsnoop import log_of as snooped
from tests.imports.test_pcap import SEGMENTS, TALK

LINE = re.compile(r"^(?: {4}|\$ )(?:git bisect run )?mcpspy (.+)$", re.MULTILINE)
BEHIND = re.compile(r"\s+(?:#|\||<|>|\|\||&&)\s|\s{2,}")
"""Ends of a command in a page: a comment, or what a shell does with the output."""
PAGES = {page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}


def commands(text: str) -> set[str]:
    """Those of a page or a part of one, without `mcpspy`."""
    return {BEHIND.split(line)[0] for line in LINE.findall(text)}


ALL = sorted(set().union(*map(commands, PAGES.values())))
SHOWN = {
    command
    for text in PAGES.values()
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    for command in commands(block)
}
ENDLESS = re.compile(r"-f\b|^proxy|--listen|^web|^tui|^otlp")
ELSEWHERE = re.compile(r"https://|uvx |tests/peers/|^trial .*--|^wrap --self")
"""Servers of somebody else, programs that other tests start, and what needs an extra: commands run here without."""
TRIED = [command for command in ALL if command not in SHOWN and not ENDLESS.search(command) and not ELSEWHERE.search(command)]
NAMED = (
    "weather.mcpspy", "session.mcpspy", "tickets.mcpspy", "tests/session.mcpspy", "cursor.mcpspy", "claude.mcpspy", "codex.mcpspy",
)  # fmt: skip
"""Captures that the pages use as examples."""


@pytest.mark.parametrize("command", ALL)
def test_a_command_is_understood(command: str) -> None:
    words = shlex.split(command)
    name = tuple(words[:2]) if tuple(words[:2]) in COMMANDS else tuple(words[:1])
    with contextlib.suppress(click.exceptions.Exit):  # as --help ends
        COMMANDS[name].make_context(" ".join(name), words[len(name) :])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_desk(tmp_path_factory.mktemp("desk"))
    for name in ("tests", ".mcpspy-baseline"):
        (folder / name).mkdir()
    for name in NAMED:
        shutil.copy(folder / "store" / "captures" / "weather.mcpspy", folder / name)
    for name in ("mcp-server-weather.log", "server.log"):
        shutil.copy(ROOT / "captures" / "mcp-server-weather.log", folder / name)
    (folder / "session.har").write_bytes(har(ENTRY))
    (folder / "session.jsonl").write_bytes(snooped("time"))
    (folder / "stream.txt").write_bytes(b"".join(data for _, data in TALK))
    (folder / "mcphawk.db").write_bytes(stored("time"))
    (folder / "dump.pcapng").write_bytes(pcapng(SEGMENTS))
    return folder


@pytest.mark.parametrize("command", TRIED)
def test_a_command_does_what_it_is_there_for(command: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(desk / "store"))
    monkeypatch.setenv("HOME", str(desk))
    monkeypatch.chdir(desk)
    for name in ("bug.mcpspy", "page.html"):
        (desk / name).unlink(missing_ok=True)
    done = run(*shlex.split(command), stdin=b"")
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
