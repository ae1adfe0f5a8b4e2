"""JSON for programs: every field that docs/json.md names, and payloads exactly as they were spelled."""

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli.verbs import VERBS, verb_command
from mcpspy.transcript.model import Exchange
from mcpspy.views import listing, verification
from mcpspy.views.json.rows import message_lines, state_line, transcript_json
from mcpspy.views.json.transactions import http_lines
from mcpspy.views.text.json_text import RawJson, as_json
from mcpspy.views.timeline.exchange import carrying_transactions
from mcpspy.views.timeline.timeline import rows_between
from tests.transcript.dialogue import Dialogue, request, result
from tests.transcript.traffic import Traffic
from tests.views.http_scenes import http_scene
from tests.views.scenes import busy_scene, call, failed, given_up, hostile_scene, opened, payload, refused, three_servers
from tests.views.store.test_listing import KEPT, RECORDINGS, UNUSABLE, capture
from tests.views.store.test_verification import verified

PAGE = (Path(__file__).parents[3] / "docs" / "json.md").read_text(encoding="utf-8")


def documented(scene: Dialogue | Traffic, rows: tuple[int, int] | None = None) -> Any:
    transcript = scene.transcript
    chosen = rows_between(transcript.rows, rows)
    return json.loads("".join(transcript_json(transcript, chosen, live=False, whole=rows is not None)))


def messages(scene: Dialogue | Traffic) -> list[dict[str, Any]]:
    transcript = scene.transcript
    return [json.loads(line) for line in message_lines(transcript, transcript.rows)]


def line_of(raw: bytes) -> str:
    """Return the line of a message with this payload."""
    transcript = opened("weather").client(raw).transcript
    (line,) = message_lines(transcript, transcript.rows)
    return line


def names(value: Any) -> set[str]:
    """Return every member name in a JSON value, without payloads."""
    if isinstance(value, list):
        return {name for item in value for name in names(item)}
    if not isinstance(value, dict):
        return set()
    ours = {name: item for name, item in value.items() if name not in {"params", "result", "tapped", "descendants"}}
    return set(ours) | {name for item in ours.values() for name in names(item)}


def test_the_document_is_schema_1_with_the_summary_in_numbers() -> None:
    made = documented(busy_scene())
    assert made["schema"] == 1
    (left,) = made["summary"].pop("unchecked")
    assert (left["ran"], left["reason"], left["rules"]) == (
        False,
        "only mcpspy check runs them",
        ["not-as-specified", "credential-shown"],
    )
    assert made["summary"] == {
        "calls": 8, "pending": 0, "ok": 4, "error": 1, "tool_error": 1, "cancelled": 1, "unanswered": 1, "http_error": 0,
        "redirected": 0, "probe": 0, "findings": 5, "complete": False, "live": False,
    }  # fmt: skip


def test_the_document_has_one_row_per_line() -> None:
    transcript = busy_scene().transcript
    text = "".join(transcript_json(transcript, transcript.rows, live=False))
    rows = [line for line in text.splitlines() if line.startswith('{"kind"')]
    assert len(rows) == len(transcript.rows)


def test_an_exchange_that_was_given_up_says_when() -> None:
    made = documented(opened("weather").client(call(7, "forecast")).wait(3_000).client(given_up(7, "no")).server(result(7)))
    (row,) = [row for row in made["rows"] if row["kind"] == "exchange"]
    assert (row["outcome"], row["given_up_ns"] - row["at_ns"], row["duration_ns"]) == (
        "cancelled",
        3_001_000_000,
        3_002_000_000,
    )


def test_an_exchange_has_its_outcome_and_its_error() -> None:
    made = documented(opened("weather").client(call(7, "forecast")).server(failed(7, "no such city")))
    (row,) = [row for row in made["rows"] if row["kind"] == "exchange"]
    assert row["row"] == 1
    assert row["id"] == 7
    assert (row["method"], row["target"], row["outcome"]) == ("tools/call", "forecast", "tool error")
    assert row["error"] == {"message": "no such city"}
    assert row["duration_ns"] == 1_000_000
    assert row["request"]["record"] == 5


def test_a_json_rpc_error_has_code_and_message() -> None:
    made = documented(opened("weather").client(request(1)).server(refused(1, -32601, "no")))
    assert [row["error"] for row in made["rows"] if row["kind"] == "exchange"] == [{"code": -32601, "message": "no"}]


def test_selected_rows_have_the_content_of_their_messages() -> None:
    (row,) = documented(busy_scene(), (7, 7))["rows"]
    assert row["request"]["params"]["arguments"] == {"city": "Atlantis"}
    assert row["response"]["result"]["isError"] is True


def test_rows_that_were_not_selected_have_no_payloads() -> None:
    assert "params" not in json.dumps(documented(busy_scene())["rows"])


def test_stderr_noise_and_events_are_rows_too() -> None:
    rows = documented(opened("weather").stderr(b"hi\n").server(b"caf\xe9\n").exits(1))["rows"]
    assert [row["kind"] for row in rows] == ["event", "stderr", "unpaired", "event"]
    assert rows[1]["text"] == "hi"
    assert b64decode(rows[2]["message"]["base64"]) == b"caf\xe9\n"
    assert (rows[3]["event"], rows[3]["code"]) == ("exit", 1)


def test_a_finding_points_at_its_row() -> None:
    made = documented(opened("weather").client(request(1)).server(b"noise\n").server(result(1)).closes())
    assert [(finding["rule"], finding["row"], finding["count"]) for finding in made["findings"]] == [("stdout-noise", 2, 1)]


def test_each_state_is_a_line_keyed_by_capture_and_row() -> None:
    transcript = opened("weather").client(request(1)).server(result(1)).transcript
    (row,) = transcript.exchanges
    made = json.loads(state_line(row, transcript.captures))
    assert (made["schema"], made["capture_id"], made["row"], made["outcome"]) == (1, "weather", 1, "ok")


def test_every_message_is_a_line_in_the_order_of_time() -> None:
    all_messages = messages(busy_scene())
    assert [message["at_ns"] for message in all_messages] == sorted(message["at_ns"] for message in all_messages)
    assert len(all_messages) == len(busy_scene().transcript.messages)


def test_a_message_names_its_row_its_lanes_and_its_sender() -> None:
    transcript = three_servers()
    first = json.loads(next(iter(message_lines(transcript, transcript.rows))))
    assert (first["row"], first["client"], first["server"], first["from"]) == (1, "claude-code", "weather", "client")


@pytest.mark.parametrize(
    "params",
    [
        "123456789012345678901234567890",
        "1.0",
        "1e400",
        '{"a":1,"a":2}',
        r'"\u00e9\/\ud800"',
        '"é天🎉"',
        "[1,  2]",
        '{"deep":' * 300 + "1" + "}" * 300,
    ],
)
def test_params_are_spelled_as_they_were(params: str) -> None:
    raw = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}\n'
    assert line_of(raw.encode()).endswith(f'"params":{params}}}')


@pytest.mark.parametrize("id", ["7", '"7"', "7.0", "123456789012345678901234567890", "null"])
def test_an_id_is_spelled_as_it_was(id: str) -> None:
    assert f'"id":{id},' in line_of(f'{{"jsonrpc":"2.0","id":{id},"method":"m"}}\n'.encode())


@pytest.mark.parametrize(
    ("raw", "member"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}\n', "text"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":"\xff"}\n', "base64"),
        (b"no json\n", "text"),
        (b"no json \xff\n", "base64"),
    ],
)
def test_a_payload_that_is_not_json_is_kept_as_text_or_base64(raw: bytes, member: str) -> None:
    made = json.loads(line_of(raw))
    assert (made[member].encode() if member == "text" else b64decode(made[member])) == raw


def test_a_payload_on_several_lines_is_one_line() -> None:
    raw = b'[{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":\r 1}}]\n'
    assert json.loads(line_of(raw))["params"] == {"a": 1}


@given(st.dictionaries(st.text(), st.text()))
def test_strings_have_the_same_value_after_they_were_made_harmless(params: dict[str, str]) -> None:
    raw = payload({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}) + b"\n"
    assert json.loads(line_of(raw))["params"] == params


def test_raw_json_is_embedded_as_it_is() -> None:
    assert as_json({"a": [RawJson("1e400"), "x"], "b": None}) == '{"a":[1e400,"x"],"b":null}'


def test_every_field_is_in_the_documentation() -> None:
    used = names(documented(busy_scene())) | names(documented(hostile_scene("x")))
    used |= {name for scene in (busy_scene(), hostile_scene("x")) for name in names(messages(scene))}
    used |= names([json.loads(state_line(row, three_servers().captures)) for row in three_servers().rows])
    scene = http_scene()
    used |= names(documented(scene)) | {name for message in messages(scene) for name in names(message)}
    wire = scene.wire
    used |= names([json.loads(line) for line in http_lines(wire, carrying_transactions(wire, wire.rows))])
    missing = used - set(re.findall(r"`(\w+)`", PAGE)) - {"x"}
    assert not missing


def section(verb: str) -> str:
    """Return the section about the output of `verb`; empty if there is none."""
    section = re.search(rf"^## `mcpspy {verb}`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""


def fields(verb: str) -> set[str]:
    """Return the names in the first columns of its tables."""
    return {name for row in re.findall(r"^\| (`.*?) \|", section(verb), re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


NOT_COUNTED = listing.RecordingLine(address="", client="", client_pid=None, captures=(capture(counted=False),))
LISTED = listing.listing_json("/store", [*RECORDINGS, NOT_COUNTED], UNUSABLE, KEPT)
VERIFIED = verification.verification_json([verified(), verified(repaired="new.mcpspy", marked_missing=1)])


@pytest.mark.parametrize(("verb", "printed"), [("list --json", LISTED), ("verify --json", VERIFIED)], ids=["list", "verify"])
def test_the_documentation_of_a_verb_has_the_fields_that_it_prints_and_no_others(verb: str, printed: str) -> None:
    used = names(json.loads(printed))
    assert used - set(re.findall(r"`(\w+)`", section(verb))) == set()
    assert fields(verb) - used == set()


def verbs_with_json() -> list[str]:
    commands = {verb: verb_command(verb) for verb in VERBS}
    return [verb for verb, command in commands.items() if any("--json" in option.opts for option in command.params)]


@pytest.mark.parametrize("verb", verbs_with_json())
def test_every_verb_that_prints_json_has_a_section(verb: str) -> None:
    assert section(f"{verb} --json")


def test_every_row_of_an_exchange_is_found_by_its_number() -> None:
    rows = [row.row for row in busy_scene().transcript.rows if isinstance(row, Exchange)]
    assert [row["row"] for row in documented(busy_scene())["rows"] if row["kind"] == "exchange"] == rows
