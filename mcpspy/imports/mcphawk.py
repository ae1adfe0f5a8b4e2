"""Databases of MCPHawk 1: the bytes of an SQLite file in, records of one session for each of its sessions out.

Its table `sessions` has an `id` and a `name`; its table `messages`, in the order of `id`, a `session_id`, the time `ts` in Unix
seconds, the `direction` (`c2s` or `s2c`) and the `body`: the message as its JSON encoder wrote it, secrets masked.
Source: `mcphawk/store/db.py` of tech4242/mcphawk (schema version 1).

The file is copied into memory and read there; views, triggers and computed columns of a hostile one are not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .session import STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, WholeFileImporter

if TYPE_CHECKING:
    from sqlite3 import Connection

MAX_EARLY_ROWS: Final = 16

_MAGIC: Final = b"SQLite format 3\0"
_STREAMS: Final = {"c2s": STDIN, "s2c": STDOUT}
_MESSAGES: Final = "SELECT session_id, ts, direction, body FROM messages ORDER BY id"
_NAMES: Final = "SELECT id, name FROM sessions"


class _HawkMessage(msgspec.Struct):
    """The id and the method of a message."""

    id: msgspec.Raw = msgspec.Raw(b"")
    method: str = ""


_decode: Final = msgspec.json.Decoder(_HawkMessage).decode


def is_mcphawk(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a database of MCPHawk."""
    return head.startswith(_MAGIC) and b"CREATE TABLE messages" in head and b"'c2s'" in head


class HawkImporter(WholeFileImporter):
    """Records from the bytes of a database, which is held in memory, up to twice; each after the number of its session."""

    __slots__ = ()

    def close(self) -> list[SessionRecord]:
        sessions: dict[str, StdioSession] = {}
        records: list[SessionRecord] = []
        names: dict[str, str] = {}
        for row in _in_order(self._rows(names)):
            records += self._message(row, sessions, names)
        for session in sessions.values():
            records += session.end("end of the database", notes=self.passed_over())
        return records

    def _rows(self, names: dict[str, str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of messages, after taking the names of the sessions."""
        import sqlite3  # which nothing else needs

        if (data := self._whole()) is None:
            return
        if not data.startswith(_MAGIC):
            self._count("a file that is no database of SQLite")
            return
        if data[18:20] == b"\2\2":
            data[18:20] = b"\1\1"  # it had a write-ahead log, which a copy in memory cannot have
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(bytes(data))
            size_bytes, data = len(data), bytearray()
            _restrain(connection, size_bytes)
            for session, name in connection.execute(_NAMES):
                names[str(session)] = name if isinstance(name, str) else ""
            yield from connection.execute(_MESSAGES)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            self._count(
                f"a database that is damaged ({error})" if "no such" not in str(error) else "a database of another kind"
            )
        finally:
            connection.close()

    def _message(self, row: tuple[Any, ...], sessions: dict[str, StdioSession], names: dict[str, str]) -> list[SessionRecord]:
        key, seconds, direction, body = str(row[0]), row[1], row[2], row[3]
        stream = _STREAMS.get(direction) if isinstance(direction, str) else None
        if stream is None or not isinstance(body, str) or not isinstance(seconds, int | float) or not 0 < seconds < 1e11:
            self._count("a row that is not as MCPHawk writes it")
            return []
        wall_ns = round(seconds * 1e6) * 1000  # a double is exact to the microsecond
        session = sessions.get(key)
        if session is None:
            begins = '"initialize"' in body or "server/discover" in body
            facts = {
                "bytes": RECONSTRUCTED, "senders": EXACT, "times": RECONSTRUCTED, "ends": MISSING, "noise": RECONSTRUCTED,
                "process": MISSING, "heads": MISSING, "beginning": EXACT if begins else MISSING,
            }  # fmt: skip
            session = StdioSession(self._source, len(sessions), label=names.get(key, ""), wall_ns=wall_ns, facts=facts)
            sessions[key] = session
        return session.frame(wall_ns, stream, body.encode("utf-8", "surrogatepass") + b"\n")


def _in_order(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, each answer after its request: MCPHawk forwards before it stores, and the other side may be quicker.

    An answer whose request is not among the next few rows is as early as it seems.
    """
    asked: set[tuple[Any, ...]] = set()
    early: dict[tuple[Any, ...], tuple[int, tuple[Any, ...]]] = {}
    for number, row in enumerate(rows):
        try:
            envelope = _decode(row[3])
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            envelope = _HawkMessage()
        while early and next(iter(early.values()))[0] < number - MAX_EARLY_ROWS:
            yield early.pop(next(iter(early)))[1]
        key = (row[0], row[2], bytes(envelope.id))
        if envelope.method and envelope.id:
            answer = (row[0], "s2c" if row[2] == "c2s" else "c2s", bytes(envelope.id))
            yield row
            if answer in early:
                yield early.pop(answer)[1]
            else:
                asked.add(answer)
        elif envelope.id and key not in asked and key not in early:
            early[key] = number, row
        else:
            asked.discard(key)
            yield row
    for _, row in early.values():
        yield row


def _restrain(connection: Connection, size_bytes: int) -> None:
    """Forbid what only a hostile database asks for: anything but reading columns of its tables, and endless work.

    Raises: sqlite3.DatabaseError: if a table is a view, or computes a column.
    """
    import sqlite3

    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size_bytes, 1 << 20))
    for table in ("sessions", "messages"):
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
        columns = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", (table,)).fetchall()
        if found is None or not found[0] or any(hidden for (hidden,) in columns):
            raise sqlite3.DatabaseError("no such table")
    steps = iter(range(1000 + size_bytes // 500))  # a row takes ten bytes and fifteen steps at least
    connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY)
