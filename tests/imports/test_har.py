"""HAR files are imported: mcpspy's own export comes back as it was, and no file makes trouble."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Transcript, transcribe
from mcpspy import read as read_capture
from mcpspy.imports.formats import recognized
from mcpspy.imports.har import HarImporter
from mcpspy.imports.source import Source
from mcpspy.records import Frame, Header, Note, Record
from mcpspy.transcript.absent_facts import unproven_rules
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.imports.logging_clients import rows_of

ASKS = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
ANSWERS = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
ENTRY = {
    "startedDateTime": "2026-01-02T03:04:05.678Z",
    "time": 12.5,
    "request": {
        "method": "POST",
        "url": "https://mcp.example.org/mcp",
        "headers": [{"name": ":authority", "value": "mcp.example.org"}, {"name": "Content-Type", "value": "application/json"}],
        "postData": {"mimeType": "application/json", "text": ASKS},
    },
    "response": {
        "status": 200,
        "statusText": "",
        "headers": [{"name": "content-type", "value": "application/json"}, {"name": "content-encoding", "value": "br"}],
        "content": {"size": 10, "mimeType": "application/json", "text": ANSWERS},
    },
    "timings": {"send": 1, "wait": 10, "receive": -1},
}


def har(*entries: object) -> bytes:
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": entries}}).encode()


def imported(data: bytes) -> list[list[Record]]:
    importer = HarImporter(Source(name="x.har", format="har", sha256="ab"))
    sessions: dict[int, list[Record]] = {}
    for number, record in [*importer.feed(data), *importer.close()]:
        record.number = len(sessions.setdefault(number, []))
        sessions[number].append(record)
    return list(sessions.values())


def transcripts(data: bytes) -> list[Transcript]:
    return [transcribe(records) for records in imported(data)]


@pytest.mark.parametrize("name", ["streamable", "sse", "stateless", "resumed", "prompts", "channels", "oauth"])
def test_what_mcpspy_exported_comes_back(name: str, tmp_path: Path) -> None:
    capture = ROOT / "captures" / f"{name}.mcpspy"
    exported = run("export", "har", str(capture)).stdout.encode()
    form = recognized(exported)
    assert form is not None
    assert form.name == "har"
    tapped = transcribe(read_capture(capture))
    expected = [row for row in rows_of(tapped) if isinstance(row[2], str)]
    (transcript,) = transcripts(exported)
    assert [row[1:] for row in rows_of(transcript) if isinstance(row[2], str)] == [row[1:] for row in expected]
    rules = {finding.rule for finding in tapped.findings} - set(unproven_rules(transcript.captures[0]))
    assert {finding.rule for finding in transcript.findings} == rules


def test_what_mcpspy_exported_names_the_server_that_it_stood_before() -> None:
    capture = ROOT / "captures" / "oauth.mcpspy"
    (transcript,) = transcripts(run("export", "har", str(capture)).stdout.encode())
    header = transcript.captures[0].header
    assert header is not None
    assert (header.tapped["url"], header.tapped["listen"]) == ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8765/mcp")


def test_a_stream_that_announces_an_endpoint_is_mcp_though_nothing_was_sent_there() -> None:
    response = ENTRY["response"] | {  # type: ignore[operator]
        "headers": [{"name": "content-type", "value": "text/event-stream"}],
        "content": {"text": "event: endpoint\ndata: /messages\n\n"},
    }
    request = {"method": "GET", "url": "https://mcp.example.org/sse", "headers": []}
    ((header, *_),) = imported(har({**ENTRY, "request": request, "response": response}))
    assert isinstance(header, Header)
    assert header.tapped["url"] == "https://mcp.example.org/sse"


def test_a_login_in_a_url_is_not_written(tmp_path: Path) -> None:
    path, made = tmp_path / "x.har", tmp_path / "made.mcpspy"
    path.write_bytes(har({**ENTRY, "request": {**ENTRY["request"], "url": "https://ada:s3cret-word@mcp.example.org/mcp"}}))  # type: ignore[dict-item]
    run("import", str(path), "-o", str(made))
    header = next(iter(read_capture(made)))
    assert isinstance(header, Header)
    assert header.label == "mcp.example.org"
    assert "s3cret-word" not in made.read_text()


def test_a_server_that_was_only_asked_for_events_is_imported_with_a_note() -> None:
    headers = [{"name": "Accept", "value": "text/event-stream"}]
    request = {"method": "GET", "url": "https://mcp.example.org/sse", "headers": headers}
    response = {"status": 200, "headers": [{"name": "content-type", "value": "text/event-stream"}], "content": {"size": 0}}
    silent = {**ENTRY, "request": request, "response": response}
    (records,) = imported(har(silent))
    assert any(isinstance(record, Note) and "does not show whether the server speaks MCP" in record.text for record in records)
    assert transcribe(records).findings == []
    other = {**ENTRY, "request": {**request, "url": "https://example.org/news"}}
    (spoken,) = imported(har(ENTRY, other))
    assert isinstance(spoken[0], Header)
    assert spoken[0].label == "mcp.example.org"


def test_an_entry_is_a_call_with_its_times() -> None:
    (transcript,) = transcripts(har(ENTRY))
    (exchange,) = transcript.exchanges
    assert (exchange.method, exchange.outcome.value, exchange.duration_ns) == ("tools/list", "ok", 11_500_000)
    header = transcript.captures[0].header
    assert isinstance(header, Header)
    assert (header.tapped["url"], header.wall_ns) == ("https://mcp.example.org/mcp", 1_767_323_045_678_000_000)


def test_events_that_a_browser_kept_apart_have_their_times() -> None:
    response = ENTRY["response"] | {"headers": [{"name": "content-type", "value": "text/event-stream"}], "content": {}}  # type: ignore[operator]
    messages = [{"time": 1767323047.0, "eventName": "message", "eventId": "", "data": ANSWERS}]
    (transcript,) = transcripts(har({**ENTRY, "response": response, "_eventSourceMessages": messages}))
    (exchange,) = transcript.exchanges
    assert exchange.duration_ns is not None
    assert 1_000_000_000 < exchange.duration_ns < 2_000_000_000


@pytest.mark.parametrize("compression", [0, 100])
def test_events_that_mitmproxy_decoded_as_latin_1_are_utf_8(compression: int) -> None:
    event = ("data: " + ANSWERS.replace("[]", '[{"name":"café"}]') + "\n\n").encode()
    content = {"size": len(event) - compression, "compression": compression, "text": event.decode("latin-1")}
    response = ENTRY["response"] | {"headers": [{"name": "content-type", "value": "text/event-stream"}], "content": content}  # type: ignore[operator]
    (records,) = imported(har({**ENTRY, "response": response}))
    assert event in [record.data for record in records if isinstance(record, Frame)]


def test_pages_that_do_not_speak_mcp_make_no_capture() -> None:
    other = {**ENTRY, "request": {"method": "GET", "url": "https://example.org/", "headers": []}}
    assert not imported(har(other))


def _asks(url: str, text: str) -> dict[str, object]:
    """Return an entry that posts a text."""
    return {**ENTRY, "request": {**ENTRY["request"], "url": url, "postData": {"text": text}}}  # type: ignore[dict-item]


def test_calls_of_a_model_are_a_capture_of_a_model() -> None:
    prompt = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    model = _asks("http://127.0.0.1:11434/v1/chat/completions", prompt)
    mcp, leg = transcripts(har(ENTRY, model, _asks("http://a/cars", '{"model":"m","year":4}')))
    assert (len(mcp.exchanges), len(mcp.model_calls)) == (1, 0)
    assert (len(leg.exchanges), len(leg.model_calls)) == (0, 1)


def test_a_gateway_of_mcp_and_a_model_is_a_capture_of_mcp() -> None:
    prompt = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    (mcp,) = transcripts(har(_asks("https://mcp.example.org/v1/messages", prompt), ENTRY))
    assert len(mcp.exchanges) == 1


def test_what_is_not_as_har_has_it_is_counted() -> None:
    importer = HarImporter(Source(name="x.har", format="har"))
    importer.feed(har(ENTRY, {"request": {}}, 7))
    importer.close()
    assert importer.passed_over() == ["not read: 2 × an entry that is not as HAR 1.2 has it"]


def test_a_har_is_shown_in_place_of_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_bytes(har(ENTRY))
    assert "tools/list" in run("show", str(path)).stdout


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from([ASKS, "https://a/b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ENTRY, "url", "headers", "name", "value"]), inner)
    ),
    max_leaves=10,
)


@given(st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from([*ENTRY, "_eventSourceMessages"]), VALUES))
def test_any_values_are_read(entries: list[object], changes: dict[str, object]) -> None:
    transcripts(har(*entries, {**ENTRY, **changes}))


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    imported(data)
    imported(b'{"log":' + data)
