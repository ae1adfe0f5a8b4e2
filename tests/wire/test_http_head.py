"""HTTP heads: what is read in them, and every shape that is refused, with the reason that a person gets to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.http_head import (
    MAX_HEAD_BYTES,
    RequestHead,
    ResponseHead,
    request_head,
    request_objection,
    response_head,
    response_objection,
)

REQUEST = b"POST /mcp?a=b HTTP/1.1\r\nHOST: a:1\r\nX-Two: 1\r\nContent-Length:  12 \r\nx-two:\t2\r\n\r\n"
RESPONSE = b"HTTP/1.0 404 Not  Found\r\nContent-Type: text/plain\r\n\r\n"


def request(raw: bytes) -> RequestHead:
    head = request_head(raw)
    assert isinstance(head, RequestHead), head
    return head


def response(raw: bytes, method: bytes = b"GET") -> ResponseHead:
    head = response_head(raw, method)
    assert isinstance(head, ResponseHead), head
    return head


def test_a_request_line_is_read() -> None:
    head = request(REQUEST)
    assert (head.method, head.target, head.version) == (b"POST", b"/mcp?a=b", b"HTTP/1.1")


def test_a_status_line_is_read() -> None:
    head = response(RESPONSE)
    assert (head.status, head.reason, head.version) == (404, b"Not  Found", b"HTTP/1.0")


@pytest.mark.parametrize("line", [b"HTTP/1.1 200", b"HTTP/1.1 200 "])
def test_a_status_needs_no_reason(line: bytes) -> None:
    head = response(line + b"\r\n\r\n")
    assert (head.status, head.reason) == (200, b"")


def test_fields_keep_their_order_and_case() -> None:
    assert request(REQUEST).fields == [(b"HOST", b"a:1"), (b"X-Two", b"1"), (b"Content-Length", b"12"), (b"x-two", b"2")]


def test_a_field_is_found_in_any_case() -> None:
    assert request(REQUEST).value(b"host") == b"a:1"


def test_the_first_of_several_fields_is_found() -> None:
    assert request(REQUEST).value(b"x-two") == b"1"


def test_a_field_that_is_not_there_is_none() -> None:
    assert response(RESPONSE).value(b"type") is None


def test_the_length_is_that_of_the_content_length() -> None:
    head = request(REQUEST)
    assert (head.ends_by, head.length) == ("length", 12)


FORMS = [b"GET http://evil/ HTTP/1.1", b"CONNECT evil:443 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET //evil/ HTTP/1.1"]


@pytest.mark.parametrize("line", FORMS)
def test_a_target_of_whatever_form_is_not_refused(line: bytes) -> None:
    assert request(line + b"\r\nHost: a\r\n\r\n").target == line.split(b" ")[1]


@pytest.mark.parametrize("value", [b"caf\xe9", b"a\tb", b"caf\xc3\xa9", b""])
def test_values_may_hold_what_rfc_9110_lets_them_hold(value: bytes) -> None:
    assert request(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + value + b"\r\n\r\n").value(b"x") == value


def test_http_1_0_needs_no_host() -> None:
    assert request(b"GET / HTTP/1.0\r\n\r\n").ends_by == "head"


HOST = b"Host: a\r\n"

REFUSED_REQUESTS = [
    (b"GET / HTTP/1.1\nHost: a\n\r\n\r\n", "a line ends in LF without CR"),
    (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", "a line ends in LF without CR"),
    (b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "a field is folded over two lines"),
    (b"GET / HTTP/1.1\r\n folded\r\nHost: a\r\n\r\n", "a field is folded over two lines"),
    (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "white space before a colon"),
    (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n", "CR or NUL within a line"),
    (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n", "CR or NUL within a line"),
    (b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n", "CR or NUL within a line"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "more than one Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\ncontent-length: 1\r\n\r\n", "more than one Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1, 1\r\n\r\n", "malformed: Invalid character in Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", "malformed: Invalid character in Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x1\r\n\r\n", "malformed: Invalid character in Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length:\r\n\r\n", "malformed: Empty Content-Length"),
    (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 18446744073709551616\r\n\r\n", "malformed: Content-Length overflow"),
    (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "both Content-Length and Transfer-Encoding",
    ),
    (
        b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n",
        "both Content-Length and Transfer-Encoding",
    ),
    *(
        (
            b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: " + codings + b"\r\n\r\n",
            "an ambiguous Transfer-Encoding",
        )
        for codings in (
            b"gzip",
            b"chunked, gzip",
            b"chunked, chunked",
            b"xchunked",
            b"chunked;q=1",
            b"",
            b"chunked,",
            b"xchunked, chunked",
            b"identity, chunked",
        )
    ),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "a Transfer-Encoding in HTTP/1.0"),
    (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", "more than one Host"),
    (b"GET / HTTP/1.1\r\n\r\n", "no Host"),
    (b"GET / HTTP/1.1\r\n: a\r\n\r\n", "malformed: Invalid header token"),
    (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "malformed: Invalid header token"),
    (b"GET / HTTP/1.1\r\nHo\xc3\xa4st: a\r\n\r\n", "malformed: Invalid header token"),
    (b"PRI * HTTP/2.0\r\n\r\n", "no HTTP/1.x request line"),
    (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", "malformed: Invalid HTTP version"),
    (b"GET / RTSP/1.0\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"GET /\r\n\r\n", "no HTTP/1.x request line"),
    (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", "malformed: Expected CRLF after version"),
    (b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b" GET / HTTP/1.1\r\n" + HOST + b"\r\n", "no HTTP/1.x request line"),
    (b"\x16\x03\x01\x02\r\n\r\n", "it begins like TLS, and HTTP without TLS is spoken here"),
    (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "the head is larger than 64 KiB"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED_REQUESTS, ids=[repr(row[0][:70]) for row in REFUSED_REQUESTS])
def test_a_request_that_could_be_read_in_two_ways_is_refused(raw: bytes, reason: str) -> None:
    assert request_head(raw) == reason


REFUSED_RESPONSES = [
    (b"HTTP/1.1 200 OK\nX: y\r\n\r\n", "a line ends in LF without CR"),
    (b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", "a field is folded over two lines"),
    (b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "white space before a colon"),
    (b"HTTP/1.1 200 OK\r\nX: y\0\r\n\r\n", "CR or NUL within a line"),
    (b"HTTP/1.1 200 O\0K\r\n\r\n", "CR or NUL within a line"),
    (b"HTTP/1.1 200 O\rK\r\n\r\n", "CR or NUL within a line"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "more than one Content-Length"),
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "both Content-Length and Transfer-Encoding",
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        "both Content-Length and Transfer-Encoding",
    ),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "an ambiguous Transfer-Encoding"),
    (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "a Transfer-Encoding in HTTP/1.0"),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "a 101 that does not say what it switches to"),
    (b"HTTP/1.1 20 OK\r\n\r\n", "malformed: Invalid status code"),
    (b"HTTP/1.1 099 OK\r\n\r\n", "no HTTP/1.x status line"),
    (b"HTTP/2.0 200 OK\r\n\r\n", "no HTTP/1.x status line"),
    (b"\nHTTP/1.1 200 OK\r\n\r\n", "no HTTP/1.x status line"),
    (b"ICY 200 OK\r\n\r\n", "no HTTP/1.x status line"),
    (b"RTSP/1.0 200 OK\r\n\r\n", "no HTTP/1.x status line"),
    (b"<html>\r\n\r\n", "no HTTP/1.x status line"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "the head is larger than 64 KiB"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED_RESPONSES, ids=[repr(row[0][:70]) for row in REFUSED_RESPONSES])
def test_a_response_that_could_be_read_in_two_ways_is_refused(raw: bytes, reason: str) -> None:
    assert response_head(raw, b"GET") == reason


@pytest.mark.parametrize("begun", [b"\x16\x03\x01", b"GET / HTTP/1.1\nHost: a\n\n", b"x" * (MAX_HEAD_BYTES + 1)])
def test_what_can_never_become_a_request_is_refused_before_its_end(begun: bytes) -> None:
    assert request_objection(begun)


@pytest.mark.parametrize("begun", [b"HTTQ", b"HTTP/2", b"HTTP/1.1 200 OK\nX: y\n\n"])
def test_what_can_never_become_a_response_is_refused_before_its_end(begun: bytes) -> None:
    assert response_objection(begun)


def test_nothing_that_may_become_a_sound_head_is_refused_before_its_end() -> None:
    assert not any(request_objection(REQUEST[:size]) for size in range(1, len(REQUEST)))
    assert not any(response_objection(RESPONSE[:size]) for size in range(1, len(RESPONSE)))


LINES = st.lists(
    st.binary(max_size=8) | st.sampled_from([b"Host: a", b"Content-Length: 1", b"X: \n", b"\r", b"A:b"]), max_size=5
)


def head_of(lines: list[bytes]) -> bytes:
    data = b"\r\n".join(lines) + b"\r\n\r\n"
    return data[: data.index(b"\r\n\r\n") + 4]


@given(LINES)
def test_a_sound_request_has_no_bare_line_end_no_nul_and_a_colon_in_every_line(lines: list[bytes]) -> None:
    head = request_head(head_of([b"GET / HTTP/1.1", *lines]))
    if isinstance(head, RequestHead):
        assert not head.raw.replace(b"\r\n", b"").strip(b"\t\x20-\x7e\x80-\xff").count(b"\0")
        assert head.raw.count(b"\n") == head.raw.count(b"\r") == head.raw.count(b"\r\n")
        assert len(head.fields) == head.raw.count(b"\r\n") - 2


@given(st.binary(), st.sampled_from([b"GET", b"HEAD", b"CONNECT"]))
def test_arbitrary_bytes_are_a_head_or_a_reason_and_raise_nothing(data: bytes, method: bytes) -> None:
    for line in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 ", b"GET / HTTP/1.1\r\nHost: a\r\n", b"GET /"):
        raw = head_of([line + data])
        assert isinstance(request_head(raw), RequestHead | str)
        assert isinstance(response_head(raw, method), ResponseHead | str)
