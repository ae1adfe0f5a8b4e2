"""Fixtures for tests that run tests: a project folder for each, with a stdio client as its code under test."""

from pathlib import Path
from shutil import copy

import pytest

# pytester forgets what was imported after it began: without these, every test would import them again, which takes 0.2 s.
import mcpspy.testing.messages
import mcpspy.testing.servers  # noqa: F401
from tests.conftest import PEERS, ROOT

CLIENT = '''
"""A client of stdio: it says hello, calls tools one after the other, and leaves."""
import json, os, subprocess

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "small", "version": "1"}}


def ask(server, *calls):
    argv, environment = [server.command, *server.args], {"PATH": os.environ["PATH"], **server.env}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env=environment, text=True, encoding="utf-8", bufsize=1, **pipes) as process:

        def say(**line):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\\n")

        def answered(id, method, params):
            say(id=id, method=method, params=params)
            return json.loads(process.stdout.readline())

        answered(0, "initialize", HELLO)
        say(method="notifications/initialized")
        answers = [
            answered(id, "tools/call", {"name": name, "arguments": arguments})
            for id, (name, arguments) in enumerate(calls, 1)
        ]
    return answers


def weather(server, city):
    [answer] = ask(server, ("weather", {"city": city}))
    return answer["result"]["content"][0]["text"]
'''


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the client `client.py`, the real server `server.py`, and its capture `captures/weather.mcpspy`."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")  # pytest-asyncio warns where it is not set
    pytester.makepyfile(client=CLIENT)
    copy(PEERS / "logserver.py", pytester.path / "server.py")
    pytester.mkdir("captures")
    copy(ROOT / "captures" / "logs.mcpspy", pytester.path / "captures" / "weather.mcpspy")
    pytester.syspathinsert()
    return pytester


@pytest.fixture
def captures(project: pytest.Pytester) -> Path:
    """The folder of the project's captures."""
    return project.path / "captures"
