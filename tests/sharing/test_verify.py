"""Leaks that are found in a capture, what is reported of them, and texts that are left alone."""

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.records import CLIENT, Frame, Header, Note, Open, Record
from mcpspy.replay.compare.ignore import Ignore
from mcpspy.sharing.user_paths import UserPaths
from mcpspy.sharing.verify import Leak, LeakFinder, path_at, pattern_for, random_spans
from tests.capture.strategies import HEADERS, RECORDS
from tests.sharing.hiding import pseudonym, shared
from tests.sharing.test_share import message, stdio

VALUE = "Zq8-fjW2kLp0Xv6TnB3r"


def seen(records: list[Record], **sought: Any) -> list[Leak]:
    lookout = LeakFinder(**sought)
    return [*(leak for record in records for leak in lookout.feed(record)), *lookout.close()]


def test_a_value_of_the_environment_is_found_in_every_spelling() -> None:
    value = 'a b/"ü"1'
    texts = [value, json.dumps(value), quote(value), b64encode(f"x:{value}:x".encode()).decode()]
    leaks = seen(stdio(*((0, message(note=text)) for text in texts)), environment=[("MY_VALUE", value.encode())])
    assert [(leak.kind, leak.name, leak.where, leak.option) for leak in leaks] == [
        ("environment", "MY_VALUE", "$.note", "--env MY_VALUE")
    ] * len(texts)


@pytest.mark.parametrize(
    ("params", "kind", "where", "option"),
    [
        ({"arguments": {"note": VALUE}}, "entropy", "$.arguments.note", "--path '$.arguments.note'"),
        ({"list": [1, {"odd 'name'": VALUE}]}, "entropy", r"$.list[1]['odd \'name\'']", None),
        ({"text": json.dumps({"x": VALUE})}, "entropy", "$.text", "--path '$.text'"),
        ({"a": "ghp_0123456789abcdefghij"}, "token", "$.a", ""),
        ({"password": "x"}, "member", "$.password", ""),
        ({"password": 12345678}, "number", "$.password", "--path '$.password'"),
        ({"a": "/home/alice/x"}, "personal", "$.a", "--personal"),
    ],
)
def test_a_leak_says_where_it_is_and_which_option_removes_it(params: Any, kind: str, where: str, option: str | None) -> None:
    (leak,) = seen(stdio((0, message(**params))), people=[("home folder", b"/home/alice")])
    assert (leak.kind, leak.where) == (kind, where)
    assert option is None or leak.option == option


@pytest.mark.parametrize(
    "params", [{"arguments": {"note": VALUE}}, {"list": [1, {"odd 'name'": VALUE}]}, {"password": 12345678}]
)
def test_the_path_that_a_leak_suggests_removes_it(params: Any) -> None:
    capture = stdio((0, message(**params)))
    (leak,) = seen(capture)
    paths = UserPaths(
        Ignore.of([path_at(message(**params), message(**params).index(b"Z" if b"Zq" in message(**params) else b"1234"))])
    )
    assert leak.where in leak.option.replace("'\\''", "'")
    assert seen(shared(capture, paths=paths)) == []


def test_the_pattern_that_a_leak_suggests_removes_it_and_does_not_contain_it() -> None:
    capture = stdio((2, f"hello {VALUE} there\n".encode()))
    (leak,) = seen(capture)
    assert (leak.where, leak.option) == ("text", f"--value '{pattern_for(VALUE.encode())}'")
    assert VALUE[3:] not in leak.option + leak.shown
    assert seen(shared(capture, values=(re.compile(pattern_for(VALUE.encode())),))) == []


def test_nothing_of_a_short_secret_is_shown() -> None:
    (leak,) = seen(stdio((0, message(password="hunter2"))))
    assert (leak.shown, leak.length) == ("", 7)


def test_all_that_sharing_removes_is_found_and_nothing_is_found_afterwards() -> None:
    capture: list[Record] = [
        Header(capture_id="c", wall_ns=1, monotonic_ns=1, pid=1, tapped={"argv": ["--token", "k1", f"--x={VALUE}"]}),
        Open(
            at_ns=0,
            stream=0,
            sender=CLIENT,
            name="request",
            framing="body",
            transaction=1,
            head=b"GET / HTTP/1.1\r\nCookie: a=b\r\n\r\n",
        ),
        Note(at_ns=0, topic="left", text="token=k3", extra={"secret": "k4"}, number=7),
        Frame(0, 1, 1, b'data: {"password":"k5"}\n\n', number=8),
    ]
    leaks = seen(capture)
    assert [(leak.where, leak.length) for leak in leaks] == [
        ("header", 2),
        ("header", 20),
        ("head", 1),
        ("note", 2),
        ("note", 2),
        ("text", 2),
    ]
    assert [leak.kind for leak in seen(shared(capture))] == ["entropy"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the quick brown fox jumps over the lazy dog", ""),
        ("/usr/lib/python3/dist-packages/mcp/server/streamable_http_manager.py", ""),
        ("listToolsRequestSchemaWithPagination2025", ""),
        ("a-very-long-kebab-case-name-2-of-something", ""),
        ("THE_NAME_OF_A_VARIABLE_2_IN_A_FILE", ""),
        (pseudonym(b"x").decode(), ""),
        ("0b1e2f3a-4c5d-6e7f-8091-a2b3c4d5e6f7", "taskId"),
        ("d670460b4b4aece5915caf5c68d12f560a9fe3e4", "commit"),
        ("commit d670460b4b4aece5915caf5c68d12f560a9fe3e4", ""),
        ("id: 0b1e2f3a-4c5d-6e7f-8091-a2b3c4d5e6f7_0", ""),
        (b64encode(bytes(range(256)) * 4).decode(), ""),
        (VALUE, "progressToken"),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""),
        ("2026-11-20T23:45:58.123456789Z-2026-11-21", ""),
    ],
)
def test_ids_that_are_named_and_words_are_left_alone(text: str, name: str) -> None:
    assert list(random_spans(text.encode(), name.encode())) == []


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        f"see {VALUE}.",
        "0b1e2f3a-4c5d-6e7f-8091-a2b3c4d5e6f7",
        "d670460b4b4aece5915caf5c68d12f56",
        "k3j4h5g6f7d8s9a0p1q2w3",
    ],
)
def test_random_words_are_found(text: str) -> None:
    assert len(list(random_spans(text.encode(), b""))) == 1


@given(st.binary(max_size=80) | st.text('{}[]":,\\ab1', max_size=40).map(str.encode), st.integers(0, 80))
def test_a_path_can_be_made_in_any_bytes(data: bytes, at: int) -> None:
    path = path_at(data, at)
    assert not path or Ignore.of([path])


@given(HEADERS, st.lists(RECORDS, max_size=8))
@example(Header(capture_id="", wall_ns=0, monotonic_ns=0, pid=0, tapped={}, boot_id="\ud800"), [])
def test_any_records_can_be_searched(first: Header, rest: list[Record]) -> None:
    seen([first, *rest], environment=[("A", b"abcdefgh")], people=[("user name", b"bob")])


def test_sharing_imports_from_capture_only_the_rules_of_names_and_spans() -> None:
    folder = Path(__file__).parents[2] / "mcpspy" / "sharing"
    imported = {
        line.split()[1]
        for file in folder.glob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith("from ..capture")
    }
    assert imported == {f"..capture.redaction.{name}" for name in ("arguments", "names", "redactor", "spans")}
