"""`--help` of every verb and format, and `mcpspy help` on topics: an example in each, and none that does not work."""

import re
import shlex
from pathlib import Path

import click
import pytest

from mcpspy.cli.help import TEXTS
from tests.cli.desks import desk as made_desk
from tests.cli.helps import COMMANDS, unknown_options
from tests.cli.terminal import on_pipe, run

SCREEN_LINES, SCREEN_COLUMNS = 24, 80
EXAMPLE = re.compile(r"^ {2,}(?:git bisect run )?mcpspy (.+?)(?:\s{2,}.*|\s+[|>&].*)?$", re.MULTILINE)


def help_of(words: tuple[str, ...]) -> str:
    """Return the text of `--help` without a process; the tests of each verb run it for real."""
    return COMMANDS[words].get_help(click.Context(COMMANDS[words], info_name=" ".join(("mcpspy", *words))))


def examples(text: str) -> list[list[str]]:
    """Return the words of the commands that a help text shows, without `mcpspy`."""
    return [shlex.split(line) for line in EXAMPLE.findall(text)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_has_an_example_of_its_own(words: tuple[str, ...]) -> None:
    shown = examples(help_of(words))
    assert [example for example in shown if tuple(example[: len(words)]) == words or example[:1] == ["run"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_example_uses_options_that_there_are(words: tuple[str, ...]) -> None:
    assert not set().union(*map(unknown_options, examples(help_of(words))))


def test_an_example_with_an_option_that_is_gone_is_seen() -> None:
    shown = examples("  mcpspy show @:7 --gone   what it was\n  mcpspy export svg --raw > x.svg\n  mcpspy run -- x --gone\n")
    assert [unknown_options(example) for example in shown] == [{"--gone"}, {"--raw"}, set()]


# --- Topics ---


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_desk(tmp_path_factory.mktemp("desk"))


@pytest.mark.parametrize("topic", TEXTS)
def test_a_topic_fits_a_screen(topic: str) -> None:
    lines = run("help", topic).stdout.splitlines()
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_COLUMNS


@pytest.mark.parametrize("topic", TEXTS)
def test_the_commands_of_a_topic_do_what_they_say(topic: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(desk / "store"))
    monkeypatch.chdir(desk)
    for words in examples(run("help", topic).stdout):
        if "--listen" in words:
            with on_pipe(*words) as serving:
                assert "http://127.0.0.1:" in serving.wait_for("http://127.0.0.1:")
            continue
        done = run(*words, stdin=b"")
        assert done.returncode in (0, 1), f"{words}: {done.stderr}"
        assert "Traceback" not in done.stderr
