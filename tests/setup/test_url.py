"""HTTP servers in clients' files: their URL gets a reserved port, and comes back in its own spelling."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, DrawFn

from mcpspy.errors import SetupError
from mcpspy.setup.clients import VS_CODE
from mcpspy.setup.entry import ConfigEntry, EntryState
from mcpspy.setup.files import keep
from mcpspy.setup.plan import Aim, read_state
from mcpspy.setup.ports import ReservedPorts, read_reserved_ports
from mcpspy.setup.wrapping import PORTS, port_of
from tests.setup.planning import changed, config, planned, state_of
from tests.setup.writing import NAMES, SERVERS, json_entry, json_list, json_string, toml_entry, toml_string
from tests.tiers import current_tier, slow_examples

ORIGINS = ["https://mcp.example.com", "http://localhost:3001", "HTTPS://A.b:8443", "https://[::1]:9", "https://bücher.example"]
RESTS = ["", "/", "/mcp", "/mcp?x=${Y}&z=%20", "/a/../é b", "/sse?api_key=k"]
URLS = st.builds(str.__add__, st.sampled_from(ORIGINS), st.sampled_from(RESTS))
EXTRAS = st.sampled_from(["", '"type": "sse"', '"headers": {"Authorization": "Bearer ${T}"}', '"oauth": {"clientId": "x"}'])


@st.composite
def any_letters(draw: DrawFn, text: str) -> str:
    """A string of JSON, with any of its letters as escapes: also of slashes, which nobody writes and many programs do."""
    pieces = [draw(st.sampled_from(_spelled(letter))) if draw(st.integers(0, 4)) == 0 else letter for letter in text]
    return '"' + "".join(pieces) + '"'


def _spelled(letter: str) -> list[str]:
    return [f"\\u{ord(letter):04x}", "\\/" if letter == "/" else letter]


@st.composite
def http_file(draw: DrawFn, suffix: str) -> str:
    """A file with servers of both kinds."""
    urls = draw(st.lists(URLS, min_size=1, max_size=3))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    names = [f"{name} {number}" for number, name in enumerate(draw(NAMES))]
    programs = {name: draw(SERVERS) for name in names}
    if suffix == ".toml":
        parts = [draw(toml_entry(name, program, newline)) for name, program in programs.items()]
        for number, url in enumerate(urls):
            spelt = draw(toml_string(url) | any_letters(url).filter(lambda text: "\\/" not in text))
            header = f"[mcp_servers.h{number}.http_headers]{newline}X-Api-Key = 'k'{newline}" if draw(st.booleans()) else ""
            parts.append(f"[mcp_servers.h{number}]{newline}url={spelt} # x{newline}{header}")
        return "".join([*(part for part in parts if part[0] != "["), *(part for part in parts if part[0] == "[")])
    entries = [
        draw(json_string(name)) + ":" + draw(json_entry(program, comments=True, newline=newline))
        for name, program in programs.items()
    ]
    for number, url in enumerate(urls):
        members = [m for m in ('"url" : ' + draw(json_string(url) | any_letters(url)), draw(EXTRAS)) if m]
        entries.append(f'"h{number}":' + draw(json_list(members, "{}", comments=True, newline=newline)))
    named = draw(json_list(entries, "{}", comments=True, newline=newline))
    return draw(st.sampled_from(["", "\ufeff"])) + '{"mcpServers": ' + named + "}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for files that are written over and over."""
    return tmp_path_factory.mktemp("url")


@settings(max_examples=slow_examples(current_tier()))
@given(suffix=st.sampled_from([".json", ".toml"]), data=st.data())
def test_wrapped_and_unwrapped_a_file_is_what_it_was(suffix: str, data: DataObject, folder: Path) -> None:
    named = config(folder / f"mcp{suffix}")
    before = data.draw(http_file(suffix)).encode()
    named.path.write_bytes(before)
    was = {server.entry.path: server.entry.server_url for server in state_of(named).servers if server.entry.is_http}
    usable = [server for server in state_of(named).servers if server.entry.state in (EntryState.PLAIN, EntryState.LOGIN)]
    ports = changed(named, Aim.WRAP)
    entries = state_of(named, ports).servers
    assert {entry.entry.path: entry.entry.server_url for entry in entries if entry.entry.is_http} == was
    assert {entry.entry.path for entry in entries if entry.entry.state is EntryState.WRAPPED} >= {
        server.entry.path for server in usable
    }
    again = planned(named, Aim.WRAP, ports)  # the program of these tests is nowhere, so it is mended
    assert again is None or (again.text.encode(), again.ports) == (named.path.read_bytes(), ports)
    if all(server.entry.state is not EntryState.WRAPPED for server in usable) and len(usable) == len(entries):
        assert changed(named, Aim.UNWRAP, ports) == ReservedPorts()
        assert named.path.read_bytes() == before


def written(folder: Path, url: str, *members: str) -> ConfigEntry:
    """Write a file, and return its one server."""
    file = folder / "one.json"
    body = ", ".join([f'"url": {json.dumps(url)}', *members])
    file.write_text(f'{{"mcpServers": {{"x": {{{body}}}}}}}', encoding="utf-8")
    return state_of(config(file)).servers[0].entry


def test_path_and_query_stay_and_the_fragment_has_the_origin(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp?a=b&c=${D}", '"headers": {"Authorization": "x"}')
    changed(config(tmp_path / "one.json"), Aim.WRAP)
    url = json.loads((tmp_path / "one.json").read_text())["mcpServers"]["x"]["url"]
    assert url == f"http://127.0.0.1:{PORTS[0]}/mcp?a=b&c=${{D}}#mcpspy=https://mcp.example.com"


def test_without_any_memory_of_ours_a_marked_url_comes_back(tmp_path: Path) -> None:
    written(tmp_path, "http://localhost:3001/sse")
    named = config(tmp_path / "one.json")
    before = named.path.read_bytes()
    changed(named, Aim.WRAP)
    changed(named, Aim.UNWRAP, ReservedPorts())
    assert named.path.read_bytes() == before


def test_a_path_that_was_edited_in_between_stays_edited(tmp_path: Path) -> None:
    written(tmp_path, "http://localhost:3001/sse")
    named = config(tmp_path / "one.json")
    ports = changed(named, Aim.WRAP)
    named.path.write_text(named.path.read_text().replace("/sse", "/mcp?v=2"))
    changed(named, Aim.UNWRAP, ports)
    assert '"http://localhost:3001/mcp?v=2"' in named.path.read_text()


LOGINS = [
    ("https://mcp.example.com/mcp", (), "login"),
    ("https://mcp.example.com/mcp", ('"headers": {"X-Region": "eu"}',), "login"),
    ("https://mcp.example.com/mcp", ('"headers": {"authorization": "Bearer x"}',), "plain"),
    ("https://mcp.example.com/mcp", ('"headers": {"X-API-Key": "${KEY}"}',), "plain"),
    ("https://mcp.example.com/mcp", ('"bearer_token_env_var": "T"',), "plain"),
    ("https://mcp.example.com/mcp?token=abc", (), "plain"),
    ("https://mcp.example.com/mcp?token=", (), "login"),
    ("http://mcp.lan/mcp", (), "plain"),
    ("https://localhost:8443/mcp", (), "plain"),
    ("http://localhost/mcp", ('"oauth": {"clientId": "x"}',), "login"),
]


@pytest.mark.parametrize(("url", "members", "state"), LOGINS)
def test_a_login_is_expected_where_the_entry_does_not_say_who_calls(
    url: str, members: tuple[str, ...], state: str, tmp_path: Path
) -> None:
    assert written(tmp_path, url, *members).state == state


def test_a_server_that_may_be_logged_in_to_is_left_unless_that_is_meant(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    assert planned(config(tmp_path / "one.json"), Aim.WRAP, oauth=False) is None
    assert planned(config(tmp_path / "one.json"), Aim.WRAP, oauth=True) is not None


def test_the_url_of_a_login_gets_no_fragment_and_comes_back_from_the_reserved_ports(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    named = config(tmp_path / "one.json")
    before = named.path.read_bytes()
    ports = changed(named, Aim.WRAP)
    assert f'"http://127.0.0.1:{PORTS[0]}/mcp"' in named.path.read_text()
    changed(named, Aim.UNWRAP, ports)
    assert named.path.read_bytes() == before


def test_the_url_of_a_login_comes_back_from_the_copy_where_the_reserved_ports_were_lost(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    named = config(tmp_path / "one.json")
    keep(state_of(named).snapshot, tmp_path / "backups")
    changed(named, Aim.WRAP)
    state = read_state(named, ReservedPorts(), tmp_path / "backups")
    assert state is not None
    assert [server.entry.server_url for server in state.servers] == ["https://mcp.example.com/mcp"]


def test_a_copy_with_another_path_tells_nothing(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    named = config(tmp_path / "one.json")
    keep(state_of(named).snapshot, tmp_path / "backups")
    changed(named, Aim.WRAP)
    named.path.write_text(named.path.read_text().replace("/mcp", "/other"))
    state = read_state(named, ReservedPorts(), tmp_path / "backups")
    assert state is not None
    assert state.servers[0].entry.has_unknown_original


def test_an_unknown_original_is_reported(tmp_path: Path) -> None:
    entry = written(tmp_path, f"http://127.0.0.1:{PORTS[5]}/mcp")
    assert (entry.state, entry.has_unknown_original) == (EntryState.UNUSABLE, True)
    assert "the original URL is unknown" in entry.problem


def test_a_port_with_an_unknown_original_does_not_become_that_of_another_server(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    lost = f'"lost": {{"url": "http://127.0.0.1:{PORTS[0]}/mcp"}}'
    file.write_text(f'{{"mcpServers": {{"x": {{"url": "http://h/1"}}, {lost}}}}}')
    ports = changed(config(file), Aim.WRAP)
    assert list(ports.by_port) == [PORTS[1]]
    assert state_of(config(file), ports).servers[1].entry.has_unknown_original


def test_a_wrapped_url_whose_port_is_not_reserved_keeps_it(tmp_path: Path) -> None:
    written(tmp_path, "http://localhost:3001/sse")
    named = config(tmp_path / "one.json")
    ports = changed(named, Aim.WRAP)
    assert state_of(named, ReservedPorts()).servers[0].missing
    again = planned(named, Aim.WRAP, ReservedPorts())
    assert again is not None
    assert (again.text, again.ports) == (named.path.read_text(), ports)


def test_a_file_gets_nothing_by_naming_the_reserved_port_of_another(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    ports = changed(config(tmp_path / "one.json"), Aim.WRAP)
    cloned = tmp_path / "cloned.json"
    cloned.write_text((tmp_path / "one.json").read_text())
    assert state_of(config(cloned), ports).servers[0].entry.state is EntryState.UNUSABLE


def test_the_port_stays_when_a_server_is_wrapped_again(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text('{"mcpServers": {"a": {"url": "http://h/1"}, "b": {"url": "http://h/2"}}}')
    named = config(file)
    ports = changed(named, Aim.WRAP)
    file.write_text(file.read_text().replace(f"http://127.0.0.1:{PORTS[1]}/2#mcpspy=http://h", "http://h/2"))
    assert changed(named, Aim.WRAP, ports) == ports


def test_two_clients_get_two_ports_for_one_server(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for file in (first, second):
        file.write_text('{"mcpServers": {"x": {"url": "http://h/1"}}}')
    ports = changed(config(second), Aim.WRAP, changed(config(first), Aim.WRAP))
    assert sorted(ports.by_port) == [PORTS[0], PORTS[1]]


def test_a_reserved_port_goes_with_its_entry_and_with_its_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for file in (first, second):
        file.write_text('{"mcpServers": {"x": {"url": "http://h/1"}}}')
    ports = changed(config(second), Aim.WRAP, changed(config(first), Aim.WRAP))
    first.unlink()
    assert changed(config(second), Aim.UNWRAP, ports) == ReservedPorts()


PROBLEMS = [
    ("https://${HOST}/mcp", "variable"),
    ("${URL}", "begins with a variable"),
    ("${URL:-https://a.example}/mcp", "begins with a variable"),
    ("https://me:secret@a.example/mcp", "user name"),
    ("https://a.example/mcp#x", "fragment"),
    ("unix:///tmp/s", "neither http nor https"),
    ("https:///mcp", "no host"),
]


@pytest.mark.parametrize(("url", "words"), PROBLEMS)
def test_a_url_that_cannot_be_wrapped_says_why(url: str, words: str, tmp_path: Path) -> None:
    entry = written(tmp_path, url)
    assert entry.state is EntryState.UNUSABLE
    assert words in entry.problem


def test_all_ports_may_be_taken(tmp_path: Path) -> None:
    written(tmp_path, "http://h/1")
    with pytest.raises(SetupError, match=r"28700 to 28999 are taken"):
        ReservedPorts().port("f", ("x",), None, is_free=lambda _: False)


def test_a_port_in_use_is_skipped() -> None:
    assert ReservedPorts().port("f", ("x",), None, is_free=lambda port: port > PORTS[2]) == PORTS[3]


def test_headers_of_a_table_of_codex_say_who_calls(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.x]\nurl = "https://h.example/mcp"\n\n[mcp_servers.x.env_http_headers]\nAuthorization = "T"\n')
    assert state_of(config(file)).servers[0].entry.state is EntryState.PLAIN


def test_the_servers_of_vs_code_are_moved_too(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"servers": {"x": {"type": "http", "url": "http://localhost/mcp"}}, "inputs": []}')
    changed(config(file, client=VS_CODE, keys=("servers",)), Aim.WRAP)
    assert port_of(json.loads(file.read_text())["servers"]["x"]["url"]) == PORTS[0]


def test_codex_reads_what_was_moved(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[mcp_servers.x]\nurl = 'http://localhost/mcp' # here\n")
    changed(config(file), Aim.WRAP)
    assert port_of(tomllib.loads(file.read_text())["mcp_servers"]["x"]["url"]) == PORTS[0]


@pytest.mark.parametrize(
    "url", ["https://[:::]/", "https://[1.2.3.4]/", "http://h:70000/", "https://ﬁ℀.example/mcp", "http://%/", "http://"]
)
def test_odd_hosts_break_nothing(url: str, tmp_path: Path) -> None:
    assert written(tmp_path, url).state in (EntryState.UNUSABLE, EntryState.LOGIN)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["f", "http://h/"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["version", "reserved_ports", "port", "entry", "url"]), inner)
    ),
    max_leaves=8,
)


@given(content=st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_reserved_ports_that_cannot_be_understood_are_an_error_of_ours_or_none(content: bytes, folder: Path) -> None:
    (folder / "reserved_ports.json").write_bytes(content)
    with suppress(SetupError):
        assert read_reserved_ports(folder).by_port == {}


def test_reserved_ports_are_read_as_they_were_written(tmp_path: Path) -> None:
    written(tmp_path, "https://mcp.example.com/mcp")
    made = changed(config(tmp_path / "one.json"), Aim.WRAP)
    (tmp_path / "reserved_ports.json").write_text(made.text())
    assert read_reserved_ports(tmp_path) == made
    assert made.by_port
