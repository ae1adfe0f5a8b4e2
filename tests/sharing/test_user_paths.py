"""JSON paths of the user, followed through messages, and through what is no JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.ignore import Ignore
from mcpspy.sharing.user_paths import MessagePaths, UserPaths
from mcpspy.wire.json_spans import JsonWalk


@given(st.binary(max_size=60) | st.text('{}[]":,\\u12ab tru', max_size=40).map(str.encode))
def test_paths_can_be_followed_through_any_bytes(data: bytes) -> None:
    walk = JsonWalk(data, MessagePaths(UserPaths(Ignore.of(["$..a[0]"]))))
    for leaf in walk.leaves():
        assert 0 <= leaf.start <= leaf.end <= len(data)
        assert all(isinstance(step, str | int) for step in walk.steps)


@pytest.mark.parametrize(
    ("path", "text", "taken"),
    [
        ("$.arguments.a", '{"method":"x","params":{"arguments":{"a":"yes","b":"no"}}}', ["yes"]),
        ("$.params.arguments.a", '{"method":"x","params":{"arguments":{"a":"yes","b":"no"}}}', ["yes"]),
        ("$.result.content[1].text", '{"result":{"content":[{"text":"no"},{"text":"yes"}]}}', ["yes"]),
        ("$.error.data", '{"error":{"message":"no","data":{"a":["yes","yes"]}}}', ["yes", "yes"]),
        ("$..a", '{"params":{"x":[{"a":"yes"}],"a":"yes"},"b":"no"}', ["yes", "yes"]),
        ("$.x[*]", '[{"params":{"x":["yes"]}},{"params":{"y":["no"]}}]', ["yes"]),
        ("$['caf\\u00e9']", '{"params":{"caf\\u00e9":"yes"}}', ["yes"]),
        ("$.token", '{"token":"yes"}', ["yes"]),
    ],
)
def test_a_path_takes_the_values_that_it_names(path: str, text: str, taken: list[str]) -> None:
    data = text.encode()
    walk = JsonWalk(data, MessagePaths(UserPaths(Ignore.of([path]))))
    assert [data[leaf.start : leaf.end].decode() for leaf in walk.leaves() if leaf.position and leaf.position.taken] == taken


def test_without_a_path_no_position_is_known() -> None:
    assert all(leaf.position is None for leaf in JsonWalk(b'{"a":["b"]}').leaves())
