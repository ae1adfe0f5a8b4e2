"""The clients of captures over HTTP, and the recordings that they join."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.store.catalog import Recording, entries, recordings
from mcpspy.capture.store.clients import given_name
from mcpspy.records import CLIENT_PROCESSES, Frame, Note, Open, connection_processes
from tests.capture.making import SECOND_NS, stored

HTTP: Final[dict[str, Any]] = {
    "tapped": {"transport": "http", "url": "http://127.0.0.1:1/mcp", "listen": "http://127.0.0.1:2/mcp"}
}


def noted(pid: int, *connections: int, from_s: float = 1, to_s: float = 2, parents: tuple[tuple[int, int], ...] = ()) -> Note:
    """Make a tap's note of one process that was connected."""
    process = {"pid": pid, "name": f"client{pid}", "start": 2, "parents": [list(parent) for parent in parents]}
    times = {"first_ns": int(from_s * SECOND_NS), "last_ns": int(to_s * SECOND_NS)}
    extra = {"connections": [[pid, *connections]], "processes": [{**process, **times}]}
    return Note(at_ns=int(to_s * SECOND_NS), topic=CLIENT_PROCESSES, text="…", extra=extra)


def greeting(name: str) -> Frame:
    """Make a client's first request, which gives its name."""
    client = {"name": name, "version": "1.2"}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": client}}
    return Frame(0, 4, 4, json.dumps(request).encode() + b"\n")


def shape(grouped: list[Recording]) -> list[tuple[int | None, list[str]]]:
    """Return the client and the labels of each recording."""
    return [(recording.client_pid, sorted(capture.label for capture in recording.entries)) for recording in grouped]


def test_what_a_client_sends_over_http_is_in_its_recording() -> None:
    stored("local", begin_s=1, parent={"pid": 11, "name": "client", "start": 2})
    stored("remote", lasted_s=9, more=[noted(11, 1)], **HTTP)
    assert shape(recordings(entries())) == [(11, ["local", "remote"])]


def test_a_capture_of_two_clients_is_in_two_recordings_and_can_be_kept_in_one() -> None:
    two = noted(12, 2)
    both = [*noted(11, 1).extra["processes"], *two.extra["processes"]]
    stored(
        "remote", more=[Note(at_ns=2, topic=CLIENT_PROCESSES, text="…", extra={"connections": [], "processes": both})], **HTTP
    )
    assert sorted(shape(recordings(entries())), key=str) == [(11, ["remote"]), (12, ["remote"])]
    assert shape(recordings(entries(), each_once=True)) == [(None, ["remote"])]
    assert len({recording.id for recording in recordings(entries())}) == 2


def test_a_bridge_speaks_for_the_client_that_started_it() -> None:
    stored("local", begin_s=1)
    stored("remote", lasted_s=9, more=[noted(77, 1, parents=((76, 5), (11, 2)))], **HTTP)
    assert shape(recordings(entries())) == [(11, ["local", "remote"])]


def test_a_process_that_has_the_pid_of_a_client_that_ended_is_another() -> None:
    stored("local", begin_s=1, parent={"pid": 11, "name": "client", "start": 1})
    stored("remote", lasted_s=9, more=[noted(11, 1)], **HTTP)
    assert len(recordings(entries())) == 2


def test_where_no_process_is_known_the_name_of_the_client_decides_if_it_is_the_only_one() -> None:
    stored("local", begin_s=1, more=[greeting("claude")])
    stored("remote", lasted_s=9, more=[greeting("claude")], **HTTP)
    assert shape(recordings(entries())) == [(11, ["local", "remote"])]
    stored("second", begin_s=1, more=[greeting("claude")], parent={"pid": 12, "name": "client", "start": 2})
    assert shape(recordings(entries()))[-1] == (None, ["remote"])


def test_the_process_that_started_a_proxy_is_no_client() -> None:
    stored("remote", **HTTP)
    assert shape(recordings(entries())) == [(None, ["remote"])]


@pytest.mark.parametrize(("begin_s", "messages", "count"), [(1.5, 2, 1), (9, 2, 2), (1.5, 5, 2)])
def test_a_probe_and_the_session_that_follows_are_one_recording(begin_s: float, messages: int, count: int) -> None:
    stored("probe", label="files", lasted_s=1, messages=messages)
    stored("session", label="files", begin_s=begin_s)
    assert len(recordings(entries())) == count


def test_a_recording_has_the_name_that_its_client_gave() -> None:
    path = stored("local", more=[greeting("claude")])
    assert given_name(path) == "claude 1.2"
    assert recordings(entries())[0].given_name == "claude 1.2"


@pytest.mark.parametrize(("others", "name"), [((), "claude 1.2"), ((12,), "")])
def test_a_connection_that_nobody_noted_is_of_the_only_client(others: tuple[int, ...], name: str) -> None:
    path = stored("remote", more=[greeting("claude"), noted(11, 2), *(noted(pid, 3) for pid in others)], **HTTP)
    assert given_name(path, (11, 2)) == name


def test_a_connection_that_nobody_noted_is_of_the_process_that_uses_its_session() -> None:
    with_session = b"POST /mcp HTTP/1.1\r\nMcp-Session-Id: s1\r\n\r\n"
    path = stored(
        "remote",
        more=[
            Open(at_ns=4, name="request", sender="client", stream=10, connection=1, head=b"POST /mcp HTTP/1.1\r\n\r\n"),
            Frame(10, 4, 4, greeting("claude").data),
            Open(
                at_ns=5,
                name="response",
                sender="server",
                stream=11,
                connection=1,
                head=b"HTTP/1.1 200\r\nmcp-session-id: s1\r\n\r\n",
            ),
            Open(at_ns=6, name="request", sender="client", stream=12, connection=2, head=with_session),
            noted(11, 2),
            noted(12, 3),
        ],
        **HTTP,
    )
    assert [given_name(path, key) for key in ((11, 2), (12, 2))] == ["claude 1.2", ""]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_note_that_no_tap_wrote_names_nobody(extra: Any) -> None:
    note = Note(at_ns=0, topic=CLIENT_PROCESSES, text="", extra={"connections": extra, "processes": extra})
    assert connection_processes(note) == {}
