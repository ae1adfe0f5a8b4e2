"""mcpspy before a model's API, and the packages `openai` and `anthropic`: neither side can tell that it is there."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mcpspy
from captures.serving import PEERS, environment
from tests.deadlines import DEADLINE_S
from tests.interop.serving import logged, recorded
from tests.interop.wires import disagreements
from tests.models import CLIENT_STORY, model
from tests.tiers import Tier, current_tier

WAYS = [("openai", "sync"), ("openai", "async"), ("anthropic", "sync"), ("anthropic", "async")]
API = {"openai": ("chat", "responses"), "anthropic": ("messages",)}


def raising(package: str) -> set[tuple[str, str, bool]]:
    """List the broken calls for which the package raises an exception; it takes the others for answers."""
    cases = {(api, "refused", streams) for api in API[package] for streams in (False, True)}
    cases |= {(api, question, True) for api in API[package] for question in ("dies", "garbled")}
    return cases | {(api, "midway", True) for api in API[package] if api != "responses"}  # where it is an event


def client_events(folder: Path, *words: str) -> list[list[Any]]:
    """Run tests/peers/modelclient.py and return what it received from each URL."""
    argv = [sys.executable, str(PEERS / "modelclient.py"), *words]
    ran = subprocess.run(argv, cwd=folder, env=environment(folder), capture_output=True, timeout=DEADLINE_S, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


@contextmanager
def mocking(capture: Path) -> Iterator[str]:
    """`mcpspy mock` of a capture. Yields its origin."""
    words = [sys.executable, "-m", "mcpspy", "mock", str(capture), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as mock:
        try:
            assert mock.stderr is not None
            yield mock.stderr.readline().strip().partition("=")[2].removesuffix("/v1")
        finally:
            mock.kill()


@pytest.mark.parametrize(("package", "mode"), current_tier()(sample=WAYS[:1], more=WAYS, full=WAYS))
def test_a_package_is_told_the_same_with_mcpspy_as_without(
    package: str, mode: str, tmp_path: Path, subtests: pytest.Subtests, tier: Tier
) -> None:
    options = ("--model", "--redact", "none", "--allowed-host", "127.0.0.1")  # the client names the logger's port
    with (
        model(CLIENT_STORY, tmp_path) as url,
        logged(url, tmp_path, "inner") as inner,
        recorded(inner, tmp_path, *options) as tap,
        logged(tap, tmp_path, "outer") as outer,
    ):
        direct, tapped = client_events(tmp_path, package, mode, url, outer)
    records = list(mcpspy.read(tmp_path / "a.mcpspy"))
    with subtests.test("every question is answered as the story has it"):
        raised = {(api, question, streams) for api, question, streams, came in direct if "raised" in came[-1]}
        assert raised == raising(package)
    with subtests.test("the package is told the same, event for event"):
        assert tapped == direct
    with subtests.test("the capture holds the bytes of the wire, and each request went on once"):
        assert disagreements(tmp_path, records) == []
    with subtests.test("each prompt is a model call, whatever became of it"):
        questions = [question for _, question, _, _ in direct if question]
        calls = mcpspy.transcribe(records).model_calls
        assert len(calls) == len(questions) + sum(call.transaction.status == 429 for call in calls)
    if tier is not Tier.SAMPLE:
        with subtests.test("a mock of the capture tells the package the same"), mocking(tmp_path / "a.mcpspy") as url:
            assert client_events(tmp_path, package, mode, url) == [direct]
