"""The HAR file: what the specification wants of it, and what the capture holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy import read, transcribe
from mcpspy.views.har import har

CAPTURES = Path(__file__).parents[2] / "captures"
HTTP = ("sse", "streamable", "resumed", "stateless", "oauth")


def written(name: str) -> dict[str, Any]:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"), keeps_frames=True)
    made: dict[str, Any] = json.loads("\n".join(har(transcript, transcript.sources[0].transactions.values(), version="1")))[
        "log"
    ]
    return made


@pytest.mark.parametrize("name", HTTP)
def test_each_entry_has_what_the_specification_wants(name: str) -> None:
    log = written(name)
    assert (log["version"], log["creator"]["name"]) == ("1.2", "mcpspy")
    for one in log["entries"]:
        assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= set(one)
        wanted = {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"}
        assert wanted <= set(one["request"])
        wanted = {
            "status",
            "statusText",
            "httpVersion",
            "cookies",
            "headers",
            "content",
            "redirectURL",
            "headersSize",
            "bodySize",
        }
        assert wanted <= set(one["response"])
        assert {"size", "mimeType"} <= set(one["response"]["content"])
        assert one["time"] == pytest.approx(sum(one["timings"].values()))
        assert min(one["timings"].values()) >= 0


def test_there_is_an_entry_for_each_transaction_in_order() -> None:
    asked = [(one["request"]["method"], one["response"]["status"]) for one in written("sse")["entries"]]
    assert asked == [("GET", 200), ("POST", 202), ("POST", 202), ("POST", 202), ("POST", 202)]


def test_events_of_a_stream_stand_where_browsers_put_them() -> None:
    stream = written("sse")["entries"][0]
    events = stream["_eventSourceMessages"]
    assert [one["eventName"] for one in events] == ["endpoint", "message", "message", "message"]
    assert json.loads(events[1]["data"])["id"] == 1
    assert [one["time"] for one in events] == sorted(one["time"] for one in events)


def test_bodies_are_whole() -> None:
    call = written("stateless")["entries"][3]
    assert json.loads(call["request"]["postData"]["text"])["method"] == "tools/call"
    assert "result" in json.loads(call["response"]["content"]["text"])
