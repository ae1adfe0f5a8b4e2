"""Servers with a URL: they are played and recorded over HTTP, and end with the test, however that ends."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import ReplayError
from mcpspy.testing.backends import LISTEN, ListeningProcess
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S, eventually
from tests.tiers import current_tier

pytest_plugins = ["pytester"]

ASK = """
import asyncio
from pathlib import Path
from mcp import Client
from mcp.client.sse import sse_client

async def ask(server, city):
    async with Client(server, mode="legacy") as client:
        return (await client.call_tool("weather", {"city": city})).content[0].text

"""


ENDINGS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def is_listening(url: str) -> bool:
    """Return whether somebody accepts connections there."""
    host, port = re.findall(r"//([\d.]+):(\d+)/", url)[0]
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_a_capture_of_stdio_is_played_over_http_and_a_miss_fails_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        ASK
        + """
def test_streamable(mcpspy):
    server = mcpspy.serve("weather")
    assert server.url.endswith("/mcp")
    assert "小雨" in asyncio.run(ask(server.url, "北京"))
    assert server.tool_calls == [("weather", {"city": "北京"})]
    Path("url").write_text(server.url)

def test_sse(mcpspy):
    server = mcpspy.serve("weather", transport="sse")
    assert server.url.endswith("/sse")
    assert "小雨" in asyncio.run(ask(sse_client(server.url), "北京"))

def test_miss(mcpspy):
    try:
        asyncio.run(ask(mcpspy.serve("weather").url, "上海"))
    except BaseException:
        pass
"""
    )
    ran = project.runpytest()
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["_* test_miss _*", "captures/weather.mcpspy: 1 of * requests was never recorded"])
    assert not is_listening((project.path / "url").read_text())


def test_a_server_is_recorded_from_its_url_and_played_at_another(project: pytest.Pytester, tmp_path: Path) -> None:
    real = ListeningProcess(
        ["mock", str(ROOT / "captures" / "logs.mcpspy"), f"--listen={LISTEN}", "--quiet"],
        what="logs",
        output=tmp_path / "output",
    )
    try:
        project.makepyfile(
            ASK
            + f"""
def test_weather(mcpspy):
    server = mcpspy.serve("recorded", record="{real.url}")
    assert "小雨" in asyncio.run(ask(server.url, "北京"))
"""
        )
        project.runpytest().assert_outcomes(passed=1)
    finally:
        real.close()
    project.runpytest().assert_outcomes(passed=1)


def test_a_server_that_refused_everything_is_played_over_http_alone(project: pytest.Pytester) -> None:
    lines = (ROOT / "captures" / "oauth.mcpspy").read_text(encoding="utf-8").splitlines(keepends=True)
    (project.path / "captures" / "login.mcpspy").write_text("".join(lines[:7]), encoding="utf-8")
    project.makepyfile(
        """
        import json, urllib.error, urllib.request
        import pytest
        from client import HELLO

        def test_http(mcpspy):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
            fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            request = urllib.request.Request(mcpspy.serve("login").url, body, fields)
            with pytest.raises(urllib.error.HTTPError, match="401") as caught:
                urllib.request.urlopen(request)
            assert "invalid_token" in caught.value.read().decode()
            caught.value.close()

        def test_stdio(mcpspy):
            mcpspy.serve("login").args
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        ["E *captures/login.mcpspy: its server refused everything over HTTP, and stdio has no such refusals: *"]
    )


@pytest.mark.parametrize(
    ("record", "use", "sentence"),
    [
        ('"http://127.0.0.1:1/mcp"', "server.args", "it is to be recorded from http://127.0.0.1:1/mcp, which is HTTP: *"),
        ('["server"]', "server.url", "it is to be recorded from a command, which is stdio:*"),
    ],
)  # fmt: skip
def test_what_is_recorded_on_one_transport_is_not_reached_by_the_other(
    project: pytest.Pytester, record: str, use: str, sentence: str
) -> None:
    project.makepyfile(f"def test_weather(mcpspy):\n    server = mcpspy.serve('new', record={record})\n    {use}\n")
    ran = project.runpytest()
    ran.stdout.fnmatch_lines([f"E *captures/new.mcpspy: {sentence}"])


@pytest.mark.parametrize("number", current_tier()(sample=ENDINGS[:1], more=ENDINGS, full=ENDINGS))
def test_a_server_with_a_url_ends_with_the_tests_that_use_it(project: pytest.Pytester, number: signal.Signals) -> None:
    project.makepyfile(
        """
        import os, time

        def test_weather(mcpspy):
            with open("url.part", "w") as file:
                file.write(mcpspy.serve("weather").url)
            os.rename("url.part", "url")
            time.sleep(600)
        """
    )
    with subprocess.Popen([sys.executable, "-m", "pytest", "-q"], cwd=project.path, stdout=subprocess.DEVNULL) as running:
        try:
            eventually((project.path / "url").exists, "the test to begin")
            url = (project.path / "url").read_text()
            assert is_listening(url)
            running.send_signal(number)
            running.wait(DEADLINE_S)
        finally:
            running.kill()
    eventually(lambda: not is_listening(url), "the server to end")


def test_a_server_that_cannot_listen_says_why(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"^weather: nothing\.mcpspy: there is no such file"):
        ListeningProcess(["mock", "nothing.mcpspy", f"--listen={LISTEN}"], what="weather", output=tmp_path / "output")
