"""The HAR file: it follows the specification, and holds what the capture holds."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpspy import read, transcribe
from mcpspy.views.har import har
from tests.conftest import FlowReader
from tests.transcript.traffic import Traffic
from tests.views.http_scenes import http_scene

CAPTURES = Path(__file__).parents[2] / "captures"
HTTP = ("sse", "streamable", "resumed", "stateless", "oauth", "agent-model", "tags-model")


def written(name: str) -> dict[str, Any]:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"), keep_frames=True)
    text = "\n".join(har(transcript, transcript.captures[0].transactions.values(), version="1"))
    return valid(json.loads(text))


def valid(made: dict[str, Any]) -> dict[str, Any]:
    """Return the log of a file that follows the specification."""
    schema = json.loads(Path(__file__).with_name("har.schema.json").read_text())
    jsonschema.validate(made, schema)
    log: dict[str, Any] = made["log"]
    return log


def test_mitmproxy_imports_what_was_written(tmp_path: Path, read_flows: FlowReader) -> None:
    paths = [CAPTURES / f"{name}.mcpspy" for name in HTTP]
    transcripts = [
        *(transcribe(read(path), keep_frames=True) for path in paths),
        transcribe(http_scene().records, keep_frames=True),
    ]
    transactions = [[*transcript.captures[0].transactions.values()] for transcript in transcripts]
    texts = ["\n".join(har(transcript, some, version="1")) for transcript, some in zip(transcripts, transactions, strict=True)]
    path = tmp_path / "all.har"
    entries = [entry for text in texts for entry in json.loads(text)["log"]["entries"]]
    path.write_text(json.dumps({"log": {**json.loads(texts[0])["log"], "entries": entries}}))
    flows = read_flows(path)
    assert [(flow["method"], flow["url"]) for flow in flows] == [
        (entry["request"]["method"], entry["request"]["url"]) for entry in entries
    ]
    for flow, entry in zip(flows, entries, strict=True):
        content = entry["response"]["content"]
        assert flow["said"] == entry["request"].get("postData", {}).get("text", "")
        assert flow["answered"] == [entry["response"]["status"], content.get("text", "")]


@pytest.mark.parametrize("name", HTTP)
def test_every_capture_follows_the_specification(name: str) -> None:
    log = written(name)
    assert log["creator"]["name"] == "mcpspy"
    for entry in log["entries"]:
        assert entry["time"] == pytest.approx(sum(entry["timings"].values()))


@pytest.mark.grid(8)
@pytest.mark.parametrize("cut_bytes", [300, 2_000, 6_000, 12_000])
@pytest.mark.parametrize("name", HTTP)
def test_a_capture_that_is_cut_off_follows_the_specification(name: str, cut_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "torn.mcpspy"
    data = (CAPTURES / f"{name}.mcpspy").read_bytes()
    path.write_bytes(data[: len(data) - cut_bytes])
    transcript = transcribe(read(path), keep_frames=True)
    transactions = [transaction for source in transcript.captures for transaction in source.transactions.values()]
    valid(json.loads("\n".join(har(transcript, transactions, version="1"))))


def test_a_body_is_counted_in_bytes() -> None:
    for entry in written("streamable")["entries"]:
        content = entry["response"]["content"]
        assert content["size"] == len(content["text"].encode())


def test_there_is_an_entry_for_each_transaction_in_order() -> None:
    requests = [(entry["request"]["method"], entry["response"]["status"]) for entry in written("sse")["entries"]]
    assert requests == [("GET", 200), ("POST", 202), ("POST", 202), ("POST", 202), ("POST", 202)]


def test_events_of_a_stream_are_where_browsers_put_them() -> None:
    stream = written("sse")["entries"][0]
    events = stream["_eventSourceMessages"]
    assert [event["eventName"] for event in events] == ["endpoint", "message", "message", "message"]
    assert json.loads(events[1]["data"])["id"] == 1
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_bodies_are_complete() -> None:
    call = written("stateless")["entries"][3]
    assert json.loads(call["request"]["postData"]["text"])["method"] == "tools/call"
    assert "result" in json.loads(call["response"]["content"]["text"])


@pytest.mark.parametrize("host", ["[", "http://[", "a]:1"])
def test_a_host_that_is_none_is_written_as_it_came(host: str) -> None:
    traffic = Traffic()
    traffic.get("/x", Host=host).answer(200, b"")
    (transaction,) = traffic.wire.captures[0].transactions.values()
    entry = valid(json.loads("\n".join(har(traffic.wire, [transaction], version="1"))))["entries"][0]
    assert (entry["request"]["url"], entry["request"]["queryString"]) == (f"http://{host}/x", [])
