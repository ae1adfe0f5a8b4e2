"""Shared records: no secret is left in any of them, in any spelling, and nothing else changes."""

import gzip
import json
import zlib
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.file.reader import Reader
from mcpspy.records import CLIENT, SERVER, Damage, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record
from mcpspy.sharing import deltas as whole
from tests.capture.strategies import HEADERS, RECORDS
from tests.conftest import ROOT
from tests.sharing.hiding import held, lines, marked, pseudonym, shared

SECRET = 'Tr0ub4dor "&" 3'
PSEUDONYM = pseudonym(SECRET.encode())


def header(**members: Any) -> Header:
    facts = {
        "capture_id": "c",
        "wall_ns": 1,
        "monotonic_ns": 1,
        "pid": 1,
        "tapped": {"transport": "stdio", "argv": [], "env": []},
    }
    return Header(**{**facts, **members})


def stdio(*frames: tuple[int, bytes]) -> list[Record]:
    """Make a capture of stdio with these frames."""
    opens: list[Record] = [
        Open(at_ns=0, stream=at, sender=SERVER, name=name) for at, name in enumerate(("stdin", "stdout", "stderr"))
    ]
    return [header(), *opens, *(Frame(stream, 1, 1, data) for stream, data in frames)]


def message(**params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}).encode() + b"\n"


def frames(records: list[Record]) -> list[Frame]:
    return [record for record in records if isinstance(record, Frame)]


def test_a_secret_that_is_recognized_in_one_place_is_replaced_in_every_other() -> None:
    spelled = {
        "plain": f"log in with {SECRET}, please",
        "json": json.dumps({"said": SECRET}),
        "percent": f"https://h/login?who=me&how={quote(SECRET)}",
        "base64": b64encode(f"me:{SECRET}".encode()).decode(),
        SECRET: 1,
    }
    capture = stdio(
        (2, f"before anybody knew: {SECRET}\n".encode()),
        (1, message(**spelled)),
        (0, message(password=SECRET)),
    )
    capture.append(Note(at_ns=2, topic="left", text=f"about {SECRET}", extra={"more": [{"x": SECRET}]}))
    capture.append(Exit(at_ns=2, pid=1, error=SECRET, descendants=({"pid": 2, "name": SECRET},)))
    assert held(lines(capture), [SECRET]) == [SECRET]
    assert held(lines(shared(capture)), [SECRET]) == []
    assert lines(shared(capture)).count(PSEUDONYM) == 10


def test_replacements_are_listed_with_their_offsets() -> None:
    (_, _, _, _, frame) = shared(stdio((0, message(a="ü", password="x", token=["y"]))))
    assert isinstance(frame, Frame)
    assert [(frame.data[at : at + length], kind) for at, length, kind in frame.redacted] == [
        (pseudonym(b"x"), "key"),
        (pseudonym(b"y"), "key"),
    ]


def test_the_command_and_the_rest_of_the_header_are_shared_too() -> None:
    tapped = {
        "transport": "stdio",
        "argv": [
            "serve",
            "--api-key",
            "k1",
            "--token=k2",
            "-p",
            "9",
            "https://u:pw@h/",
            "https://h/0123456789abcdef0123456789abcdef/mcp",
        ],
        "env": ["API_KEY"],
    }
    made = shared([header(tapped=tapped, label="k1-xyz sk-abcdefghijklmnop12", boot_id="0123", cwd="/x")])[0]
    assert isinstance(made, Header)
    shown = json.loads(
        marked(json.dumps([made.tapped["argv"], made.tapped["env"], made.label, made.boot_id, made.cwd]).encode())
    )
    assert shown == [
        ["serve", "--api-key", "R", "--token=R", "-p", "9", "https://u:R@h/", "https://h/R/mcp"],
        ["API_KEY"],
        "k1-xyz R",
        "R",
        "/x",
    ]
    assert made.redaction == "shared"


HEAD = (
    b"POST /mcp?api_key=k%%31&x=1 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer tok-123456\r\nCookie: sid=k2\r\n"
    b"Mcp-Param-Note: =?base64?%b?=\r\nMcp-Name: tok-123456\r\nContent-Length: 5\r\n\r\n" % b64encode(b"tok-123456")
)  # fmt: skip


def test_heads_are_shared_as_they_are_redacted_and_copies_of_arguments_too() -> None:
    capture: list[Record] = [
        header(),
        Open(at_ns=0, stream=0, sender=CLIENT, name="request", framing="body", transaction=1, head=HEAD, forwarded=HEAD),
    ]
    made = shared(capture)[1]
    assert isinstance(made, Open)
    assert marked(made.head) == (
        b"POST /mcp?api_key=R&x=1 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer R\r\nCookie: sid=R\r\n"
        b"Mcp-Param-Note: =?base64?%b?=\r\nMcp-Name: R\r\nContent-Length: 5\r\n\r\n" % b64encode(pseudonym(b"tok-123456"))
    )  # fmt: skip
    assert made.forwarded == made.head
    assert {kind for _, _, kind in made.redacted} == {"key", "authorization", "cookie", "value"}


def event_stream(*frames: bytes, framing: Any = "sse", head: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> list[Record]:
    opened = Open(at_ns=0, stream=0, sender=SERVER, name="response", framing=framing, transaction=1, head=head)
    return [header(), opened, *(Frame(0, 1, 1, data, chunks=(len(data),)) for data in frames)]


@pytest.mark.parametrize(
    ("event", "made"),
    [
        (b'data: {"password":"x"}\n\n', b'data: {"password":"R"}\n\n'),
        (b'id: 7\r\ndata: {"token":\r\ndata:"x"}\r\nx: 1\r\n\r\n', b'id: 7\r\ndata: {"token":\r\ndata:"R"}\r\nx: 1\r\n\r\n'),
        (b'\xef\xbb\xbfdata: {"token":"x"}\n\n', b'\xef\xbb\xbfdata: {"token":"R"}\n\n'),
        (b": token=abc\n\n", b": token=R\n\n"),
        (b"data: -----BEGIN PRIVATE KEY-----\ndata: ab\ndata: -----END PRIVATE KEY-----\ndata: x\n\n", b"data: R\ndata: x\n\n"),
        (b"event: endpoint\ndata: /m?sessionId=s1\n\n", b"event: endpoint\ndata: /m?sessionId=R\n\n"),
        (b"event: endpoint\ndata: /m/0123456789abcdef0123456789abcdef\n\n", b"event: endpoint\ndata: /m/R\n\n"),
        (b'data: {"password":"x', b'data: {"password":"R'),
    ],
)  # fmt: skip
def test_events_are_shared_line_by_line(event: bytes, made: bytes) -> None:
    assert marked(frames(shared(event_stream(event)))[0].data) == made


def test_chunk_sizes_stay_those_of_the_wire() -> None:
    event = b'data: {"password":"x"}\n\n'
    assert frames(shared(event_stream(event)))[0].chunks == (len(event),)


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_the_pseudonym_of_a_secret_across_parts_is_in_the_part_in_which_it_ends(size: int) -> None:
    data = message(a="b" * 30, password=SECRET, c="d" * 30)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    capture: list[Record] = [header()]
    for at, part in enumerate(parts, 1):
        capture += [Frame(0, at, at, part, at < len(parts)), Note(at_ns=at, topic="left", text="between")]
    made = shared(capture)
    joined = b"".join(frame.data for frame in frames(made))
    assert joined == message(a="b" * 30, password=PSEUDONYM.decode(), c="d" * 30)
    assert [frame for frame in frames(made) if not frame.data] == []
    assert [(frame.data[at : at + length], kind) for frame in frames(made) for at, length, kind in frame.redacted] == [
        (PSEUDONYM, "key")
    ]
    assert [record.at_ns for record in made] == sorted(record.at_ns for record in made)


def test_only_the_length_is_kept_of_a_frame_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_HELD_BYTES", 100)
    parts = [b'{"password":"' + b"x" * 60, b"y" * 60, b"z" * 60, b'"}\n']
    capture: list[Record] = [
        header(),
        *(Frame(0, at, at, part, at < 3) for at, part in enumerate(parts)),
        Frame(0, 9, 9, b"{}\n"),
    ]
    made = frames(shared(capture))
    assert [(frame.data, frame.length) for frame in made] == [(b"", 73), (b"", 60), (b"", 60), (b"", 3), (b"{}\n", 3)]


@pytest.mark.parametrize(
    ("coding", "pack", "unpack"),
    [("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)],
)
def test_a_compressed_body_is_compressed_again(coding: str, pack: Any, unpack: Any) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\n\r\n" % coding.encode()
    made = frames(shared(event_stream(pack(message(password=SECRET)), pack(message(a="b")), framing="body", head=head)))
    assert unpack(made[0].data) == message(password=PSEUDONYM.decode())
    assert made[1].data == pack(message(a="b"))


@pytest.mark.parametrize("coding", [b"br", b"unheard-of"])
def test_only_the_length_is_kept_of_a_body_that_cannot_be_compressed_again(coding: bytes) -> None:
    import brotli  # type: ignore[import-untyped]  # it comes without types

    data = brotli.compress(message(password=SECRET))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\n\r\n" % coding
    (made,) = frames(shared(event_stream(data, framing="body", head=head)))
    assert (made.data, made.length) == (b"", len(data))


@pytest.mark.parametrize("cut", range(1, 40))
def test_bytes_that_waited_for_their_end_hold_no_beginning_of_a_secret(cut: int) -> None:
    whole_line = message(note=f"it is {SECRET}")
    at = whole_line.index(b"Tr0")
    secret = json.dumps(SECRET)[1:-1].encode()
    data = whole_line[: at + min(cut, len(secret))]
    capture = [
        *stdio(),
        Partial(at_ns=1, stream=0, first_ns=1, data=data),
        Frame(0, 2, 2, whole_line),
        Frame(1, 3, 3, message(password=SECRET)),
    ]
    made = next(record for record in shared(capture) if isinstance(record, Partial))
    assert secret[:4] not in made.data


def test_damage_becomes_a_gap_that_holds_nothing() -> None:
    reader = Reader()
    file = lines([header(), Note(at_ns=1, topic="left", text="x"), End(at_ns=2, frames=0, bytes=0)])
    broken = file.replace(b'"left"', b'"lost"')
    records = [*reader.feed(broken), *reader.close()]
    assert any(isinstance(record, Damage) for record in records)
    (gap,) = [record for record in shared(records) if isinstance(record, Gap)]
    assert (gap.frames, b"lost" in lines([header(), gap])) == (1, False)


def test_the_digest_of_bytes_that_were_not_kept_is_left_out() -> None:
    (made,) = frames(shared([header(), Frame(0, 1, 1, b"", length=9, sha256="ab" * 32)]))
    assert (made.length, made.sha256) == (9, "")


@given(HEADERS, st.lists(RECORDS, max_size=8))
def test_any_records_can_be_shared_and_shared_again_without_a_change(first: Header, rest: list[Record]) -> None:
    once = shared([first, *rest])
    again = shared(once)
    assert lines(again) == lines(once)


@given(HEADERS, st.lists(RECORDS, max_size=8))
def test_a_shared_capture_is_a_capture(first: Header, rest: list[Record]) -> None:
    first.format = first.min_reader = 1
    reader = Reader()
    read = [*reader.feed(lines(shared([first, *rest]))), *reader.close()]
    assert [record for record in read if isinstance(record, Damage) and record.reason != "number"] == []


SECRETIVE = {"question", "stateless"}
"""Captures in which a server has its client keep a secret for it."""

PLAIN = [path for path in sorted((ROOT / "captures").glob("*.mcpspy")) if path.stem not in SECRETIVE]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_in_our_captures_only_pseudonyms_change(path: Path) -> None:
    reader = Reader()
    records = [*reader.feed(path.read_bytes()), *reader.close()]
    before, after = lines(records).splitlines()[1:], lines(shared(records)).splitlines()[1:]
    crc = len(b'"crc":"01234567"}')
    assert [marked(line[:-crc]) for line in after] == [marked(line[:-crc]) for line in before]


def url_base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def from_base64(text: str) -> str:
    return urlsafe_b64decode(text.translate(str.maketrans("+/", "-_")) + "=" * (-len(text) % 4)).decode()


SPELLINGS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "prose": (lambda text: f"it is {text}, as he said", lambda text: text.removeprefix("it is ").removesuffix(", as he said")),
    "json": (lambda text: json.dumps({"a": [text], "n": 1}), lambda text: json.loads(text)["a"][0]),
    "json as it is": (lambda text: json.dumps({"a": text}, ensure_ascii=False, indent=1), lambda text: json.loads(text)["a"]),
    "json in a log": (lambda text: f"got {json.dumps([{'x': text}])} from it", lambda text: json.loads(text[4:-8])[0]["x"]),
    "a json text": (json.dumps, json.loads),
    "percent signs": (lambda text: f"https://h/x?q={quote(text, safe='')}&r=1", lambda text: unquote(text[14:-4])),
    "base64": (lambda text: b64encode(f"as said: {text}".encode()).decode(), lambda text: from_base64(text)[9:]),
    "base64 for URLs": (lambda text: f"h/{url_base64(f'{text} it was said')}/i", lambda text: from_base64(text[2:-2])[:-12]),
}
"""Ways to spell a text, and to read it again."""

SECRETS = st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", codec="utf-8"), min_size=10, max_size=20).map(
    lambda text: f"S3cr{text}x"
)


@given(SECRETS, st.lists(st.sampled_from(sorted(SPELLINGS)), max_size=3))
@example('a b/"ü"\\1&x=y%20z+', ["json", "base64", "json in a log"])
def test_a_secret_is_replaced_in_every_spelling_of_every_spelling_and_nothing_else_is(
    secret: str, spellings: list[str]
) -> None:
    spelled = secret
    for name in spellings:
        spelled = SPELLINGS[name][0](spelled)
    made = frames(shared(stdio((0, message(password=secret)), (1, message(note=spelled)))))[1].data
    text = json.loads(made)["params"]["note"]
    for name in reversed(spellings):
        text = SPELLINGS[name][1](text)
    assert text == pseudonym(secret.encode()).decode()


@given(SECRETS, st.lists(st.sampled_from(sorted(SPELLINGS)), max_size=3))
@example("S3cr/?b;=_:-#%{€#[{]]a#%x", ["a json text", "percent signs", "base64"])
@example('S3cr@{*,@"1 +~{{]$%x', ["prose", "a json text"])
@example("S3cr<-ü|>_1{)a?x", ["json in a log", "json in a log", "json in a log"])
def test_a_secret_under_a_secret_name_is_removed_whole_however_its_text_is_spelled(secret: str, spellings: list[str]) -> None:
    spelled = json.dumps({"n": 1, "password": secret})
    for name in spellings:
        spelled = SPELLINGS[name][0](spelled)
    text = json.loads(frames(shared(stdio((1, message(note=spelled)))))[0].data)["params"]["note"]
    for name in reversed(spellings):
        text = SPELLINGS[name][1](text)
    escaped = json.dumps(secret)[1:-1]
    assert "redacted-" in text
    assert [escaped[at : at + 6] for at in range(len(escaped) - 6) if escaped[at : at + 6] in text] == []
