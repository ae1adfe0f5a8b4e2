"""Answers of mcpspy's own, by an intercept: the connection ends after them if the client said so, and goes on if it did not."""

import socket
from pathlib import Path

import pytest

from mcpspy.records import Close
from tests.cli.terminal import run
from tests.live.http.ends import Proxy, between
from tests.live.http.test_intercepts import CALL, INITIALIZED, JSON, OTHER, OTHER_RESULT, answer, body_of

ANSWERS = {
    "an error": (CALL, 'tool:search => error -32000 "no"', b"200 OK"),
    "a delayed error": (CALL, 'tool:search => error -32000 "no"\ntool:search => delay 5ms', b"200 OK"),
    "an error after a delay": (CALL, 'tool:search => delay 5ms\ntool:search => error -32000 "no"', b"200 OK"),
    "a status": (CALL, "tool:search => status 503", b"503 Service Unavailable"),
    "a status without a body": (CALL, "tool:search => status 204", b"204 No Content"),
    "a notification that is dropped": (INITIALIZED, "method:notifications/initialized => drop", b"202 Accepted"),
}
ENDING = {
    "the last request": (b"HTTP/1.1", b"Connection: close", False),
    "the last request in capitals": (b"HTTP/1.1", b"CONNECTION:  Close ", False),
    "the last request in a list": (b"HTTP/1.1", b"Connection: foo, close", False),
    "a request of HTTP/1.0": (b"HTTP/1.0", b"", False),
    "a request of HTTP/1.0 with another option": (b"HTTP/1.0", b"Connection: foo", False),
    "a request before the client's half ends": (b"HTTP/1.1", b"", True),
    "the last request before the client's half ends": (b"HTTP/1.1", b"Connection: close", True),
}
GOING_ON = {
    "a request": (b"HTTP/1.1", b"", False),
    "a request to go on": (b"HTTP/1.1", b"Connection: keep-alive", False),
    "a request with another option": (b"HTTP/1.1", b"Connection: closed, foo", False),
    "a request with another field": (b"HTTP/1.1", b"X-Connection: close", False),
    "a request of HTTP/1.0 to go on": (b"HTTP/1.0", b"Connection: Keep-Alive", False),
}


def words(intercepts: str) -> list[str]:
    return [word for text in intercepts.split("\n") for word in ("--intercept", text)]


def request(proxy: Proxy, version: bytes, field: bytes, body: bytes) -> bytes:
    fields = (JSON, field) if field else (JSON,)
    return proxy.request(b"POST /mcp", *fields, body=body).replace(b" HTTP/1.1\r\n", b" " + version + b"\r\n", 1)


@pytest.mark.grid(10)
@pytest.mark.parametrize("ending", ENDING.values(), ids=list(ENDING))
@pytest.mark.parametrize("own", ANSWERS.values(), ids=list(ANSWERS))
def test_the_connection_ends_after_the_answer_to_a_last_request(
    own: tuple[bytes, str, bytes], ending: tuple[bytes, bytes, bool], tmp_path: Path
) -> None:
    (body, intercepts, status), (version, field, is_half_closed) = own, ending
    with between(tmp_path / "x.mcpspy", *words(intercepts)) as (upstream, proxy):
        client = proxy.connect()
        client.send(request(proxy, version, field, body))
        if is_half_closed:
            client.socket.shutdown(socket.SHUT_WR)
        response = client.rest()
        assert (response.partition(b"\r\n")[0], response.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 " + status, 1)
        assert not upstream.was_called
        client.close()
        proxy.stop()
        ends = [record.how for record in proxy.found(Close)]
    assert ends == ["eof", "eof"]
    assert run("check", str(tmp_path / "x.mcpspy")).returncode == 0


@pytest.mark.grid(6)
@pytest.mark.parametrize("going_on", GOING_ON.values(), ids=list(GOING_ON))
@pytest.mark.parametrize("own", ANSWERS.values(), ids=list(ANSWERS))
def test_the_connection_goes_on_after_the_answer_to_another_request(
    own: tuple[bytes, str, bytes], going_on: tuple[bytes, bytes, bool], tmp_path: Path
) -> None:
    (body, intercepts, status), (version, field, _) = own, going_on
    with between(tmp_path / "x.mcpspy", *words(intercepts)) as (upstream, proxy):
        client = proxy.connect()
        client.send(request(proxy, version, field, body))
        assert body_of(client)[0].startswith(b"HTTP/1.1 " + status)
        client.send(request(proxy, version, field, OTHER))
        server = upstream.accept()
        assert body_of(server)[1] == OTHER
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        client.close()
        proxy.stop()
    assert run("check", str(tmp_path / "x.mcpspy")).returncode == 0
