"""OAuth's bodies in pieces: however they are cut, the same bytes reach the disk, without secrets."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.redaction.names import is_oauth_member
from mcpspy.capture.redaction.oauth_bodies import MAX_SECRET_BYTES, MAX_UNDECIDED_BYTES
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.spans import member_spans
from mcpspy.records import PSEUDONYM_PREFIX as PREFIX
from tests.wire.cutting import CUTS, reads

REDACTOR = Redactor(b"key")
SECRET = b"s3cr3t-0123456789abcdef"
NAME = REDACTOR.pseudonym(SECRET)
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
ENOUGH = b"x" * MAX_UNDECIDED_BYTES

JSON_TEXT = st.lists(
    st.sampled_from(
        [
            b'"',
            b"\\",
            b":",
            b" ",
            b"{",
            b"}",
            b",",
            b"access_token",
            b"id_token",
            b"scope",
            b'\\"',
            b"\\u0041",
            b"\n",
            b"x" * 70,
            b"\xff",
        ]
    ),
    max_size=40,
).map(lambda words: b'{"access_token":"' + b"".join(words))
FORM_TEXT = st.lists(
    st.sampled_from([b"&", b"=", b";", b"?", b"#", b"%41", b"%", b"+", b"token", b"code", b"scope", b"password", b"x" * 300]),
    max_size=40,
).map(b"".join)


def passed(pieces: list[bytes], content_type: str, *, sealed: bool = False) -> tuple[bytes, list[tuple[int, int, str]]]:
    """Return the bytes that are passed on of a body in these pieces, and the ranges of its pseudonyms."""
    body_filter = REDACTOR.body_filter(content_type, is_sealed=sealed)
    data, ranges = b"", []
    for piece, piece_ranges in (*map(body_filter.feed, pieces), body_filter.close()):
        ranges += [(len(data) + at, length, kind) for at, length, kind in piece_ranges]
        data += piece
    return data, ranges


@given(JSON_TEXT, CUTS)
def test_json_is_redacted_the_same_however_it_is_cut(data: bytes, sizes: list[int]) -> None:
    assert passed(reads(data, sizes), JSON) == passed([data], JSON)


@given(
    st.lists(st.sampled_from([b'"token":{', b'"value":"x"', b'"n":[', b'"a":', b'"', b"{", b"}", b"[", b"]", b",", b"1"])), CUTS
)
def test_values_inside_of_secret_members_are_redacted_the_same_however_they_are_cut(
    words: list[bytes], sizes: list[int]
) -> None:
    data = b"{" + b"".join(words)
    assert passed(list(reads(data, sizes)), JSON) == passed([data], JSON)


@given(FORM_TEXT, CUTS)
def test_a_form_is_redacted_the_same_however_it_is_cut(data: bytes, sizes: list[int]) -> None:
    assert passed(reads(data, sizes), FORM) == passed([data], FORM)


@given(st.binary(), CUTS)
def test_a_compressed_body_is_one_secret_however_it_is_cut(data: bytes, sizes: list[int]) -> None:
    expected = (REDACTOR.pseudonym(data), [(0, len(NAME), "token")]) if data else (b"", [])
    assert passed(reads(data, sizes), JSON, sealed=True) == expected


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 1_000_003])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (JSON, b'{"scope":"a b","access_token" : "%b","more":{"id_token":"%b"}}'),
        (JSON, b'{"note":"say \\"access_token\\": no","refresh_token"\n:\t"%b", "code": "%b'),
        (FORM, b"grant_type=x&code=%b&state=1&refresh%%5Ftoken=%b"),
    ],
)
def test_no_part_of_a_secret_that_is_cut_reaches_the_disk(content_type: str, body: bytes, step: int) -> None:
    data = body.replace(b'"code": "%b', b'"password": "%b') % (SECRET, SECRET)
    redacted, ranges = passed(reads(data, [step]), content_type)
    assert SECRET not in redacted
    assert redacted.count(NAME) == 2
    assert [redacted[at : at + length] for at, length, _ in ranges if redacted[at : at + length] == NAME] == [NAME, NAME]


@given(JSON_TEXT)
def test_the_filter_finds_the_same_members_as_the_search_of_the_whole(data: bytes) -> None:
    """`spans` reads JSON on command lines, all at once: both have to agree, except on a backslash at the very end."""
    secrets = [secret for start, end, _, secret in member_spans(data.rstrip(b"\\"), is_oauth_member) if start < end]
    redacted, ranges = passed([data.rstrip(b"\\")], JSON)
    assert [redacted[at : at + length] for at, length, _ in ranges] == [REDACTOR.pseudonym(secret) for secret in secrets]


@pytest.mark.parametrize("at", [0, 1, 10, 20, MAX_UNDECIDED_BYTES - 100])
def test_json_rpc_passes_untouched_wherever_its_mark_is(at: int) -> None:
    data = b'{"result":{"x":"%b"},"access_token":"x","jsonrpc":"2.0"}' % (b"x" * at)
    assert passed(reads(data, [MAX_UNDECIDED_BYTES // 3]), JSON) == (data, [])


def test_a_secret_after_a_mebibyte_is_a_pseudonym() -> None:
    data = b'{"x":"%b","access_token":"%b"}' % (ENOUGH, SECRET)
    middle = data.index(SECRET) + 3
    assert passed([data[:middle], data[middle:]], JSON)[0] == data.replace(SECRET, NAME)


def test_bytes_that_are_no_secret_are_passed_on_at_once() -> None:
    body_filter = REDACTOR.body_filter(JSON, may_be_rpc=True)
    data, _ = body_filter.feed(b'{"x":"' + ENOUGH)
    assert len(data) > MAX_UNDECIDED_BYTES
    assert body_filter.feed(b"y" * 1_000)[0] == b"y" * 1_000


@pytest.mark.parametrize(("content_type", "begin"), [(FORM, b"token="), (JSON, b'{"x":"' + ENOUGH + b'","access_token":"')])
def test_a_bounded_number_of_bytes_is_held_of_a_secret_without_an_end(content_type: str, begin: bytes) -> None:
    long = passed([begin, *[b"s" * MAX_SECRET_BYTES] * 3], content_type)
    assert long == passed([begin, b"s" * MAX_SECRET_BYTES], content_type)
    assert b"ssss" not in long[0]
    assert PREFIX.encode() in long[0]


def test_a_body_after_the_first_is_redacted_as_the_first() -> None:
    body_filter = REDACTOR.body_filter(JSON, may_be_rpc=True)
    for data in (b'{"jsonrpc":"2.0"}', json.dumps({"access_token": SECRET.decode()}).encode()):
        redacted = body_filter.feed(data)[0] + body_filter.close()[0]
    assert redacted == b'{"access_token": "%b"}' % NAME


def test_a_compressed_body_is_not_passed_on_before_its_end() -> None:
    body_filter = REDACTOR.body_filter(JSON, is_sealed=True)
    assert body_filter.feed(zlib.compress(SECRET)) == (b"", ())
    assert body_filter.close()[0].startswith(PREFIX.encode())


JWT = b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        (b'{"refresh":"%b","access":"%b"}' % (JWT, JWT), JWT),
        (b'{"data":"ghp_0123456789abcdefghij"}', b"ghp_0123456789abcdefghij"),
        (b'{"grant_type":"authorization_code","code":"e202e8c9-0990-40af-855f-ff8f872b1ec6"}', b"e202e8c9-0990"),
        (b'{"verification_uri_complete":"https://h/device?user_code=WDJB-MJHT"}', b"WDJB-MJHT"),
        (b'{"token":{"type":"x","value":"s3cret"}}', b"s3cret"),
        (b'{"access_token" : {"meta":{"a":[{"b":1}]}, "raw":"s3cret"}}', b"s3cret"),
        (b'{"registration_client_uri":"https:\\/\\/h\\/register\\/7?token=s3cret"}', b"s3cret"),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_secret_is_known_by_its_looks_or_in_a_url(body: bytes, secret: bytes, step: int) -> None:
    redacted, _ = passed(list(reads(body, [step])), JSON)
    assert secret not in redacted
    assert b"redacted-" in redacted


@pytest.mark.parametrize(
    "body",
    [
        b'{"code":"invalid_grant","scope":"openid profile"}',
        b'{"token_endpoint":"https://h/0b2c1d3e-0990-40af-855f-ff8f872b1ec6/token"}',
        b'{"a":"%b"}' % (b"x" * (MAX_SECRET_BYTES + 10)),
        b'{"token":{"type":"Bearer","expires":"2026"},"value":"kept"}',
        b'{"usage":{"value":"kept"},"tokens":3}',
        b'{"error_description":"see https:\\/\\/h\\/help?topic=1',
    ],
)
@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_a_text_that_is_no_secret_is_kept(body: bytes, step: int) -> None:
    assert passed(list(reads(body, [step])), JSON) == (body, [])
