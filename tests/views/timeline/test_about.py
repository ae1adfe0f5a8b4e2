"""The content of messages in words: in rows, above payloads and in JSON, from a capture of a real server."""

import json
from base64 import b64encode
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpspy
from mcpspy.transcript.mcp.content import content_facts, result_facts
from mcpspy.transcript.mcp.methods import METHODS
from mcpspy.transcript.model import Exchange, Kind, Transcript, UnpairedMessage
from mcpspy.views.json.rows import row_object
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.text.pretty import pretty
from mcpspy.views.timeline.about import about_lines, about_words
from mcpspy.views.timeline.exchange import row_lines
from mcpspy.views.timeline.phrases import notification_phrase, outcome_phrase
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import Dialogue, error, notification, request, result
from tests.transcript.traffic import Traffic
from tests.views.golden import same_as_golden

ROOT = Path(__file__).parents[3]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (64).to_bytes(4, "big") + (48).to_bytes(4, "big") + bytes(300)


def recorded(name: str) -> Transcript:
    return mcpspy.transcribe(mcpspy.read(ROOT / name))


@pytest.fixture(scope="module")
def contents() -> Transcript:
    """Read the capture of all features of server-everything."""
    return recorded("tests/views/contents.mcpspy")


def detail(transcript: Transcript, method: str, target: str | None = None) -> str:
    """Return the detail of the first row with this method."""
    exchanges = [
        exchange for exchange in transcript.exchanges if exchange.method == method and target in (None, exchange.target)
    ]
    return outcome_phrase(exchanges[0]).detail


def lines_above(transcript: Transcript, method: str, target: str | None = None, *, answer: bool = True) -> list[str]:
    """Return the lines above the payload of the first such request, or of its answer."""
    exchange = next(
        exchange for exchange in transcript.exchanges if exchange.method == method and target in (None, exchange.target)
    )
    message = exchange.response if answer else exchange.request
    assert message is not None
    return about_lines(content_facts(message, method))


@pytest.mark.parametrize(
    ("method", "target", "words"),
    [
        ("initialize", None, "mcp-servers/everything 2.0.0"),
        ("prompts/list", None, "4 prompts"),
        ("prompts/get", "args-prompt", "1 message: user"),
        ("prompts/get", "resource-prompt", "2 messages: user"),
        ("resources/list", None, "7 resources"),
        ("resources/templates/list", None, "2 templates"),
        ("resources/read", "demo://resource/dynamic/text/1", "text/plain 62 B"),
        ("resources/read", "demo://resource/dynamic/blob/2", "text/plain 55 B"),
        ("tools/call", "get-tiny-image", "image/png 4.0 kB"),
        ("tools/call", "get-resource-reference", "resource demo://resource/dynamic/blob/1 text/plain 55 B"),
        ("tools/call", "get-structured-content", ""),
        ("completion/complete", None, "“E” → 1 value"),
        ("sampling/createMessage", None, "by no-model"),
        ("elicitation/create", None, "“Please provide inputs for the following fields:” → decline"),
        ("roots/list", None, "1 root"),
        ("tasks/list", None, "1 task"),
    ],
)
def test_a_row_shows_its_result(contents: Transcript, method: str, target: str | None, words: str) -> None:
    assert detail(contents, method, target) == words


def test_a_row_of_a_task_shows_its_state_and_its_poll_interval(contents: Transcript) -> None:
    words = detail(contents, "tools/call", "simulate-research-query")
    assert words.startswith("task ")
    assert words.endswith(" working, Gathering sources..., poll every 1.00 s")


@pytest.mark.parametrize(
    ("method", "target", "line"),
    [
        ("prompts/list", None, "  args-prompt(city*, state)"),
        ("prompts/get", "args-prompt", "  user: “What's weather in Zürich, ZH?”"),
        ("resources/read", "demo://resource/dynamic/text/1", "demo://resource/dynamic/text/1 text/plain 62 B"),
        ("resources/templates/list", None, "  demo://resource/dynamic/text/{resourceId} text/plain (Dynamic Text Resource)"),
        ("roots/list", None, "  file:///tmp/files (files)"),
    ],
)
def test_the_lines_above_a_payload_describe_it(contents: Transcript, method: str, target: str | None, line: str) -> None:
    assert line in lines_above(contents, method, target)


def test_bytes_are_described_by_type_size_and_digest(contents: Transcript) -> None:
    (line,) = lines_above(contents, "resources/read", "demo://resource/dynamic/blob/2")
    assert line.startswith("demo://resource/dynamic/blob/2 text/plain 55 B, sha256 ")


def test_an_image_is_described_by_its_pixels(contents: Transcript) -> None:
    assert any(line.startswith("  image/png 4.0 kB, sha256 ") for line in lines_above(contents, "tools/call", "get-tiny-image"))


def test_both_sides_of_a_handshake_are_described(contents: Transcript) -> None:
    (line,) = lines_above(contents, "initialize", answer=False)
    (answered,) = lines_above(contents, "initialize")
    assert (
        line
        == "revision 2025-11-25 · client contents 1.0 · capabilities: roots (listChanged), sampling, elicitation (form, url)"
    )
    assert answered.startswith(
        "revision 2025-11-25 · server mcp-servers/everything 2.0.0 · capabilities: tools (listChanged), prompts"
    )


def test_a_tool_is_described_by_its_signature() -> None:
    lines = lines_above(recorded("captures/everything.mcpspy"), "tools/list")
    assert lines[0] == "17 tools"
    assert any(line.startswith("  get-sum(a*: number, b*: number) · read-only, not destructive") for line in lines)
    assert any("→ {temperature*: number, conditions*: string, humidity*: number}" in line for line in lines)


def test_a_form_is_described_by_its_fields_and_its_answer_by_the_users_action(contents: Transcript) -> None:
    (line,) = lines_above(contents, "elicitation/create", answer=False)
    assert line.startswith(
        "form elicitation · “Please provide inputs for the following fields:” · fields name*: string, check: boolean"
    )
    assert lines_above(contents, "elicitation/create") == ["the user's answer: decline"]


def test_sampling_is_described_by_its_limits_and_its_messages(contents: Transcript) -> None:
    lines = lines_above(contents, "sampling/createMessage", answer=False)
    assert lines[0] == "system prompt of 30 characters · at most 20 tokens · temperature 0.7"
    assert lines[2].startswith("  user: “Resource trigger-sampling-request context: Hello")


def test_a_notification_about_a_task_shows_its_state(contents: Transcript) -> None:
    news = [
        row.message
        for row in contents.rows
        if isinstance(row, UnpairedMessage) and row.message.method == "notifications/tasks/status"
    ]
    assert "working" in notification_phrase(news[:1]).detail


def test_a_modern_request_shows_its_revision_and_client() -> None:
    transcript = recorded("captures/question.mcpspy")
    assert detail(transcript, "server/discover") == "2026-07-28 · labserver"
    assert detail(transcript, "tools/call", "greet") == "wants elicitation/create"
    (line,) = lines_above(transcript, "tools/list", answer=False)
    assert line.startswith("revision 2026-07-28 · client stepclient 1.0 · capabilities: ")


def test_a_request_for_input_shows_its_requests_and_the_retry_their_answers() -> None:
    transcript = recorded("captures/question.mcpspy")
    first, second = [exchange for exchange in transcript.exchanges if exchange.target == "greet"]
    assert first.response is not None
    wanted = about_lines(content_facts(first.response, "tools/call"))
    assert any("elicitation/create" in line for line in wanted)
    assert any("form elicitation" in line for line in wanted)
    assert any("accept" in line for line in about_lines(content_facts(second.request, "tools/call")))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            {"code": -32022, "data": {"supported": ["2025-11-25"]}},
            "UnsupportedProtocolVersion · the server does not speak this revision · revisions 2025-11-25",
        ),
        ({"code": -32021, "data": {"requiredCapabilities": {"sampling": {}}}}, "MissingRequiredClientCapability · "),
        ({"code": -32601}, "MethodNotFound"),
    ],
)
def test_an_error_is_described_by_its_name_and_its_data(error: dict[str, Any], line: str) -> None:
    scene = Dialogue().client(request(1)).server({"jsonrpc": "2.0", "id": 1, "error": {"message": "no", **error}})
    response = scene.exchange.response
    assert response is not None
    assert about_lines(content_facts(response, "tools/list"))[0].startswith(line)


def test_a_url_to_open_is_shown() -> None:
    facts = content_facts(
        Dialogue().server(request(1, "elicitation/create", {"mode": "url", "message": "Log in", "url": "https://a.example/x"}))
        .exchange.request, "elicitation/create")  # fmt: skip
    assert about_words(facts) == "url · “Log in” · https://a.example/x"


def test_a_subscription_shows_what_it_listens_to() -> None:
    notifications = {
        "notifications": {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a://b"]}
    }
    facts = content_facts(
        Dialogue().client(request(1, "subscriptions/listen", notifications)).exchange.request, "subscriptions/listen"
    )
    assert about_lines(facts) == ["listens to toolsListChanged", "1 resource", "  a://b"]


def test_progress_and_logs_keep_their_words() -> None:
    scene = Dialogue().server(notification("notifications/progress", {"progressToken": 1, "progress": 3, "total": 10}))
    scene.server(notification("notifications/message", {"level": "warning", "logger": "db", "data": "slow"}))
    assert [notification_phrase([message]).detail for message in scene.unpaired_messages] == ["3/10", "warning db: slow"]


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"", "probe: 405 Method Not Allowed"), (error(1), "probe: -32601 no (HTTP 405)")],
    ids=["status", "message"],
)
def test_a_probe_over_http_shows_once_how_it_was_rejected(body: Any, words: str) -> None:
    traffic = Traffic()
    traffic.post(request(1, "server/discover")).answer(405, body)
    assert [line for line in map(plain, timeline(traffic.transcript)) if line.endswith(words)]


# --- Scripts ---


def test_the_json_has_the_facts_of_a_message(contents: Transcript) -> None:
    exchange = next(exchange for exchange in contents.exchanges if exchange.target == "get-tiny-image")
    made = row_object(exchange, contents.captures, whole=True)
    (image,) = [item for item in made["response"]["about"]["content"] if item["type"] == "image"]
    assert (image["mime_type"], len(image["sha256"])) == ("image/png", 64)
    assert made["revision"] == made["request"]["revision"] == "2025-11-25"


def test_facts_are_left_out_unless_rows_are_selected(contents: Transcript) -> None:
    assert "about" not in json.dumps([row_object(exchange, contents.captures) for exchange in contents.exchanges])


# --- Screens ---


@pytest.mark.parametrize("width", [80, 200])
def test_a_capture_of_everything_looks_as_it_did(contents: Transcript, width: int) -> None:
    assert same_as_golden(f"contents-{width}", timeline(contents, width=width, zone=UTC))


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("target", ["get-tiny-image", "args-prompt"])
def test_an_image_and_a_prompt_look_as_they_did(contents: Transcript, target: str, width: int) -> None:
    exchange = next(exchange for exchange in contents.exchanges if exchange.target == target)
    assert same_as_golden(f"content-{target}-{width}", row_lines(contents, exchange, width=width, stderr=False))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_of_the_capture_is_wider_than_the_screen(contents: Transcript, width: int) -> None:
    rows = [row for row in contents.rows if isinstance(row, Exchange | UnpairedMessage)]
    assert all(line_cells(line) <= width for row in rows for line in row_lines(contents, row, width=width, stderr=False))


def test_base64_is_summarized_on_a_screen_and_kept_on_a_pipe() -> None:
    data = b64encode(bytes(range(256)) * 2).decode()
    raw = json.dumps({"data": data, "icon": f"data:image/png;base64,{data}"}).encode()
    on_screen = "\n".join(plain(line) for line in pretty(raw, width=80))
    assert data[:80] not in on_screen
    assert "<512 B in Base64, sha256 " in on_screen
    assert "<data:image/png;base64,512 B in Base64, sha256 " in on_screen
    assert json.loads("".join(plain(line) for line in pretty(raw)))["data"] == data


@pytest.mark.parametrize("text", ["x" * 1000, "ABC" * 300, "0123456789" * 60, "Hello1 World " * 60, "aB3" * 86 + "!"])
def test_a_long_text_that_is_not_base64_is_shown(text: str) -> None:
    shown = "".join(plain(line).strip() for line in pretty(json.dumps({"text": text}).encode(), width=80))
    assert text.replace(" ", "") in shown.replace(" ", "")


def test_the_name_of_a_peer_is_made_harmless() -> None:
    evil = "\x1b[31mname\u202e\nnext"
    scene = Dialogue().client(request(1, "initialize", {"protocolVersion": evil, "clientInfo": {"name": evil}}))
    scene.server(result(1, {"serverInfo": {"name": evil, "version": evil}}))
    lines = [plain(line) for line in row_lines(scene.transcript, scene.transcript.exchanges[0], width=200)]
    assert not [line for line in lines if "\x1b" in line or "\u202e" in line or "\n" in line]


def test_a_text_of_a_megabyte_is_a_short_line() -> None:
    facts = result_facts("prompts/get", {"messages": [{"role": "user", "content": {"type": "text", "text": "a" * 1_000_000}}]})
    assert max(map(len, about_lines(facts))) < 300


# --- What peers may send ---


@pytest.mark.parametrize("deep", [
    b'{"type":"array","items":' * 400 + b"1" + b"}" * 400,
    b'{"anyOf":[' * 400 + b"1" + b"]}" * 400,
    b'{"type":"tool_result","content":[' * 400 + b"1" + b"]}" * 400,
])  # fmt: skip
def test_deeply_nested_content_is_described(deep: bytes) -> None:
    tools = b'{"tools":[{"name":"f","inputSchema":{"properties":{"a":' + deep + b'}}}],"messages":[{"content":' + deep + b"}]}"
    for method in ("tools/list", "prompts/get"):
        scene = Dialogue().client(request(1, method)).server(b'{"jsonrpc":"2.0","id":1,"result":' + tools + b"}\n")
        (exchange,) = scene.transcript.exchanges
        assert len(outcome_phrase(exchange).detail) < 100
        assert len(list(row_lines(scene.transcript, exchange, width=80))) > 400


ARGUMENTS: list[tuple[Any, Any, str]] = [
    ({"a": 1}, {"members": 1}, "an object of 1 member"),
    ({"a": 1, "b": 2}, {"members": 2}, "an object of 2 members"),
    ({}, {"members": 0}, "an object of 0 members"),
    ({"items": 3}, {"members": 1}, "an object of 1 member"),
    (dict.fromkeys(map(str, range(1200))), {"members": 1200}, "an object of 1,200 members"),
    ({"a": {"b": {"c": [1, 2]}}}, {"members": 1}, "an object of 1 member"),
    (["x"], {"items": 1}, "an array of 1 item"),
    ([1, 2, 3], {"items": 3}, "an array of 3 items"),
    ([], {"items": 0}, "an array of 0 items"),
    ([[]], {"items": 1}, "an array of 1 item"),
    ("1 members", "1 members", "“1 members”"),
    ("1 member", "1 member", "“1 member”"),
    ("an object of 1 member", "an object of 1 member", "“an object of 1 member”"),
    ("", "", "“”"),
    ("Bern", "Bern", "“Bern”"),
    (None, None, "null"),
    (False, False, "false"),
    (0, 0, "0"),
    (1, 1, "1"),
    (1.5, 1.5, "1.5"),
]


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize(("value", "fact", "words"), ARGUMENTS)
def test_an_argument_is_shown_as_its_value_or_as_its_type_and_size(method: str, value: Any, fact: Any, words: str) -> None:
    scene = Dialogue().client(request(1, method, {"name": "p", "arguments": {"town": value}})).server(result(1))
    (exchange,) = scene.transcript.exchanges
    facts = content_facts(exchange.request, method)
    assert facts["arguments"] == {"town": fact}
    assert about_lines(facts) == [f"p · with town = {words}"]


MEMBERS = [
    "content",
    "type",
    "text",
    "data",
    "uri",
    "messages",
    "role",
    "tools",
    "name",
    "inputSchema",
    "properties",
    "required",
    "arguments",
    "annotations",
    "readOnlyHint",
    "ref",
    "capabilities",
    "clientInfo",
    "_meta",
    "task",
    "taskId",
    "status",
    "items",
    "inputRequests",
    "method",
    "params",
    "requestedSchema",
    "values",
    "completion",
    "blob",
    "contents",
    "size",
    "total",
    "ttl",
    "pollInterval",
    "inputResponses",
    "notifications",
    "resourceSubscriptions",
    "taskIds",
    "modelPreferences",
    "hints",
    "maxTokens",
    "argument",
    "value",
    "supportedVersions",
    "elicitations",
    "code",
    "anyOf",
    "resource",
    "width",
    "prompts",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
]
"""The words that readers look for."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(b64encode(PNG).decode()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=20,
)

NAMES = sorted({method.name for method in METHODS} | {"acme/anything"})


@given(method=st.sampled_from(NAMES), value=JSON, kind=st.sampled_from(["params", "result", "error"]))
def test_any_payload_can_be_described(method: str, value: Any, kind: str) -> None:
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, kind: value}
    scene = Dialogue()
    if kind == "params":
        scene.client({**body, "method": method})
    else:
        scene.client(request(1, method)).server(body)
    for message in scene.transcript.messages:
        facts = content_facts(message, method)
        assert "\n" not in about_words(facts)
        assert not [line for line in about_lines(facts) if not line.isprintable() and line.isascii()]
        json.dumps(facts)


@given(method=st.sampled_from(NAMES), value=JSON)
def test_any_exchange_can_be_shown(method: str, value: Any) -> None:
    scene = Dialogue().client(request(1, method, value)).server(result(1, value))
    transcript = scene.transcript
    for row in transcript.exchanges:
        assert not [line for line in row_lines(transcript, row, width=60) if "\n" in plain(line)]
        assert row.request.kind is Kind.REQUEST
