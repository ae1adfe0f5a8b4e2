"""Tests of the options of `mcpspy mock --on-miss pass-through`: what it needs, and its messages when that is missing."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.live.mock.mocking import written
from tests.transcript.dialogue import Dialogue, request, result


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return written(tmp_path / "a.mcpspy", Dialogue().client(request(1)).server(result(1)).records)


def mock(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run("mock", *map(str, arguments))


PASS_THROUGH = ("--on-miss", "pass-through")
NOT_BOTH = "name the live server by its command after --, or by --url and --header, not by both"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (PASS_THROUGH, "--on-miss pass-through needs a live server: its command after --, or --url URL"),
        ((*PASS_THROUGH, "--"), "the server's command after -- is missing"),
        ((*PASS_THROUGH, "--url", "http://x/", "--", "server"), NOT_BOTH),
        ((*PASS_THROUGH, "--header", "A: b", "--", "server"), NOT_BOTH),
        ((*PASS_THROUGH, "--url", "mcp.example"), "mcp.example is not the URL of a server"),
        ((*PASS_THROUGH, "--url", "http://x/", "--header", "secret"), "--header takes 'Name: value'"),
        (("--url", "http://x/"), "--url needs --on-miss pass-through"),
        (("--catch-up",), "--catch-up needs --on-miss pass-through"),
        (("--on-miss", "nearest", "--", "server"), "a command after -- needs --on-miss pass-through"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", [(), ("--listen", "127.0.0.1:0")])
def test_options_that_cannot_be_combined_are_reported(
    capture: Path, words: tuple[str, ...], why: str, way: tuple[str, ...]
) -> None:
    done = mock(capture, *way, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mcpspy mock: {why}")


def test_options_that_repeat_count_wherever_they_stand(capture: Path) -> None:
    done = mock("--ignore", "$.a", capture, "--ignore", "no path")
    assert (done.returncode, "no path" in done.stderr) == (2, True)
    done = mock("--ignore", "no path", capture, "--ignore", "$.a")
    assert (done.returncode, "no path" in done.stderr) == (2, True)


def test_help_shows_an_example() -> None:
    assert "--on-miss pass-through -- uvx weather-server" in mock("--help").stdout
