"""The HTTP scenes: which client says what to which server. `python` ones need PyPI alone, `npm` ones the programs of tests/npm."""

from captures.make import TOOLS, call
from captures.serving import LOOPBACK_ONLY
from tests.interop.scenes import INSPECTOR, PYSERVER, steps
from tests.interop.serving import HttpScene
from tests.tiers import current_tier

LETTERS = 300_000
"""More than a socket takes at once, and less than the most that the SDK takes in one event."""

CANCELLED = "SLOW CANCELLED"

SCENE = (
    TOOLS,
    call("add", a=1, b=2),
    {**call("slow", n=2), "progress": True},
    call("greet"),
    {"read": "lab://café/x"},
    {"together": [call("add", a=number, b=number) for number in range(20)]},
    call("add", a="one"),
    {"call": "add", "arguments": {"b": 1}, "large": {"a": LETTERS}},
)

GIVEN_UP = ({**call("slow", n=20), "timeout_s": 0.8}, call("add", a=3, b=4))
"""A call that the client cancels, which the server notices and says. Where it answers all the same, after the client has gone, the
SDK's client may fail over that, with mcpspy or without: such servers are spared it.
"""


def official(kind: str, mode: str, *options: str, logged: str = CANCELLED) -> HttpScene:
    """Make a scene with the official Python SDK on both sides."""
    return HttpScene(
        client=(*steps(mode, *SCENE, *(GIVEN_UP if logged else ())), "URL"),
        server=(*PYSERVER[:-1], kind, "0", *options),
        path="/sse" if kind == "sse" else "/mcp",
        opening="server/discover" if mode == "auto" else "initialize",
        logged=logged,
    )


PYTHON = {
    "Streamable HTTP, modern": official("http", "auto"),
    "Streamable HTTP, legacy": official("http", "legacy"),
    "HTTP+SSE, modern": official("sse", "auto"),
    "HTTP+SSE, legacy": official("sse", "legacy"),
    "stateless, modern": official("http", "auto", "stateless_http"),
    "stateless, legacy": official("http", "legacy", "stateless_http", logged=""),
    "JSON responses, modern": official("http", "auto", "json_response", logged=""),
    "JSON responses, legacy": official("http", "legacy", "json_response", logged=""),
    "stateless, JSON responses, legacy": official("http", "legacy", "stateless_http", "json_response", logged=""),
}
"""Without a session, and with JSON for every response, a legacy server cannot ask: there `greet` fails, the same way each time."""

ALL = tuple(PYTHON)
PLAYED = current_tier()(
    sample=(
        "Streamable HTTP, legacy",
        "HTTP+SSE, legacy",
        "JSON responses, modern",
    ),
    more=ALL,
    full=ALL,
)
"""The scenes of this tier: in the sample each era, transport and kind of response once."""
REDACTED = current_tier()(sample=("Streamable HTTP, legacy", "HTTP+SSE, legacy"), more=ALL, full=ALL)
"""Those that are played with redaction too; the sample has a session's id in a header field, and in a URL."""

EVERYTHING = (
    TOOLS,
    {"list": "prompts"},
    {"list": "resources"},
    {"read": "demo://resource/static/document/structure.md"},
    call("echo", message="zwölf\u2028\u0085 \N{PILE OF POO} \\ \x00"),
    {**call("trigger-long-running-operation", duration=0.4, steps=4), "progress": True},
    call("trigger-sampling-request", prompt="What is a tap?"),
    call("trigger-elicitation-request"),
    call("get-roots-list"),
    {"together": [call("echo", message=str(number)) for number in range(20)]},
    {"call": "echo", "large": {"message": LETTERS}},
    call("no-such-tool"),
)

TOOL_CALL = ("--method", "tools/call", "--tool-name")


def everything(kind: str, path: str, client: tuple[str, ...], opening: str = "initialize") -> HttpScene:
    """Make a scene with server-everything of npm, over one of its transports."""
    server = ("mcp-server-everything", kind)
    return HttpScene(client=client, server=server, path=path, opening=opening, variables=LOOPBACK_ONLY)


def inspector(transport: str, tool: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of npm's inspector, which calls one tool."""
    return (*INSPECTOR, "URL", "--transport", transport, *TOOL_CALL, tool, "--tool-arg", *arguments)


NPM = {
    "server-everything, Streamable HTTP": everything("streamableHttp", "/mcp", (*steps("legacy", *EVERYTHING), "URL")),
    "server-everything, Streamable HTTP, after a probe": everything(
        "streamableHttp", "/mcp", (*steps("auto", *EVERYTHING), "URL"), "server/discover"
    ),
    "server-everything, HTTP+SSE": everything("sse", "/sse", (*steps("legacy", *EVERYTHING), "URL")),
    "inspector and server-everything, Streamable HTTP": everything(
        "streamableHttp", "/mcp", inspector("http", "echo", f"message={'large ' * 20_000}")
    ),
    "inspector and server-everything, HTTP+SSE": everything(
        "sse", "/sse", inspector("sse", "echo", f"message={'large ' * 20_000}")
    ),
    "inspector and the official server, Streamable HTTP": HttpScene(
        client=inspector("http", "add", "a=1", "b=2"), server=(*PYSERVER[:-1], "http", "0"), path="/mcp"
    ),
    "inspector and the official server, HTTP+SSE": HttpScene(
        client=inspector("sse", "add", "a=1", "b=2"), server=(*PYSERVER[:-1], "sse", "0"), path="/sse"
    ),
}
