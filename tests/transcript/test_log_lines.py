"""The line of a log that says why a program failed, and log records in JSON."""

import pytest

from mcpspy.transcript.log_lines import error_line, json_logger

NODE = b"""/app/index.js:12
    throw new TypeError('x');
    ^

TypeError: Cannot read properties of undefined (reading 'map')
    at Object.<anonymous> (/app/index.js:12:11)
    at node:internal/main/run_main_module:22:47

Node.js v20.1.0"""
GROUP = b"""  + Exception Group Traceback (most recent call last):
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |     raise ValueError("no token")
    | ValueError: no token
    +------------------------------------"""

FAILURES = {
    "Python": (
        b"Traceback (most recent call last):\n  File \"a.py\", line 3\n    x()\nKeyError: 'TOKEN'\nINFO bye",
        b"KeyError: 'TOKEN'",
    ),
    "a group of exceptions in Python": (GROUP, b"    | ValueError: no token"),
    "Node": (NODE, b"TypeError: Cannot read properties of undefined (reading 'map')"),
    "Node, with a code": (
        b"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at f",
        b"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
    ),
    "Go": (
        b"panic: assignment to nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/m.go:9 +0x1d\nexit status 2",
        b"panic: assignment to nil map",
    ),
    "Rust": (
        b"thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`",
        b"thread 'main' panicked at src/main.rs:2:5: index out of bounds",
    ),
    "Java": (
        b'Exception in thread "main" java.lang.X: no\n\tat a.B.c(B.java:3)',
        b'Exception in thread "main" java.lang.X: no',
    ),
    "the cause in Java": (
        b'Exception in thread "main" a.X: no\n\tat a.B\nCaused by: java.io.IOException: closed\n\t... 1 more',
        b"Caused by: java.io.IOException: closed",
    ),
    "a shell": (b"starting\nsh: 1: uvx: not found\nbye", b"sh: 1: uvx: not found"),
    "a complaint without an exception": (b"starting\nerror: no API key is set\nusage: server", b"error: no API key is set"),
    "a log without a failure": (b"starting\nready\nbye", b""),
}


@pytest.mark.parametrize(("log", "line"), FAILURES.values(), ids=list(FAILURES))
def test_the_line_that_matters_is_the_last_that_looks_like_an_error(log: bytes, line: bytes) -> None:
    assert error_line(log.split(b"\n")) == line


RECORDS = {
    b'{"level":30,"time":1,"pid":1,"hostname":"h","msg":"ready"}': "pino",
    b'{"name":"a","hostname":"h","pid":1,"level":30,"msg":"ready","time":"2026","v":0}': "bunyan",
    b'{"event":"ready","level":"info","timestamp":"2026"}': "structlog",
    b'{"level":"info","ts":1.5,"caller":"m.go:3","msg":"ready"}': "zap",
    b'{"time":"2026","level":"INFO","msg":"ready"}': "slog or logrus",
    b'{"name":"agent","time":"2026","level":30,"msg":"ready"}': "pino",
    b'{"severity":"INFO","message":"ready"}': "a record of a logger",
}


@pytest.mark.parametrize(("line", "name"), RECORDS.items())
def test_a_log_record_in_json_is_known_by_its_members(line: bytes, name: str) -> None:
    assert name in json_logger(line)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","level":30,"time":1,"pid":1,"hostname":"h"}',
        b'{"message":"hi"}',
        b'{"level":1}',
        b"{",
        b"level msg",
        b"[1]",
    ],
)
def test_json_that_is_no_log_record_has_no_logger(line: bytes) -> None:
    assert json_logger(line) == ""
