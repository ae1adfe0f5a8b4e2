"""Logs as clients write them, made of what a tap recorded: so both can be compared."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from mcpspy import read
from mcpspy.records import Frame, Header, Open
from mcpspy.transcript.model import Exchange, Transcript, UnpairedMessage

LogLine = Callable[[datetime, str, str], str]
"""The line of a message: its time, its sender, its JSON."""


def desktop(at: datetime, sender: str, message: str) -> str:
    """Return a line as Claude Desktop writes it to mcp-server-weather.log."""
    return f"{_iso(at)}Z [weather] [info] Message from {sender}: {message} {{ metadata: undefined }}"


def editor_trace(at: datetime, sender: str, message: str) -> str:
    """Return a line as VS Code traces it."""
    way = "[editor -> server]" if sender == "client" else "[server -> editor]"
    return f"{_iso(at).replace('T', ' ')} [trace] {way} {message}"


def server_log(at: datetime, sender: str, message: str) -> str:
    """Return a line as a server logs it, in Chinese."""
    return f"{at:%H:%M:%S.%f}"[:12] + f" [main] DEBUG - {'收到请求' if sender == 'client' else '发送响应'}: {message}"


def client_log(at: datetime, sender: str, message: str) -> str:
    """Return a line as a client in Node logs it."""
    return f"{_iso(at)}Z DEBUG {'<<<' if sender == 'server' else '>>>'} {message}"


def json_log(at: datetime, sender: str, message: str) -> str:
    """Return a line as pino writes it, with the message in a string."""
    return json.dumps({"level": 20, "time": int(at.timestamp() * 1000), "msg": f"message from {sender}: {message}"})


def bare(at: datetime, sender: str, message: str) -> str:
    """Return a line without a word: only methods and ids tell who sent it."""
    return message


LOGS: dict[str, LogLine] = {
    "desktop": desktop,
    "editor-trace": editor_trace,
    "server": server_log,
    "client": client_log,
    "json": json_log,
    "bare": bare,
}


def log_of(capture: Path, line: LogLine) -> str:
    """Return the log that a client or a server would have written of a capture of stdio."""
    lines, senders, begin_ns = [], {}, 0
    for record in read(capture):
        if isinstance(record, Header):
            begin_ns = record.wall_ns
        if isinstance(record, Open) and record.name != "stderr":
            senders[record.stream] = record.sender
        if isinstance(record, Frame) and record.stream in senders:
            at = datetime.fromtimestamp((begin_ns + record.at_ns) / 1e9, UTC)
            lines.append(line(at, senders[record.stream], record.data.decode().strip()))
    return "\n".join(lines) + "\n"


def rows_of(transcript: Transcript) -> list[tuple[object, ...]]:
    """Return the facts of all rows that do not depend on times."""
    return [fact for row in transcript.rows for fact in _facts(row)]


def rows_in_any_order(transcript: Transcript) -> list[str]:
    """Return the facts of all rows but their numbers: who watches elsewhere sees what is sent at once in another order."""
    return sorted(repr(row[1:]) for row in rows_of(transcript))


def _facts(row: object) -> Iterable[tuple[object, ...]]:
    if isinstance(row, Exchange):
        answer = None if row.response is None else row.response.raw.strip()
        yield row.row, row.sender, row.method, row.target, row.outcome, row.request.raw.strip(), answer, row.progress
    elif isinstance(row, UnpairedMessage):
        yield row.row, row.message.sender, row.message.method, row.message.raw.strip()


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
