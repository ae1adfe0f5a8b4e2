"""A decision follows from the intercepts, the messages so far and the seed alone, and changes no byte that it does not name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import CLIENT, SERVER
from tests.intercept.making import call, intercepts, line, result

SECOND_NS = 1_000_000_000


def test_a_request_is_delayed_and_its_answer_is_not() -> None:
    force = intercepts("tool:search => delay 3s")
    assert force.decide(CLIENT, call(), 5).delay_ns == 3 * SECOND_NS
    assert force.decide(SERVER, result(), 6).records == []


def test_a_record_names_the_intercept_what_it_did_and_the_seed() -> None:
    (record,) = intercepts("tool:search => delay 3s", seed=42).decide(CLIENT, call(), 5).records
    facts = (record.text, record.action, record.sent, record.until_ns, record.seed)
    assert facts == ("tool:search => delay 3s", "delay 3 s", "unchanged", 3 * SECOND_NS + 5, 42)


def test_a_message_that_does_not_match_passes() -> None:
    decision = intercepts("tool:other => drop").decide(CLIENT, call(), 0)
    assert (decision.payload, decision.records) == (call(), [])


@pytest.mark.parametrize("id", [1, "one", 10**30])
def test_an_error_answers_with_the_id_of_the_request(id: int | str) -> None:
    decision = intercepts('tool:search => error -32000 "try later"').decide(CLIENT, call(id), 0)
    assert decision.payload is None
    assert json.loads(decision.reply or b"") == {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "try later"}}


def test_a_result_in_a_file_becomes_the_answer() -> None:
    decision = intercepts("tool:search => respond answer.json").decide(CLIENT, call(4), 0)
    assert json.loads(decision.reply or b"")["result"]["content"][0]["text"] == "made up"
    assert json.loads(decision.reply or b"")["id"] == 4


def test_an_error_replaces_an_answer_where_answers_are_meant() -> None:
    force = intercepts("kind:result tool:search => error -32000")
    force.decide(CLIENT, call(4), 0)
    decision = force.decide(SERVER, result(4), 1)
    assert (decision.reply, json.loads(decision.payload or b"")["id"], decision.records[0].sent) == (None, 4, "changed")


def test_a_notification_is_not_answered() -> None:
    assert intercepts("method:* => error -32000").decide(CLIENT, line({"method": "notifications/initialized"}), 0).records == []


def test_progress_of_a_call_is_left_alone_unless_a_kind_is_named() -> None:
    request = line({"id": 1, "method": "tools/call", "params": {"name": "search", "_meta": {"progressToken": 9}}})
    progress = line({"method": "notifications/progress", "params": {"progressToken": 9, "progress": 1}})
    for text, acts in [("method:* => drop", False), ("kind:progress tool:search => drop", True)]:
        force = intercepts(text)
        force.decide(CLIENT, request, 0)
        assert bool(force.decide(SERVER, progress, 1).records) is acts


def test_a_message_is_sent_twice() -> None:
    decision = intercepts("tool:search => duplicate").decide(CLIENT, call(1), 0)
    assert (decision.doubled_by > 0, decision.payload, decision.records[0].sent) == (True, call(1), "unchanged")


def test_of_several_answers_to_a_message_that_was_sent_twice_the_second_is_kept() -> None:
    partial = line({"id": 1, "result": {"resultType": "partial"}})
    error = line({"id": 1, "error": {"code": 1, "message": "again"}})
    force = intercepts("tool:search => duplicate max=1")
    force.decide(CLIENT, call(1), 0)
    force.decide(CLIENT, call(2), 0)
    answers = [partial, result(2), result(1), partial, error, result(2), result(1)]
    passed = [force.decide(SERVER, payload, 1).payload is not None for payload in answers]
    assert passed == [True, True, True, True, False, True, True]


def test_an_id_that_is_used_again_is_answered_again() -> None:
    force = intercepts("tool:search => duplicate max=1")
    for _ in range(2):
        force.decide(CLIENT, call(1), 0)
        assert force.decide(SERVER, result(1), 1).payload == result(1)


def test_a_slow_answer_is_found_by_its_duration() -> None:
    force = intercepts("dur>1s => drop")
    force.decide(CLIENT, call(1), 0)
    force.decide(CLIENT, call(2), 0)
    assert force.decide(SERVER, result(1), SECOND_NS // 2).payload == result(1)
    assert force.decide(SERVER, result(2), 2 * SECOND_NS).payload is None


@pytest.mark.parametrize(
    ("limit", "acting"),
    [
        ("nth=3", [3]),
        ("max=2", [1, 2]),
        ("after=3s", [4, 5, 6]),
        ("p=0", []),
        ("p=1", [1, 2, 3, 4, 5, 6]),
        ("nth=2 max=1", [2]),
    ],
)
def test_a_limit_chooses_among_the_matches(limit: str, acting: list[int]) -> None:
    force = intercepts(f"tool:search => drop {limit}")
    decisions = [force.decide(CLIENT, call(number), (number - 1) * SECOND_NS) for number in range(1, 7)]
    assert [number for number, decision in enumerate(decisions, 1) if decision.payload is None] == acting


def test_the_same_seed_and_the_same_traffic_make_the_same_decisions() -> None:
    def decided(seed: int) -> list[tuple[bool, int]]:
        force = intercepts("tool:search => delay 1s..3s p=0.5", "tool:search => drop p=0.2", seed=seed)
        decisions = [force.decide(CLIENT, call(number), number) for number in range(50)]
        return [(decision.payload is None, decision.delay_ns) for decision in decisions]

    assert decided(1) == decided(1) != decided(2)


def test_several_intercepts_act_in_their_order_until_one_withholds_the_message() -> None:
    force = intercepts("tool:* => delay 1s", "tool:* => set params.arguments.q=1", "tool:* => drop", "tool:* => delay 1s")
    assert [record.action for record in force.decide(CLIENT, call(), 0).records] == [
        "delay 1 s",
        "set params.arguments.q",
        "drop",
    ]


@pytest.mark.parametrize("payload", [b"[" + call().strip() + b"]\n", b"no json\n", b"\n", b"{}\n", b'{"jsonrpc":\n', b"\xff\n"])
def test_what_is_no_single_message_passes(payload: bytes) -> None:
    assert intercepts("method:* => drop", "kind:malformed => drop").decide(CLIENT, payload, 0).payload == payload


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "q", "é", 'x"y']), VALUES, max_size=4)
SPELLINGS = st.tuples(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]), st.booleans())
"""Separators, and whether letters beyond ASCII are escaped."""


def spelled(arguments: dict[str, Any], spelling: tuple[tuple[str, str], bool]) -> bytes:
    separators, is_ascii = spelling
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": arguments}, "z": 1}
    return json.dumps(message, separators=separators, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass") + b" \r\n"


PLACE = 123454321


@given(ARGUMENTS, SPELLINGS, VALUES)
def test_a_set_value_changes_no_other_byte(
    arguments: dict[str, Any], spelling: tuple[tuple[str, str], bool], value: object
) -> None:
    before = spelled({**arguments, "q": PLACE}, spelling)
    text = json.dumps(value)
    after = intercepts(f"tool:search => set params.arguments.q={text}").decide(CLIENT, before, 0).payload
    assert after == before.replace(str(PLACE).encode(), text.encode())


@given(ARGUMENTS, SPELLINGS)
def test_an_added_value_changes_no_other_byte(arguments: dict[str, Any], spelling: tuple[tuple[str, str], bool]) -> None:
    before = spelled({name: value for name, value in arguments.items() if name != "q"}, spelling)
    after = intercepts(f"tool:search => set params.arguments.q={PLACE}").decide(CLIENT, before, 0).payload or b""
    member = b'"q":%d' % PLACE
    assert after.replace(b"," + member, b"").replace(member, b"") == before


@given(ARGUMENTS, SPELLINGS)
def test_a_removed_value_leaves_the_other_values_as_they_were_spelled(
    arguments: dict[str, Any], spelling: tuple[tuple[str, str], bool]
) -> None:
    before = spelled(arguments, spelling)
    after = intercepts("tool:search => remove params.arguments.q").decide(CLIENT, before, 0).payload or b""
    rest = {name: value for name, value in arguments.items() if name != "q"}
    assert after == spelled(rest, spelling)
