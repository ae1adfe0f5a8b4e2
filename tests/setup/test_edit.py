"""Wrapping and unwrapping texts: what changes, what does not, and that the one undoes the other byte for byte."""

import contextlib
import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from mcpspy.cli.capture_options import RUN
from mcpspy.setup.edit import unwrapped, wrapped
from mcpspy.setup.entry import EntryState, Syntax, entries
from mcpspy.setup.spans import Unreadable
from mcpspy.setup.wrapping import RUN_SWITCHES, server_command_at
from tests.setup.writing import NAMES, SERVERS, Server, json_file, toml_file

PROGRAM = ["/opt/my tools/bin/mcpspy"]
PYTHON = ["/usr/bin/python3.12", "-P", "-m", "mcpspy"]
SECTION = {Syntax.JSON: ("mcpServers",), Syntax.TOML: ("mcp_servers",)}


def wrap(text: str, syntax: Syntax = Syntax.JSON, program: list[str] = PROGRAM) -> str:
    """Wrap all servers of a file."""
    section = SECTION[syntax]
    return wrapped(text, syntax, section, {entry.path for entry in entries(text, syntax, section)}, program)


def unwrap(text: str, syntax: Syntax = Syntax.JSON) -> str:
    """Unwrap all servers of a file."""
    section = SECTION[syntax]
    return unwrapped(text, syntax, section, {entry.path for entry in entries(text, syntax, section)})


def servers(names: list[str], defined: list[Server]) -> dict[str, Server]:
    return dict(zip(names, defined, strict=False))


FILES = st.builds(servers, NAMES, st.lists(SERVERS, min_size=3, max_size=3))
SYNTAXES = st.sampled_from(["json", "jsonc", "toml"])


def text_of(data: DataObject, named: dict[str, Server], syntax: str) -> tuple[str, Syntax]:
    """Write a file with these servers."""
    if syntax == "toml":
        return data.draw(toml_file(named)), Syntax.TOML
    return data.draw(json_file(named, comments=syntax == "jsonc")), Syntax.JSON


@given(named=FILES, syntax=SYNTAXES, program=st.sampled_from([PROGRAM, PYTHON]), data=st.data())
def test_unwrapping_gives_back_every_byte(named: dict[str, Server], syntax: str, program: list[str], data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    before = entries(text, kind, SECTION[kind])
    if all(entry.state is EntryState.PLAIN for entry in before):
        assert unwrap(wrap(text, kind, program), kind) == text


@given(named=FILES, syntax=SYNTAXES, program=st.sampled_from([PROGRAM, PYTHON]), data=st.data())
def test_a_wrapped_command_follows_ours(named: dict[str, Server], syntax: str, program: list[str], data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    for entry in entries(wrap(text, kind, program), kind, SECTION[kind]):
        server = named[entry.name]
        assert entry.state is EntryState.WRAPPED
        if server_command_at([server.command, *(server.args or [])]) is None:
            assert entry.server_argv == [server.command, *(server.args or [])]
            assert entry.argv[: len(program) + 1] == [*program, "run"]


@given(named=FILES, syntax=st.sampled_from(["json", "toml"]), data=st.data())
def test_the_rest_stays_the_same(named: dict[str, Server], syntax: str, data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    load = tomllib.loads if kind is Syntax.TOML else json.loads
    before, after = load(text.removeprefix("\ufeff")), load(wrap(text, kind).removeprefix("\ufeff"))
    for document in (before, after):
        for entry in document[SECTION[kind][0]].values():
            entry.pop("command")
            entry.pop("args", None)
    assert before == after


@given(named=FILES, syntax=SYNTAXES, data=st.data())
def test_wrapping_twice_is_wrapping_once(named: dict[str, Server], syntax: str, data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    once = wrap(text, kind)
    assert wrap(once, kind) == once


@given(named=FILES, syntax=SYNTAXES, data=st.data())
def test_what_is_edited_elsewhere_in_between_stays(named: dict[str, Server], syntax: str, data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    if any(entry.state is not EntryState.PLAIN for entry in entries(text, kind, SECTION[kind])):
        return
    tail = "\n# later\n[later]\nx = 1\n" if kind is Syntax.TOML else "\n\t"
    assert unwrap(wrap(text, kind) + tail, kind) == text + tail


@given(text=st.text('{}[]",:/*\\ \nab1mcpServers\ufeff', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for syntax, section in SECTION.items():
        with contextlib.suppress(Unreadable):
            entries(text, syntax, section)


@given(
    text=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_plain_json_is_read(text: object) -> None:
    entries(json.dumps(text), Syntax.JSON, ("mcpServers",))


EXAMPLES = [
    (
        '{"mcpServers": {"t": {\n   "command": "uvx", // c\n   "env": {}\n}}}',
        '{"mcpServers": {"t": {\n   "command": "/m/mcpspy",\n   "args": ["run", "--label=t", "--", "uvx"], // c\n   "env": {}\n}}}',
    ),
    (
        '{"mcpServers":{"x":{"command":"npx","args":[\n    "-y",\n    "s",\n  ]}}}',
        '{"mcpServers":{"x":{"command":"/m/mcpspy","args":[\n    "run", "--label", "x", "--", "npx",\n    "-y",\n    "s",\n  ]}}}',
    ),
    (
        '{"mcpServers":{"--label=x":{"command":"npx","args":[]}}}',
        '{"mcpServers":{"--label=x":{"command":"/m/mcpspy","args":["run", "--label", "--label=x", "--", "npx"]}}}',
    ),
    (
        '{"mcpServers":{"\\ud800":{"command":"npx","args":["\\udc00"]}}}',
        '{"mcpServers":{"\\ud800":{"command":"/m/mcpspy","args":["run", "--label", "\\ud800", "--", "npx", "\\udc00"]}}}',
    ),
    (
        '{"mcpServers":{"x":{"args":[],"command":"\\u006epx"}}}',
        '{"mcpServers":{"x":{"args":["run", "--label", "x", "--", "\\u006epx"],"command":"/m/mcpspy"}}}',
    ),
]


@pytest.mark.parametrize(("plain", "expected"), EXAMPLES)
def test_wrapped_json_reads_as_its_author_wrote_it(plain: str, expected: str) -> None:
    assert wrap(plain, program=["/m/mcpspy"]) == expected
    assert unwrap(expected) == plain


TOML_EXAMPLES = [
    (
        "[mcp_servers.time]\r\n  command = 'uvx' # fast",
        '[mcp_servers.time]\r\n  command = "/m/mcpspy" # fast\r\n  args = ["run", "--label=time", "--", \'uvx\']',
    ),
    (
        'mcp_servers.x.command = "npx"\n[a]\n',
        'mcp_servers.x.command = "/m/mcpspy"\nmcp_servers.x.args = ["run", "--label=x", "--", "npx"]\n[a]\n',
    ),
]


@pytest.mark.parametrize(("plain", "expected"), TOML_EXAMPLES)
def test_wrapped_toml_reads_as_its_author_wrote_it(plain: str, expected: str) -> None:
    assert wrap(plain, Syntax.TOML, ["/m/mcpspy"]) == expected
    assert unwrap(expected, Syntax.TOML) == plain


@pytest.mark.parametrize("more", ['"dev": {"debug": {"type": "node"}}', '"env": {"PYTHONHOME": "/opt/python"}'])
def test_what_would_not_start_with_mcpspy_before_it_is_left_alone(more: str) -> None:
    text = f'{{"mcpServers":{{"x":{{"command":"node", {more}}}}}}}'
    (entry,) = entries(text, Syntax.JSON, ("mcpServers",))
    assert (entry.state, entry.argv, bool(entry.problem)) == (EntryState.UNUSABLE, ["node"], True)
    assert wrap(text) == text
    by_hand = text.replace('"node",', '"mcpspy", "args": ["run", "--", "node"],')
    assert unwrap(by_hand) == text.replace('"node",', '"node", "args": [],')


def test_a_command_that_was_wrapped_by_hand_is_unwrapped() -> None:
    text = '{"mcpServers":{"x":{"command":"C:\\\\Py\\\\mcpspy.exe","args":["run","--quiet","--max-size=1gb","--","npx","-y"]}}}'
    assert unwrap(text) == '{"mcpServers":{"x":{"command":"npx","args":["-y"]}}}'


def test_arguments_added_after_a_wrapped_command_stay() -> None:
    text = wrap('{"mcpServers":{"x":{"command":"npx"}}}')
    assert unwrap(text.replace('"npx"', '"npx", "-y"')) == '{"mcpServers":{"x":{"command":"npx", "args": ["-y"]}}}'


@pytest.mark.parametrize(
    ("argv", "behind"),
    [
        (["mcpspy", "run", "--", "x"], 3),
        (["/old/mcpspy", "run", "--label", "a", "--", "x"], 5),
        (["python", "-m", "mcpspy", "run", "x"], 4),
        (["uvx", "mcpspy", "run", "--capture", "f", "x", "--", "y"], 5),
        (["mcpspy", "run", "--"], None),
        (["mcpspy", "show"], None),
        (["npx", "--", "mcpspy", "run", "x"], None),
    ],
)
def test_our_prefix_is_recognised_by_its_form(argv: list[str], behind: int | None) -> None:
    assert server_command_at(argv) == behind


def test_the_switches_of_run_are_known() -> None:
    assert {f"--{option.name}" for option in RUN if option.is_switch} == RUN_SWITCHES
