"""mcpspy's own entry in texts: put in, recognised, and taken out byte for byte, also where servers are wrapped meanwhile."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from mcpspy.setup.edit import added, removed
from mcpspy.setup.entry import EntryState, Syntax, entries
from mcpspy.setup.plan import Aim, WrapSettings, own_server, plan_change, takes_own
from mcpspy.setup.ports import ReservedPorts
from mcpspy.setup.spans import Unreadable
from mcpspy.setup.wrapping import is_own, is_own_url, own_path
from tests.setup.test_edit import FILES, PROGRAM, PYTHON, SECTION, SYNTAXES, text_of, unwrap, wrap
from tests.setup.test_homes import PROGRAMS, SYSTEMS, all_files, contents, copied
from tests.setup.writing import Server


def with_own(text: str, syntax: Syntax = Syntax.JSON, program: list[str] = PROGRAM) -> str:
    return added(text, syntax, SECTION[syntax], program)


def without_own(text: str, syntax: Syntax = Syntax.JSON) -> str:
    """Take out all own entries of a text."""
    section = SECTION[syntax]
    for entry in entries(text, syntax, section):
        if entry.state is EntryState.OWN:
            text = removed(text, syntax, section, entry.path)
    return text


@given(named=FILES, syntax=SYNTAXES, program=st.sampled_from([PROGRAM, PYTHON]), wraps=st.booleans(), data=st.data())
def test_taken_out_again_every_byte_is_as_before(
    named: dict[str, Server],
    syntax: str,
    program: list[str],
    wraps: bool,  # noqa: FBT001 - drawn
    data: DataObject,
) -> None:
    text, kind = text_of(data, named, syntax)
    plain = all(entry.state is EntryState.PLAIN for entry in entries(text, kind, SECTION[kind]))
    own = with_own(text, kind, program)
    assert without_own(own, kind) == text
    if plain and wraps:
        assert unwrap(without_own(wrap(own, kind), kind), kind) == text
        assert without_own(unwrap(with_own(wrap(text, kind), kind), kind), kind) == text


@given(named=FILES, syntax=SYNTAXES, data=st.data())
def test_it_is_never_wrapped_and_the_others_are(named: dict[str, Server], syntax: str, data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    assume(all(entry.state is EntryState.PLAIN for entry in entries(text, kind, SECTION[kind])))  # else it looks wrapped
    states = {entry.name: entry.state for entry in entries(wrap(with_own(text, kind), kind), kind, SECTION[kind])}
    assert states.pop("mcpspy") is EntryState.OWN
    assert set(states.values()) == {EntryState.WRAPPED}


@given(named=FILES, syntax=st.sampled_from(["json", "toml"]), data=st.data())
def test_every_reader_finds_it_and_the_rest_as_before(named: dict[str, Server], syntax: str, data: DataObject) -> None:
    text, kind = text_of(data, named, syntax)
    load = tomllib.loads if kind is Syntax.TOML else json.loads
    before, after = load(text.removeprefix("\ufeff")), load(with_own(text, kind).removeprefix("\ufeff"))
    assert after[SECTION[kind][0]].pop("mcpspy") == {"command": PROGRAM[0], "args": ["mcp"]}
    assert before == after


OWN = '"mcpspy": {"command": "/m/mcpspy", "args": ["mcp"]}'
EXAMPLES = [
    ('{"mcpServers": {}}', f'{{"mcpServers": {{{OWN}}}}}'),
    ('{"mcpServers": { }}', f'{{"mcpServers": {{{OWN} }}}}'),
    ("{}\n", f'{{"mcpServers": {{ {OWN} }}}}\n'),
    ("{\n}", f'{{"mcpServers": {{ {OWN} }}\n}}'),
    ('{"a": 1}', f'{{"mcpServers": {{ {OWN} }}, "a": 1}}'),
    ('{ // mine\n  "a": 1,\n}', f'{{ // mine\n  "mcpServers": {{ {OWN} }},\n  "a": 1,\n}}'),
    (
        '{\r\n\t"mcpServers": {\r\n\t\t"t": {"command": "x"}\r\n\t}\r\n}',
        f'{{\r\n\t"mcpServers": {{\r\n\t\t{OWN},\r\n\t\t"t": {{"command": "x"}}\r\n\t}}\r\n}}',
    ),
]
TABLE = '[mcp_servers.mcpspy]\ncommand = "/m/mcpspy"\nargs = ["mcp"]'
BRACES = 'mcpspy = { command = "/m/mcpspy", args = ["mcp"] }'
TOML_EXAMPLES = [
    ("", f"{TABLE}\n"),
    ("\ufeff", f"\ufeff{TABLE}\n"),
    ("\n", f"\n\n{TABLE}\n"),
    ("a = 1\n", f"a = 1\n\n{TABLE}\n"),
    ("a = 1", f"a = 1\n{TABLE}"),
    ("a = 1\r\n# c", f"a = 1\r\n# c\r\n{TABLE}".replace("\n", "\r\n").replace("\r\r", "\r")),
    ("[mcp_servers]\n", f"[mcp_servers]\n\n{TABLE}\n"),
    ("mcp_servers = {}\n", f"mcp_servers = {{{BRACES}}}\n"),
    ("mcp_servers = { t = { url = 'x' } }", f"mcp_servers = {{ {BRACES}, t = {{ url = 'x' }} }}"),
]


@pytest.mark.parametrize(("before", "after"), EXAMPLES)
def test_json_reads_as_a_person_would_write_it(before: str, after: str) -> None:
    assert with_own(before, program=["/m/mcpspy"]) == after
    assert without_own(after) == before


@pytest.mark.parametrize(("before", "after"), TOML_EXAMPLES)
def test_toml_reads_as_a_person_would_write_it(before: str, after: str) -> None:
    assert with_own(before, Syntax.TOML, ["/m/mcpspy"]) == after
    assert without_own(after, Syntax.TOML) == before


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (f'{{"mcpServers": {{\n  "t": {{"command": "x"}},\n  {OWN}\n}}}}', '{"mcpServers": {\n  "t": {"command": "x"}\n}}'),
        (f'{{"mcpServers": {{\n  {OWN}\n}}}}', '{"mcpServers": {}}'),
        (f'{{"mcpServers": {{{OWN},}}}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"x": {"command": "uvx", "args": ["mcpspy", "mcp", "a.mcpspy"]}}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"x": {"url": "http://127.0.0.1:4711/mcpspy-a_b-c/mcp"}}}', '{"mcpServers": {}}'),
    ],
)
def test_an_entry_that_a_person_or_a_client_wrote_is_taken_out_too(written: str, left: str) -> None:
    assert without_own(written) == left


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (f"a = 1\n\n{TABLE}\n\n[b]\n", "a = 1\n\n[b]\n"),
        (f"a = 1\n{TABLE}\n[b]\n", "a = 1\n[b]\n"),
        (f"{TABLE}\n\n[mcp_servers.mcpspy.env]\nX = '1'\n[b]\n", "[b]\n"),
    ],
)
def test_a_table_that_others_follow_is_taken_out_alone(written: str, left: str) -> None:
    assert without_own(written, Syntax.TOML) == left


@pytest.mark.parametrize(
    ("text", "syntax", "words"),
    [
        (" \n", Syntax.JSON, "it is empty"),
        ("[]", Syntax.JSON, "not an object"),
        ('{"mcpServers": null}', Syntax.JSON, "not an object"),
        ("mcp_servers = 1\n", Syntax.TOML, "not an object"),
    ],
)
def test_a_text_that_cannot_take_it_is_refused(text: str, syntax: Syntax, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        with_own(text, syntax)


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        (f'{{"mcpServers": {{{OWN}, {OWN}}}}}', Syntax.JSON),
        (f'{{"mcpServers": {{{OWN} /* c */, "x": {{"command": "y"}}}}}}', Syntax.JSON),
        ('mcp_servers.x = {command = "mcpspy", args = ["mcp"]}\n', Syntax.TOML),
        ('[mcp_servers]\nx.command = "mcpspy"\nx.args = ["mcp"]\ny.command = "z"\n', Syntax.TOML),
    ],
)
def test_an_entry_that_cannot_be_taken_out_stays_as_it_is(text: str, syntax: Syntax) -> None:
    with pytest.raises(Unreadable):
        without_own(text, syntax)


@pytest.mark.parametrize(
    ("argv", "own"),
    [
        (["mcpspy", "mcp"], True),
        (["/old/mcpspy", "mcp", "--allow-call"], True),
        (["python", "-P", "-m", "mcpspy", "mcp"], True),
        (["uvx", "--from", "mcpspy[mcp]", "mcpspy", "mcp"], True),
        (["mcpspy", "run", "--", "mcpspy", "mcp"], False),
        (["mcpspy", "show"], False),
        (["npx", "--", "mcpspy", "mcp"], False),
        ([], False),
    ],
)
def test_it_is_recognised_by_its_command(argv: list[str], own: bool) -> None:  # noqa: FBT001 - a column
    assert is_own(argv) == own


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://127.0.0.1:4711" + own_path("a_b-c"), True),
        ("http://localhost:4711/mcpspy-abc/mcp", True),
        ("http://[::1]:4711/mcpspy-abc/mcp", True),
        ("http://127.0.0.1:4711/mcp", False),
        ("http://127.0.0.1:4711/mcpspy-abc/mcp/more", False),
        ("http://127.0.0.1.example.com:4711/mcpspy-abc/mcp", False),
        ("http://example.com/mcpspy-abc/mcp", False),
    ],
)
def test_it_is_recognised_by_its_url(url: str, own: bool) -> None:  # noqa: FBT001 - a column
    assert is_own_url(url) == own
    (entry,) = entries(json.dumps({"mcpServers": {"x": {"url": url}}}), Syntax.JSON, SECTION[Syntax.JSON])
    assert (entry.state is EntryState.OWN) == own


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_clients_file_takes_it_and_is_then_as_before(system: str, tmp_path: Path) -> None:
    folder = copied(system, tmp_path)
    before = contents(folder)
    for aim in (Aim.ADD, Aim.REMOVE):
        settings = WrapSettings(aim=aim, program=PROGRAMS[system], oauth=False, is_free=lambda _: True)
        for state in filter(takes_own, all_files(system, folder, ReservedPorts())):
            change = plan_change(state, [own_server(state)], settings)
            assert change is not None
            state.file.path.write_bytes(change.text.encode())
        states = all_files(system, folder, ReservedPorts())
        names = {state.file.client.name for state in states if own_server(state).entry.state is EntryState.OWN}
        assert names == ({state.file.client.name for state in states if takes_own(state)} if aim is Aim.ADD else set())
    assert contents(folder) == before
    shutil.rmtree(folder)
