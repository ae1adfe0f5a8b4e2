"""A text becomes an intercept, or an error that names the column and what to write."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import InterceptError
from mcpspy.intercept.actions import Delay, Duplicate, Garbage, Hold, MadeAnswer, RemoveValue, SetValue, Truncate, Withhold
from mcpspy.intercept.syntax import ACTIONS, parse_intercept
from tests.intercept.making import no_file


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("tool:a => delay 3s", Delay(least_ns=3_000_000_000, most_ns=3_000_000_000)),
        ("tool:a => delay 1s..3s p=0.1", Delay(least_ns=1_000_000_000, most_ns=3_000_000_000)),
        ("tool:a => hold", Hold(most_ns=60 * 10**9)),
        ("tool:a => hold 5s max=1", Hold(most_ns=5 * 10**9)),
        ("tool:a=>drop", Withhold(then="drop")),
        ("tool:a => kill", Withhold(then="kill")),
        ("tool:a => truncate 20", Truncate(length=20)),
        ('tool:a => garbage "no {json}" max=2', Garbage(line=b"no {json}")),
        ("tool:a => duplicate", Duplicate()),
        ("tool:a => remove params._meta", RemoveValue(steps=("params", "_meta"), path="params._meta")),
        (
            'tool:a => set result.content[0]."a.b"={"c": [1, 2]} nth=3',
            SetValue(steps=("result", "content", 0, "a.b"), value=b'{"c": [1, 2]}', path='result.content[0]."a.b"'),
        ),
        (
            'tool:a => error -32000 "try later"',
            MadeAnswer(
                template=b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "try later"}}',
                words="error -32000",
            ),
        ),
    ],
)
def test_a_text_names_an_action(text: str, action: object) -> None:
    assert parse_intercept(text, no_file).action == action


def test_an_arrow_in_a_quoted_text_is_no_arrow() -> None:
    assert str(parse_intercept('"a => b" => drop', no_file).chosen) == '"a => b"'


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("tool:a => delay 3s", "requests"),
        ("kind:result tool:a => delay 3s", "all"),
        ("sender:server => drop", "all"),
        ("status:error => drop", "answers"),
        ("dur>1s => drop", "answers"),
        ("tool:a => truncate 3", "answers"),
        ('tool:a => garbage "x"', "answers"),
        ("tool:a => set result.a=1", "answers"),
        ("tool:a => remove error.data", "answers"),
        ("tool:a => set params.a=1", "requests"),
    ],
)
def test_a_scope_follows_from_the_filter_and_the_action(text: str, scope: str) -> None:
    assert parse_intercept(text, no_file).scope == scope


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("tool:a delay 3s", 16, "there is no =>"),
        ("tol:a => drop", 1, "there is no key “tol”"),
        (" => drop", 2, "the filter is empty"),
        ("rule:slow-call => drop", 1, "rule is not known while a message passes"),
        ("tool:a =>", 10, "the action is missing"),
        ("tool:a => status 500", 11, "there is no status on stdio"),
        ("tool:a => expire", 11, "a session on stdio does not expire"),
        ("tool:a => disconnect soon", 22, "“soon” is not a number"),
        ("tool:a => reorder 3", 19, "“3” has no unit"),
        ("tool:a => explode", 11, "there is no action “explode”"),
        ("tool:a => delay", 16, "the time is missing"),
        ("tool:a => delay 3", 17, "“3” has no unit"),
        ("tool:a => delay 3s..1s", 17, "ends before it begins"),
        ("tool:a => error x", 17, "“x” is not a number"),
        ("tool:a => set params.a", 23, "the value is missing"),
        ("tool:a => set params.a=x", 24, "the value is not JSON"),
        ("tool:a => remove", 17, "a path is missing"),
        ("tool:a => remove params..a", 18, "this path can match several values"),
        ("tool:a => drop later", 16, "this is no limit"),
        ("tool:a => drop p=2", 18, "“2” is no probability"),
        ("tool:a => drop nth=0", 20, "nth is at least 1"),
        ("tool:a => drop after=soon", 22, "“soon” is not a number"),
    ],
)
def test_an_error_names_the_column_and_what_is_wrong(text: str, column: int, words: str) -> None:
    with pytest.raises(InterceptError) as raised:
        parse_intercept(text, no_file)
    assert (raised.value.column, words in raised.value.reason, bool(raised.value.advice)) == (column, True, True)


@pytest.mark.parametrize("field", ["Retry-After", "Content-Length: 9", "Connection: close", "X: ä"])
def test_a_field_that_a_status_cannot_have_is_named(field: str) -> None:
    with pytest.raises(InterceptError) as raised:
        parse_intercept(f'tool:a => status 429 "{field}"', no_file, "http")
    assert (raised.value.column, "no field of this response" in raised.value.reason) == (22, True)


def test_the_reason_why_an_answer_cannot_be_had_is_named() -> None:
    def missing(name: str) -> bytes:
        raise ValueError(f"{name}: No such file or directory")

    with pytest.raises(InterceptError, match=r"gone\.json: No such file"):
        parse_intercept("tool:a => respond gone.json", missing)


@given(st.text(max_size=60) | st.builds("tool:a => {} {}".format, st.sampled_from(ACTIONS), st.text(max_size=30)))
def test_every_text_becomes_an_intercept_or_an_error(text: str) -> None:
    with suppress(InterceptError):
        assert parse_intercept(text, no_file).text == text.strip()
