"""JSON read where servers can stand, and passed by elsewhere: the same servers, and the same refusals, as when all is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from mcpspy.setup.jsonc import ANY, parse
from mcpspy.setup.spans import Unreadable
from tests.setup.writing import NAMES, SERVERS, Server, json_file

WAY = ("mcpServers",)
FILES = st.builds(
    lambda names, servers: dict(zip(names, servers, strict=False)), NAMES, st.lists(SERVERS, min_size=3, max_size=3)
)


def refusal(text: str, way: tuple[str, ...]) -> str:
    """Return the reason why `text` cannot be read; empty if it can."""
    try:
        parse(text, way)
    except Unreadable as error:
        return str(error)
    return ""


@given(named=FILES, data=st.data())
def test_the_servers_are_the_same_when_the_rest_is_passed_by(named: dict[str, Server], data: DataObject) -> None:
    text = data.draw(json_file(named, comments=data.draw(st.booleans())))
    assert parse(text, WAY).member("mcpServers") == parse(text).member("mcpServers")


@given(named=FILES, data=st.data())
def test_a_file_that_was_damaged_is_refused_in_the_same_words(named: dict[str, Server], data: DataObject) -> None:
    text = data.draw(json_file(named, comments=data.draw(st.booleans())))
    at = data.draw(st.integers(min_value=0, max_value=len(text) - 1))
    damaged = text[:at] + data.draw(st.sampled_from(["", ",", "}", "]", '"', "\\", "x", "\x00", "/*"])) + text[at + 1 :]
    assert refusal(damaged, WAY) == refusal(damaged, ())


def test_values_that_contain_no_server_are_skipped() -> None:
    text = '{"projects": {"/p": {"history": [{"a": [1]}, 2], "mcpServers": {"x": {}}}}}'
    project = parse(text, ("projects", ANY, "mcpServers")).members[0].value.members[0].value
    assert [(member.key, len(member.value.items), len(member.value.members)) for member in project.members] == [
        ("history", 0, 0),
        ("mcpServers", 0, 1),
    ]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_only_python_knows_is_refused_where_it_is_passed_by(constant: str) -> None:
    assert refusal(f'{{"a": {constant}}}', WAY).endswith("(line 1, column 7)")
