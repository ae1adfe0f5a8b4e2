"""Lines of a server's log: the one that says why a program failed, and records in JSON by the library that writes them."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from ..lazy_pattern import lazy_pattern
from ..wire.json_spans import members

MAX_LETTERS: Final = 400
"""So many bytes of a line are looked at."""

_EXCEPTION: Final = lazy_pattern(
    rb"""[\s|]*                                                               # the tree of an exception group
    (?: (?:Uncaught\ (?:\(in\ promise\)\ )?|Unhandled\ exception\W+|Caused\ by:\ |\[cause\]:\ |error:\ Uncaught\ )?
        (?:[A-Za-z_$][\w$]*(?:\.|::))* \w*(?:Error|Exception|ExceptionGroup|Interrupt|SystemExit) (?:\ \[\w+\])? (?::|\s*$|\ \()
      | panic:\ | fatal\ error:\ | thread\ '.*'\ .*panicked\ at\ | Exception\ in\ thread\ | .*Segmentation\ fault
      | (?:[\w./-]+:\ )+(?:line\ \d+:\ |\d+:\ )?.*(?:command\ not\ found|:\ not\ found)\s*$
    )""",
    re.VERBOSE,
)
"""Python, JavaScript, Java and .NET; Go; Rust; Java's threads; shells."""

_COMPLAINT: Final = lazy_pattern(
    rb"\b(?:err(?:or|!)|fatal|failed|cannot|can't|could not|not found|no such file|denied|refused|already in use)(?![\w-])",
    re.IGNORECASE,
)


def error_line(lines: Sequence[bytes]) -> bytes:
    """Return the last line that an exception or a panic writes; without one, the last that complains; empty if none does.

    Rust writes the text of a panic on the line below; in a box it is below the title.
    """
    cut = [plain_line(line) for line in lines]
    for line, below in reversed([*pairwise(cut), *((line, b"") for line in cut[-1:])]):
        if _EXCEPTION.match(line):
            is_title = line.endswith(b":") and (b"panicked at" in line or line[:-1].isalpha())
            return b"%b %b" % (line, below.strip()) if is_title else line
    return next((line for line in reversed(cut) if _COMPLAINT.search(line)), b"")


_FRAME: Final = lazy_pattern(rb"(?:\xe2[\x94\x95][\x80-\xbf])+")
_has_word: Final = lazy_pattern(rb"[\w\x80-\xff]")


def plain_line(line: bytes) -> bytes:
    """Return the beginning of a line, without the box that Python's rich draws around it; empty if it is only part of a box."""
    line = line[:MAX_LETTERS].rstrip()
    if b"\xe2\x94" not in line and b"\xe2\x95" not in line:
        return line
    text = _FRAME.sub(b"", line).strip()
    is_title = line.startswith((b"\xe2\x95\xad", b"\xe2\x94\x8c"))
    return (text + b":" if is_title else text) if _has_word.search(text) else b""


_WRAPPED: Final = lazy_pattern(rb"[ ]{20,}(?!DEBUG|INFO|WARNING|ERROR|CRITICAL|\xe2[\x94\x95])\S")
_SOURCE: Final = lazy_pattern(rb"[ ]+[\w.-]+:\d+$")
"""The place in the program, which stands at the end of the first line of a record."""


def unwrapped(lines: Iterable[bytes]) -> list[bytes]:
    """Join the lines of each record that Python's rich wraps: it indents them deeper than others do, to the column of the text."""
    records: list[bytes] = []
    for line in lines:
        if records and _WRAPPED.match(line):
            records[-1] = b"%b %b" % (_SOURCE.sub(b"", records[-1][:MAX_LETTERS].rstrip()), line[:MAX_LETTERS].strip())
        else:
            records.append(line)
    return records


_TEXTUAL: Final = "slog or logrus"

_LOGGERS: Final[tuple[tuple[str, frozenset[str]], ...]] = tuple(
    (name, frozenset(names.split()))
    for name, names in (
        ("bunyan", "v level name hostname pid"),
        ("pino", "level time pid hostname"),
        ("zap", "level ts msg"),
        (_TEXTUAL, "level time msg"),
        ("winston", "level message"),
        ("tracing, of Rust", "level timestamp fields"),
        ("structlog", "level event"),
        ("structlog", "timestamp event"),
        ("python-json-logger", "levelname message"),
        ("Serilog", "@t @mt"),
        ("Serilog", "@t @m"),
    )
)
"""Libraries, by the members of their records; the first whose members are all there counts."""

_LEVELS: Final = frozenset({"level", "severity", "levelname", "lvl", "loglevel", "log.level"})
_TEXTS: Final = frozenset({"msg", "message", "event", "text"})


def json_logger(line: bytes) -> str:
    """Name the library that wrote a line, if the line is a log record in JSON; empty if it is anything else."""
    values = members(line) if line.lstrip()[:1] == b"{" else {}
    names = values.keys()
    if not names or "jsonrpc" in names:
        return ""
    known = next((name for name, its_members in _LOGGERS if its_members <= names), "")
    if known == _TEXTUAL and bytes(values["level"]).strip().isdigit():
        known = "pino"  # its levels are numbers
    if known:
        return f"a record of the logger {known}"
    return "a record of a logger" if names & _LEVELS and names & _TEXTS else ""
