"""The labels of servers that nobody named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.store.label import LETTERS, default_label


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /tmp", "server-filesystem"),
        ("npx -y @scope/thing@1.2.3 --flag", "thing"),
        ("npx --package=thing thing-cli", "thing-cli"),
        ("npm exec -- @scope/thing@latest", "thing"),
        ("pnpm dlx thing", "thing"),
        ("bunx thing@2", "thing"),
        ("uvx mcp-server-git --repository .", "mcp-server-git"),
        ("uvx mcp-server-time==1.0", "mcp-server-time"),
        ("uvx --from git+https://example.org/a/tool.git tool-cli", "tool-cli"),
        ("uvx git+https://example.org/a/tool.git@main", "tool"),
        ("pipx run thing[extra]", "thing"),
        ("uv tool run thing", "thing"),
        ("uv run --directory /srv weather.py", "weather"),
        ("uv --directory /srv run weather-server", "weather-server"),
        ("uv run python -m weather", "weather"),
        ("python -m mcp_server_time", "mcp_server_time"),
        ("python3.11 -u -m weather.__main__", "weather"),
        ("python -m weather.server", "weather"),
        ("python pyserver.py", "pyserver"),
        ("python -X dev pyserver.py stdio", "pyserver"),
        ("python /home/me/weather/server.py", "weather"),
        ("python server.py", "server"),
        ("python -c pass", "python"),
        ("node build/index.js", "index"),
        ("node --import tsx /home/me/weather/dist/index.js", "weather"),
        ("deno run -A jsr:@scope/thing", "thing"),
        ("java -Xmx1g -jar target/weather-1.2.jar", "weather-1.2"),
        ("docker run -i mcp/fetch", "fetch"),
        ("docker run -i --rm -e KEY=value -v /a:/b ghcr.io/mcp/fetch:latest --flag", "fetch"),
        ("docker run --rm -it --name box mcp/fetch@sha256:00", "fetch"),
        ("docker compose up", "docker"),
        ("env KEY=value npx thing", "thing"),
        ("cmd /c npx -y thing", "thing"),
        (r"C:\tools\npx.cmd -y thing", "thing"),
        ("/opt/bin/github-mcp-server stdio", "github-mcp-server"),
        ("./server", "server"),
        ("sh -c thing", "sh"),
        ("bash -lc thing", "bash"),
        ("npx", "npx"),
        ("env", "server"),
    ],
)
def test_a_server_is_named_for_its_program_and_not_for_the_runner(command: str, label: str) -> None:
    assert default_label(command.split()) == label


@given(st.lists(st.text() | st.sampled_from(["npx", "docker", "run", "env", "uv", "python", "-m", "-", "--", "@", "/", "."])))
def test_any_command_has_a_short_label(argv: list[str]) -> None:
    assert 0 < len(default_label(argv)) <= LETTERS
