"""`mcpspy otlp` with texts and numbers that no span can have: they are sent as far as they can be, and hold nothing up."""

from pathlib import Path
from typing import Any

import pytest

from mcpspy.records import Header
from tests.cli.terminal import run
from tests.sharing.hiding import lines as written
from tests.telemetry.receiver import Receiver, attributes, receiving
from tests.transcript.dialogue import request, result
from tests.transcript.llm.traffic import ModelTraffic, completion
from tests.views.scenes import call, failed, opened, refused

HALF = "\ud800"
"""Half of a character, which JSON can spell and UTF-8 cannot."""


def sent(records: list[Any], folder: Path, *options: str) -> Receiver:
    path = folder / "odd.mcpspy"
    path.write_bytes(written(records))
    with receiving() as receiver:
        done = run("otlp", str(path), *options, "--endpoint", receiver.url)
    assert done.returncode == 0, done.stderr
    return receiver


def spans_of(records: list[Any], folder: Path, *options: str) -> list[Any]:
    return sent(records, folder, *options).spans


def test_half_a_character_becomes_a_question_mark(tmp_path: Path) -> None:
    scene = opened("weather").client(call(1, f"add{HALF}", text=HALF)).server(failed(1, f"no {HALF}"))
    scene.client(request(f"{HALF}", f"do{HALF}")).server(refused(f"{HALF}", -32000, f"never {HALF}"))
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": HALF}}
    scene.client(request(3, "resources/read", {"uri": f"x:{HALF}", **meta})).server(result(3))
    spans = spans_of(scene.closes().records, tmp_path, "--payloads")
    assert [(span.name, span.status.message) for span in spans] == [
        ("tools/call add?", "no ?"),
        ("do?", "never ?"),
        ("resources/read", ""),
    ]
    assert attributes(spans[1])["jsonrpc.request.id"] == "?"
    assert attributes(spans[2])["mcp.resource.uri"] == "x:?"


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    scene = opened("weather").client(call(1, "n" * 1_000_000)).server(failed(1, "m" * 1_000_000)).closes()
    (span,) = spans_of(scene.records, tmp_path, "--payloads")
    sizes = [len(span.name), len(span.status.message), *(len(str(value)) for value in attributes(span).values())]
    assert max(sizes) == 1 << 16
    assert span.name.endswith("n…")


def test_large_payloads_are_sent_in_several_requests(tmp_path: Path) -> None:
    scene = opened("weather")
    for id in range(40):
        scene.client(call(id, "read")).server(result(id, {"content": [{"type": "text", "text": "x" * 70_000}]}))
    receiver = sent(scene.closes().records, tmp_path, "--payloads")
    assert (len(receiver.spans), receiver.requests) == (40, 2)


@pytest.mark.parametrize("wall_ns", [-(10**30), 10**30])
def test_a_time_that_no_span_can_have_is_sent_as_the_nearest(wall_ns: int, tmp_path: Path) -> None:
    records = opened("weather").client(call(1, "add")).server(result(1)).closes().records
    assert isinstance(records[0], Header)
    records[0].wall_ns = wall_ns
    (span,) = spans_of(records, tmp_path)
    assert span.start_time_unix_nano == (0 if wall_ns < 0 else 2**63 - 1)


def test_a_count_of_tokens_that_no_span_can_have_is_sent_as_the_largest(tmp_path: Path) -> None:
    traffic = ModelTraffic()
    usage = {"prompt_tokens": 10**30, "completion_tokens": 1, "total_tokens": 1}
    traffic.ask("user: hello").answer(200, completion("hello") | {"usage": usage})
    spans = spans_of(traffic.records, tmp_path)
    assert [attributes(span).get("gen_ai.usage.input_tokens") for span in spans if span.name.startswith("chat")] == [2**63 - 1]
