"""`mcpspy otlp` against Arize Phoenix, a collector that nobody here wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import run
from tests.conftest import ROOT, BuiltProgram, DebianProgram
from tests.deadlines import SCENE_S
from tests.sharing.hiding import lines as written
from tests.telemetry.receiver import attributes, receiving
from tests.transcript.dialogue import request, result
from tests.views.scenes import call, failed, opened, refused

SCENE = Path(__file__).parent / "phoenix_scene.py"
AGENT = ",".join(str(ROOT / "captures" / f"agent-{name}.mcpspy") for name in ("model", "weather"))
EVERYTHING = str(ROOT / "captures" / "everything.mcpspy")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.timeout(4 * SCENE_S)
def test_sent_twice_each_span_is_there_once_and_has_its_parent(
    built: BuiltProgram, debian_program: DebianProgram, tmp_path: Path
) -> None:
    phoenix, unshare, ip = built("phoenix/bin/phoenix"), debian_program("unshare"), debian_program("ip")
    namespace = [unshare, "--net", "--map-root-user"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network namespace")
    traced, last = tmp_path / "traced.mcpspy", tmp_path / "last.mcpspy"
    meta = {"traceparent": PARENT}
    scene = opened("weather").client(request(1, "tools/call", {"name": "add", "_meta": meta})).server(result(1))
    scene.client(call(2, "add")).server(failed(2, "no")).client(request(3, "x")).server(refused(3, -32601, "no such method"))
    traced.write_bytes(written(scene.closes().records))
    last.write_bytes(written(opened("last").client(request(1, "last")).server(result(1)).closes().records))
    captures = [AGENT, EVERYTHING, str(traced)]
    script = f'"{ip}" link set lo up && exec "$@"'
    words = [*namespace, "sh", "-c", script, "sh", sys.executable, str(SCENE), phoenix, str(tmp_path), *captures, str(last)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=3 * SCENE_S,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr + (tmp_path / "log").read_text()[-3_000:]
    found = json.loads(done.stdout)["spans"]
    got = {span["context"]["span_id"]: span for span in found}
    assert len(got) == len(found)
    wanted = spans_of(captures)
    assert {key for key, span in got.items() if span["name"] != "last"} == set(wanted)
    for key, span in wanted.items():
        assert got[key]["name"] == span.name
        assert got[key]["parent_id"] == (span.parent_span_id.hex() or None)
        assert got[key]["context"]["trace_id"] == span.trace_id.hex()
        assert got[key]["status_code"] == {0: "UNSET", 2: "ERROR"}[span.status.code]
        assert got[key]["status_message"] == span.status.message
        assert len(got[key]["events"]) == len(span.events)
        assert attributes(span).items() <= flat(got[key]["attributes"]).items()
    assert sorted(span.status.message for span in wanted.values() if span.status.code == 2) == ["no", "no such method"]
    assert {span.parent_span_id.hex() for span in wanted.values()} >= {"", PARENT.split("-")[2]}


def spans_of(captures: list[str]) -> dict[str, Any]:
    """Return the spans that a receiver of ours gets, by their ids."""
    with receiving() as receiver:
        for words in captures:
            assert run("otlp", *words.split(","), "--endpoint", receiver.url).returncode == 0
    return {span.span_id.hex(): span for span in receiver.spans}


def flat(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as they were sent: Phoenix may nest them by the points in their names."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, dict):
            found |= {f"{name}.{rest}": inner for rest, inner in flat(value).items()}
        else:
            found[name] = value
    return found
