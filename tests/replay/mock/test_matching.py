"""The matcher: the recorded exchange for a live request, the order of equal ones, and the explanation of a miss."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import PathError
from mcpspy.records import SERVER, Frame, Open
from mcpspy.replay.json_values import mask_of, with_stand_ins
from mcpspy.replay.mock.match_key import Strictness
from mcpspy.replay.mock.matching import MAX_CONSIDERED, MatchCursor, MatchReason, RequestMatcher, Reuse
from mcpspy.replay.mock.miss import Miss
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.model import CaptureInfo, Exchange, Message
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, make_header, request, result

Asked = tuple[str, Any]
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "c"}}


def tool(name: str, meta: Any = None, **arguments: Any) -> Asked:
    return "tools/call", {"name": name, "arguments": arguments, **({"_meta": meta} if meta is not None else {})}


def recorded(*sequences: list[Asked]) -> list[Exchange]:
    """Return one capture for each sequence. Each answer names its sequence and its place: `1.2`."""
    dialogues = []
    for number, sequence in enumerate(sequences):
        dialogue = Dialogue(header=make_header(label=str(number), wall_ns=10**18 + number, monotonic_ns=number * 10**9))
        for at, (method, params) in enumerate(sequence):
            dialogue.client(request(at, method, params)).server(result(at, {"said": f"{number}.{at}"}))
        dialogues.append(dialogue)
    return transcribe(*(dialogue.records for dialogue in dialogues)).exchanges


def live(requests: Asked | bytes) -> Message:
    """Return a request as a live client sends it."""
    data = requests if isinstance(requests, bytes) else json.dumps(request("live", *requests)).encode() + b"\n"
    decoder = Decoder(CaptureInfo(0))
    decoder.open(Open(at_ns=0, stream=0, sender="client", name="stdin"))
    (message,) = decoder.feed(Frame(0, 0, 0, data))
    assert isinstance(message, Message)
    return message


def say(cursor: MatchCursor, *requests: Asked | bytes) -> list[str]:
    """Return the answers; `miss` where there is none."""
    return [said(cursor.match(live(request)), cursor.reason) for request in requests]


def said(reply: Exchange | Miss, how: MatchReason) -> str:
    if isinstance(reply, Miss):
        return "miss"
    assert reply.response is not None
    answer: str = reply.response.result["said"]
    return f"{answer} again" if how is MatchReason.REUSED else answer


def missed(matcher: RequestMatcher, requested: Asked, before: tuple[Asked, ...] = ()) -> Miss:
    cursor = matcher.cursor()
    say(cursor, *before)
    match = cursor.match(live(requested))
    assert isinstance(match, Miss)
    return match


READ, WRITE_A, WRITE_B = tool("read", path="x"), tool("write", text="a"), tool("write", text="b")
PING: Asked = ("ping", None)


# --- What is the same question ---


@pytest.mark.parametrize(
    "params",
    [
        b'{"arguments":{"path":"x"},"name":"read"}', b'{"name":"read","arguments":{"path":"\\u0078"}}',
        b'{"name":"read","arguments":{"path":"x"},"_meta":{"progressToken":7}}',
        b'{"name":"read","arguments":{"path":"x"},"_meta":{}}',
        b'{"name":"read","arguments":{"path":"x"},"_meta":{"claudecode/toolUseId":"toolu_1"}}',
    ],
)  # fmt: skip
def test_the_spelling_of_a_request_does_not_count(params: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}\n"
    assert say(RequestMatcher(recorded([READ])).cursor(), line) == ["0.0"]


@pytest.mark.parametrize(
    "requested",
    [tool("read", path="y"), tool("read", path="x", more=1), tool("list", path="x"), ("tools/list", None), ("x", {})],
)
def test_another_request_is_a_miss(requested: Asked) -> None:
    assert say(RequestMatcher(recorded([READ])).cursor(), requested) == ["miss"]


@pytest.mark.parametrize(
    ("strictness", "answers"),
    [
        (Strictness.STRICT, ["0.0", "miss", "miss", "miss"]),
        (Strictness.DEFAULT, ["0.0", "0.0 again", "0.1", "miss"]),
        (Strictness.LOOSE, ["0.0", "0.0 again", "0.1", "0.0"]),
    ],
)
def test_how_strict_it_is_decides_what_counts(strictness: Strictness, answers: list[str]) -> None:
    opening = ("initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c", "version": "1"}})
    matcher = RequestMatcher(recorded([tool("read", MODERN, path="x"), opening]), strictness=strictness)
    requests = (
        tool("read", {**MODERN, "progressToken": 9}, path="x"),
        tool("read", path="x"),
        ("initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c", "version": "2"}}),
        tool("read", path="other"),
    )
    assert say(matcher.cursor(), *requests) == answers


def test_rules_leave_places_out() -> None:
    matcher = RequestMatcher(recorded([tool("read", path="x", at=1)]), ignore=["$.arguments.at"])
    assert say(matcher.cursor(), tool("read", path="x", at=2), tool("read", path="y", at=1)) == ["0.0", "miss"]


def test_a_rule_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(PathError):
        RequestMatcher(recorded([READ]), ignore=["arguments"])


def test_requests_of_the_server_are_matched_for_a_replay() -> None:
    dialogue = (
        Dialogue()
        .client(request(1, "x"))
        .server(request(0, "roots/list"))
        .client(result(0, {"said": "roots"}))
        .server(result(1))
    )
    matcher = RequestMatcher(dialogue.exchanges, side=SERVER)
    assert say(matcher.cursor(), ("roots/list", None), ("x", None)) == ["roots", "miss"]


# --- Which of several ---


def test_equal_requests_get_their_answers_in_order() -> None:
    matcher = RequestMatcher(recorded([READ, PING, READ, READ]))
    assert say(matcher.cursor(), READ, READ, READ, READ, READ) == ["0.0", "0.2", "0.3", "0.3 again", "0.3 again"]


def test_a_request_that_comes_too_often_may_be_a_miss() -> None:
    matcher = RequestMatcher(recorded([READ, READ]), reuse=Reuse.ERROR)
    assert say(matcher.cursor(), READ, READ, READ) == ["0.0", "0.1", "miss"]
    miss = missed(matcher, READ, (READ, READ))
    assert miss.sentence == (
        'tools/call read with {"path": "x"} was recorded 2 times and asked for once more; the nearest is row 2 with {"path": "x"};'
        " --reuse error refuses it; --reuse last would let it match"
    )


def test_each_cursor_is_given_everything() -> None:
    matcher = RequestMatcher(recorded([READ, READ]))
    assert [say(matcher.cursor(), READ, READ) for _ in range(3)] == [["0.0", "0.1"]] * 3


def test_where_sequences_branch_a_cursor_gets_the_answers_of_its_branch() -> None:
    matcher = RequestMatcher(recorded([PING, WRITE_A, READ], [PING, WRITE_B, READ]))
    assert say(matcher.cursor(), PING, WRITE_B, READ) == ["0.0", "1.1", "1.2"]
    assert say(matcher.cursor(), PING, WRITE_A, READ) == ["0.0", "0.1", "0.2"]


def test_a_branch_is_found_again_after_a_detour() -> None:
    matcher = RequestMatcher(recorded([PING, WRITE_A, READ], [PING, WRITE_B, READ]))
    assert say(matcher.cursor(), PING, tool("new"), WRITE_B, tool("new"), READ) == ["0.0", "miss", "1.1", "miss", "1.2"]


def test_in_one_sequence_the_requests_before_decide() -> None:
    matcher = RequestMatcher(recorded([WRITE_A, READ, WRITE_B, READ]))
    assert say(matcher.cursor(), WRITE_B, READ) == ["0.2", "0.3"]


def test_requests_that_overtake_each_other_are_answered() -> None:
    matcher = RequestMatcher(recorded([PING, WRITE_A, WRITE_B, READ]))
    assert say(matcher.cursor(), PING, WRITE_B, WRITE_A, READ) == ["0.0", "0.2", "0.1", "0.3"]


def test_the_second_of_equal_clients_follows_the_second_capture() -> None:
    matcher = RequestMatcher(recorded([PING, READ], [PING, READ]))
    assert say(matcher.cursor(1), PING, READ) == ["1.0", "1.1"]
    assert say(matcher.cursor(2), PING, READ) == ["0.0", "0.1"]


QUESTIONS = st.lists(st.sampled_from([READ, WRITE_A, WRITE_B, PING]), max_size=8)


@given(st.lists(QUESTIONS, min_size=1, max_size=4))
def test_whoever_asks_as_was_recorded_gets_what_was_recorded(sequences: list[list[Asked]]) -> None:
    matcher = RequestMatcher(recorded(*sequences))
    requests = [sequence for sequence in sequences if sequence]
    for number in range(matcher.sequences):
        answers = say(matcher.cursor(number), *requests[number])
        assert [answer.split(".")[1] for answer in answers] == [str(at) for at in range(len(answers))]
        assert len({answer.split(".")[0] for answer in answers}) == 1


@given(st.lists(QUESTIONS, min_size=1, max_size=3), st.lists(st.sampled_from([READ, WRITE_A, WRITE_B, PING]), max_size=20))
def test_no_answer_is_given_twice_before_all_are(sequences: list[list[Asked]], requests: list[Asked]) -> None:
    answers = say(RequestMatcher(recorded(*sequences)).cursor(), *requests)
    fresh = [item for item in answers if item != "miss" and not item.endswith("again")]
    assert len(set(fresh)) == len(fresh)
    for question in (READ, WRITE_A, WRITE_B, PING):
        count = sum(sequence.count(question) for sequence in sequences)
        of = [answer for request, answer in zip(requests, answers, strict=True) if request == question]
        assert of.count("miss") == (len(of) if count == 0 else 0)
        assert sum(not item.endswith("again") and item != "miss" for item in of) == min(count, len(of))


# --- What is redacted ---


def test_a_pseudonym_stands_for_any_value() -> None:
    matcher = RequestMatcher(recorded([tool("login", token="Bearer redacted-0123456789ab", user="ada"), READ]))
    answers = say(
        matcher.cursor(),
        tool("login", token="Bearer s3cret", user="ada"),
        READ,
        tool("login", token="s3cret", user="ada"),
        tool("login", token="Bearer s3cret", user="bob"),
        tool("login", token="Bearer ", user="ada"),
    )
    assert answers == ["0.0", "0.1", "miss", "miss", "miss"]


def test_a_pseudonym_matches_itself() -> None:
    requested = tool("login", token="redacted-0123456789ab")
    assert say(RequestMatcher(recorded([requested])).cursor(), requested) == ["0.0"]


def test_each_answer_to_a_redacted_request_is_given_once() -> None:
    login = tool("login", token="redacted-0123456789ab")
    matcher = RequestMatcher(recorded([login, login]), reuse=Reuse.ERROR)
    requested = tool("login", token="s3cret")
    assert say(matcher.cursor(), requested, requested, requested) == ["0.0", "0.1", "miss"]
    assert missed(matcher, requested, (requested, requested)).reason == "was recorded 2 times and asked for once more"


def test_a_redacted_request_keeps_its_place_in_the_sequence() -> None:
    login = tool("login", token="redacted-0123456789ab")
    matcher = RequestMatcher(recorded([login, WRITE_A, READ], [login, WRITE_B, READ]))
    cursor = matcher.cursor()
    say(cursor, tool("login", token="x"))
    assert say(cursor, WRITE_A) == ["0.1"]
    assert cursor.reason is MatchReason.HISTORY


@given(
    st.lists(st.text("ab", max_size=3), min_size=2, max_size=4),
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=3, max_size=3),
)
def test_whatever_was_redacted_fits_its_mask(around: list[str], secrets: list[str]) -> None:
    redacted = "redacted-0123456789ab".join(around)
    plain = around[0] + "".join(secret + text for secret, text in zip(secrets, around[1:], strict=False))
    mask = mask_of({"a": [redacted]})
    assert with_stand_ins({"a": [plain]}, mask) == with_stand_ins({"a": [redacted]}, mask)
    assert with_stand_ins({"a": [plain]}, mask) is not None


def test_a_long_text_with_many_pseudonyms_is_held_against_another_in_time() -> None:
    mask = mask_of(" a ".join(["redacted-0123456789ab"] * 300) + "!")
    assert with_stand_ins(" a " * 100_000, mask) is None


# --- A miss explains itself ---


def test_a_miss_names_the_nearest_request_the_difference_and_the_rule_to_paste() -> None:
    matcher = RequestMatcher(recorded([tool("read", path="a/b/c", depth=1), tool("read", path="z", depth=9)]))
    miss = missed(matcher, tool("read", path="a/b/d", depth=1))
    assert miss.sentence == (
        'tools/call read was never recorded with these params; the nearest is row 1, where $.arguments.path: "a/b/c" ≠'
        " \"a/b/d\"; --match default refuses it; --ignore '$.arguments.path' or --match loose would let it match"
    )
    assert miss.data == {
        "method": "tools/call",
        "target": "read",
        "refused_by": "--match default",
        "nearest": {"row": 1, "method": "tools/call", "target": "read"},
        "differences": [{"path": "$.arguments.path", "how": "changed", "recorded": "a/b/c", "asked": "a/b/d"}],
        "more_differences": 0,
        "ignore": ["$.arguments.path"],
        "options": ["--match loose"],
    }


def test_of_long_values_the_part_that_differs_is_shown() -> None:
    matcher = RequestMatcher(recorded([tool("read", text="x" * 500 + "a" + "y" * 500)]))
    miss = missed(matcher, tool("read", text="x" * 500 + "b" + "y" * 500))
    assert f"$.arguments.text: …{'x' * 20}a{'y' * 39}… ≠ …{'x' * 20}b{'y' * 39}…;" in miss.sentence


def test_what_only_a_strict_matcher_refuses_would_match_by_default() -> None:
    miss = missed(
        RequestMatcher(recorded([tool("read", MODERN, path="x")]), strictness=Strictness.STRICT), tool("read", path="x")
    )
    assert (miss.refused_by, miss.options) == ("--match strict", ("--match default",))


def test_the_rule_to_paste_lets_it_match() -> None:
    exchanges = recorded([tool("read", path="a", at=1)])
    requested = tool("read", path="a", at=2, list=[{"x": 1}])
    rules = missed(RequestMatcher(exchanges), requested).ignore
    assert say(RequestMatcher(exchanges, ignore=rules).cursor(), requested) == ["0.0"]


def test_for_an_unrecorded_target_the_nearest_name_is_given() -> None:
    miss = missed(RequestMatcher(recorded([READ, WRITE_A])), tool("wriet", text="x"))
    assert (miss.nearest and miss.nearest.target, miss.is_unknown) == ("write", False)
    assert 'the nearest is row 2, tools/call write with {"text": "a"}' in miss.sentence


def test_for_an_unrecorded_method_the_recorded_ones_are_listed() -> None:
    miss = missed(RequestMatcher(recorded([READ, PING])), ("prompts/list", {}))
    assert miss.sentence == "prompts/list was never recorded; what was is tools/call, ping"
    assert miss.is_unknown


def test_a_client_of_the_other_era_is_told_how_the_capture_opens() -> None:
    miss = missed(RequestMatcher(recorded([("server/discover", {})])), ("initialize", {}))
    assert miss.sentence.endswith("initialize was never recorded: this capture opens with server/discover")


def test_what_a_miss_says_is_bounded() -> None:
    miss = missed(RequestMatcher(recorded([tool("read", text="y" * 5000)])), tool("read", text="x" * 5000))
    assert len(miss.sentence) + len(json.dumps(miss.data)) < 1000


def test_nothing_recorded_answers_nothing() -> None:
    assert missed(RequestMatcher(recorded([])), PING).sentence == "ping was never recorded"


def test_the_answer_of_a_user_does_not_change_what_follows() -> None:
    def retry(answer: str, state: str = "s") -> Asked:
        return "tools/call", {"name": "greet", "inputResponses": {"who": {"action": answer}}, "requestState": state}

    matcher = RequestMatcher(recorded([retry("accept")]))
    assert say(matcher.cursor(), retry("decline"), retry("accept", "t")) == ["0.0", "miss"]


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers() | st.none() | st.lists(st.booleans()), max_size=5)
)
def test_any_miss_can_be_told_as_json(arguments: dict[str, Any]) -> None:
    miss = missed(
        RequestMatcher(recorded([tool("read", path="a")])),
        tool("read", other="x", **{f"x{name}": value for name, value in arguments.items()}),
    )
    assert json.loads(json.dumps(miss.data))["differences"]


def test_a_miss_looks_at_a_bounded_number_of_recorded_requests() -> None:
    matcher = RequestMatcher(recorded([tool("read", path=str(at)) for at in range(2 * MAX_CONSIDERED)]))
    miss = missed(matcher, tool("read", path="none"))
    assert (miss.nearest is None, miss.ignore) == (False, ("$.arguments.path",))


def test_a_script_plays_with_it() -> None:
    dialogue = Dialogue().client(request(1, *READ)).server(result(1, {"said": "x"}))
    replies = read_replies(dialogue.transcript)
    script = Script(replies, RequestMatcher(replies.exchanges).cursor())
    assert [json.loads(send.data)["result"] for send in script.feed(live(READ))] == [{"said": "x"}]
    (send,) = script.feed(live(tool("read", path="y")))
    assert json.loads(send.data)["error"]["data"]["ignore"] == ["$.arguments.path"]


def test_lookup_does_not_grow_with_what_was_recorded() -> None:
    def cost_s(recorded_requests: int) -> float:
        matcher = RequestMatcher(
            recorded([tool("read", path=str(at)) for at in range(recorded_requests)] + [PING] * recorded_requests)
        )
        requests = [live(tool("read", path=str(at))) for at in range(0, recorded_requests, recorded_requests // 100)]
        ping = live(PING)
        best = 1e9
        for _ in range(5):
            cursor = matcher.cursor()
            begin = time.process_time()
            for message in requests:
                cursor.match(message)
                cursor.match(ping)
            best = min(best, time.process_time() - begin)
        return best

    assert cost_s(10_000) < 4 * cost_s(200)
