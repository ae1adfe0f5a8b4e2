"""Logs as others write them: who sent what and when, where a line is cut, and what the log cannot show.

Each table has twins: logs that look alike and mean something else. A session is written as the messages that a user sees in it:
`→ping` and `←2` are a request of the client and the server's answer with the id 2, `!` is a line of stderr.
"""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Exchange, transcribe
from mcpspy.imports.formats import recognized
from mcpspy.imports.logs import LogImporter
from mcpspy.imports.source import Source
from mcpspy.records import CLIENT, Close, Frame, Gap, Header, Note, Open, Record

_NAMED = '{"name":"x","version":"1"}'
INIT = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":NAMED}}'.replace(
    "NAMED", _NAMED
)
HELLO = (
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":NAMED}}'.replace(
        "NAMED", _NAMED
    )
)
READY = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
REFUSED = '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
TOOLS = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
CALL = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"a \\"b\\"\\n\\\\c é"}}}'
SAID = '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"it\'s {\\"a\\":1}\\n\\tok \\\\n"}]}}'
PING = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":7,"result":{}}'
TALK = [("recv", INIT), ("send", HELLO), ("recv", READY), ("recv", LIST), ("send", TOOLS), ("recv", CALL), ("send", SAID)]
WHOLE = ["→initialize", "←0", "→notifications/initialized", "→tools/list", "←1", "→tools/call", "←2"]
FIRST_NS = 1_749_542_400_000_000_000  # 2025-06-10T08:00:00Z


def read(text: str | bytes, name: str = "x.log") -> list[list[Record]]:
    """Return the records of each session of a log that mcpspy recognized."""
    data = text if isinstance(text, bytes) else text.encode()
    form = recognized(data)
    assert form is not None
    assert form.name == "log"
    importer = LogImporter(Source(name=name, format="log", wall_ns=1_790_000_000_000_000_000, sha256="ab"))
    sessions: dict[int, list[Record]] = {}
    for number, record in [*importer.feed(data), *importer.close()]:
        record.number = len(sessions.setdefault(number, []))
        sessions[number].append(record)
    return list(sessions.values())


def seen(records: list[Record]) -> list[str]:
    """Return the messages of a session, and the lines of stderr."""
    opened = {record.stream: record for record in records if isinstance(record, Open)}
    return [_seen(opened[record.stream], record.data.decode()) for record in records if isinstance(record, Frame)]


def _seen(stream: Open, text: str) -> str:
    if stream.name == "stderr":
        return f"!{text.strip()}"
    message = json.loads(text)
    return ("→" if stream.sender == CLIENT else "←") + str(message.get("method", message.get("id")))


def texts(records: list[Record]) -> list[str]:
    """Return the messages of a session as they are."""
    return [record.data.decode().strip() for record in records if isinstance(record, Frame)]


def rules(*sessions: list[Record]) -> set[str]:
    """Return the rules that found something in the sessions of a file."""
    return {finding.rule for finding in transcribe(*sessions).findings}


def outcomes(records: list[Record]) -> list[str]:
    """Return the outcome of each request."""
    return [str(row.outcome) for row in transcribe(records).rows if isinstance(row, Exchange)]


def gaps(records: list[Record]) -> list[str]:
    return [record.why for record in records if isinstance(record, Gap)]


def notes(records: list[Record]) -> list[str]:
    return [record.text for record in records if isinstance(record, Note)]


def stamp(seconds: float) -> str:
    """Return a time of the day on which these logs were written."""
    return f"2025-06-10T08:00:{seconds:06.3f}Z"


def timed(talk: list[tuple[str, str]], form: str = "{at} {word} {message}") -> str:
    """Return a log with a line for each message, a second after the one before."""
    return "".join(form.format(at=stamp(at), word=word, message=message) + "\n" for at, (word, message) in enumerate(talk))


def quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


def desktop(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def head(seconds: float, text: str, order: str = "[x] [info]") -> str:
    return f"{stamp(seconds)} {order} {text}"


# Loggers that write a message within a quoted value


def _zap(at: str, word: str, message: str) -> str:
    return f"{at}\tINFO\tmcp/server.go:41\t{word} message\t" + json.dumps({"size": len(message), "payload": message})


def _winston(at: str, word: str, message: str) -> str:
    return json.dumps({"level": "info", "message": f"{word} {message}", "timestamp": at})


LOGGERS: dict[str, Callable[[str, str, str], str]] = {
    "logrus": lambda at, word, message: f'time="{at}" level=info msg="{word} {quoted(message)}\\n"',
    "logrus, a field": lambda at, word, message: f'time="{at}" level=info msg={word} data="{quoted(message)}"',
    "slog text": lambda at, word, message: (
        f'time={at} level=INFO msg="{word} bytes" count={len(message)} data="{quoted(message)}\\n"'
    ),
    "zap console": _zap,
    "zap json": lambda at, word, message: json.dumps({"level": "info", "ts": at, "msg": word, "raw": message}),
    "winston": _winston,
    "docker": lambda at, word, message: json.dumps({"log": f"{word} {message}\n", "stream": "stderr", "time": at}),
    "docker, logrus in it": lambda at, word, message: json.dumps(
        {"log": f'level=info msg="{word} {quoted(message)}"\n', "stream": "stderr", "time": at}
    ),
    "structlog": lambda at, word, message: f"{at} [debug    ] {word} message    data={message!r} size={len(message)}",
    "structlog, logfmt": lambda at, word, message: f'timestamp={at} level=debug event={word} data="{quoted(message)}"',
    "bytes of Python": lambda at, word, message: f"{at} DEBUG {word} {message.encode()!r}",
    "bytes of Python, an event": lambda at, word, message: (
        f"{at} {word} chunk: {b'event: message' + bytes([13, 10]) + b'data: ' + message.encode()!r}"
    ),
    "a dict of Python": lambda at, word, message: f"{at} DEBUG {word} {json.loads(message)!r}",
    "a member": lambda at, word, message: f'{{"time":"{at}","msg":"{word}","message":{message}}}',
    "tracing": lambda at, word, message: f'{at} DEBUG mcp::io: {word} line="{quoted(message)}" peer=3',
    "systemd": lambda at, word, message: f"{at} host server[41]: {word} {message}",
    "plain in quotes": lambda at, word, message: f"{at} {word}: '{message}'",
    "plain": lambda at, word, message: f"{at} {word} {message}",
    "kubernetes": lambda at, word, message: f"{at} stdout F {word} {message}",
    "kubernetes, logrus in it": lambda at, word, message: f'{at} stderr F level=info msg="{word} {quoted(message)}"',
    "syslog": lambda at, word, message: f"<14>1 {at} host server 41 - - {word} {message}",
    "python": lambda at, word, message: f"{at} - server - DEBUG - {word}: {message}",
}


@pytest.mark.parametrize("logger", LOGGERS)
def test_messages_are_read_whoever_wrote_the_log(logger: str) -> None:
    log = "".join(LOGGERS[logger](stamp(at), *said) + "\n" for at, said in enumerate(TALK))
    (records,) = read(log)
    assert seen(records) == WHOLE
    assert [json.loads(text) for text in texts(records)] == [json.loads(message) for _, message in TALK]
    assert not rules(records) & {"unanswered-request", "unpaired-response", "wrong-direction", "recording-gap", "slow-call"}
    assert [record.at_ns // 1_000_000_000 for record in records if isinstance(record, Frame)] == list(range(7))
    header = records[0]
    assert isinstance(header, Header)
    assert header.wall_ns == FIRST_NS


# Sides


SIDES = {
    "a word that all lines share": (timed(TALK, "{at} stdout F {word} {message}"), WHOLE),
    "the other one": (timed(TALK, "{at} stdin {word} {message}"), WHOLE),
    "a name with a side in it": (timed(TALK, "{at} [from server-7] {word} {message}"), WHOLE),
    "a stream as a member": (
        "".join(
            json.dumps({"time": stamp(at), "stream": "stdout", "log": f"{word} {message}"}) + "\n"
            for at, (word, message) in enumerate(TALK)
        ),
        WHOLE,
    ),
    "a shared word, no other": (timed([("", said) for _, said in TALK], "{at} stdout F {message}"), WHOLE),
    "a shared verb": (timed([("", said) for _, said in TALK], "{at} sending to log: {message}"), WHOLE),
    "a method overrules a word": (timed([("from server", INIT), ("from server", HELLO)]), ["→initialize", "←0"]),
    "a ping under a shared word": (
        timed([*TALK[:2], ("recv", PING), ("send", PONG)], "{at} stdout F {word} {message}"),
        ["→initialize", "←0", "→ping", "←7"],
    ),
    "a ping of the server": (
        timed([*TALK[:2], ("send", PING), ("recv", PONG)], "{at} stdout F {word} {message}"),
        ["→initialize", "←0", "←ping", "→7"],
    ),
    "words that are right": (
        timed([("from client", INIT), ("from server", HELLO), ("from server", PING), ("from client", PONG)]),
        ["→initialize", "←0", "←ping", "→7"],
    ),
    "arrows": (timed([(">>>", INIT), ("<<<", HELLO), ("<<<", PING), (">>>", PONG)]), ["→initialize", "←0", "←ping", "→7"]),
    "an editor": (
        timed([("[editor -> server]", INIT), ("[server -> editor]", HELLO), ("[server -> editor]", PING)]),
        ["→initialize", "←0", "←ping"],
    ),
    "answers only, named by what they answer": (timed([("", HELLO), ("", TOOLS), ("", SAID)]), ["←0", "←1", "←2"]),
}


@pytest.mark.parametrize("case", SIDES)
def test_the_sender_is_told(case: str) -> None:
    log, expected = SIDES[case]
    (records,) = read(log)
    assert [line for line in seen(records) if not line.startswith("!")] == expected
    assert not rules(records) & {"unanswered-request", "unpaired-response", "wrong-direction"}


# One side alone


ONE_SIDE = {
    "requests": [("recv", INIT), ("recv", READY), ("recv", LIST), ("recv", CALL)],
    "requests of a client": [("sending", INIT), ("sending", READY), ("sending", LIST), ("sending", CALL)],
    "requests without a word": [("", INIT), ("", READY), ("", LIST), ("", CALL)],
    "requests without initialize": [("recv", LIST), ("recv", CALL), ("recv", LIST.replace("1,", "3,"))],
    "some answers, not that to initialize": [("recv", INIT), ("recv", READY), ("recv", LIST), ("recv", CALL), ("send", SAID)],
    "answers": [("send", HELLO), ("send", TOOLS), ("send", SAID)],
}


@pytest.mark.parametrize("case", ONE_SIDE)
def test_a_log_of_one_side_says_so_and_blames_nobody(case: str) -> None:
    (records,) = read(timed(ONE_SIDE[case]))
    (gap,) = gaps(records)
    assert "log does not have" in gap
    assert rules(records) <= {"recording-gap"}
    assert "unanswered" not in outcomes(records)
    assert not transcribe(records).captures[0].complete


TWO_SIDES = {
    "an error alone": [
        ("recv", INIT),
        ("send", HELLO),
        ("recv", READY),
        ("recv", LIST),
        ("send", REFUSED),
    ],
    "a call that hangs": [("recv", INIT), ("send", HELLO), ("recv", READY), ("recv", LIST), ("recv", CALL), ("send", SAID)],
}


@pytest.mark.parametrize("case", TWO_SIDES)
def test_a_log_of_both_sides_is_whole(case: str) -> None:
    (records,) = read(timed(TWO_SIDES[case]))
    assert gaps(records) == []
    assert ("unanswered-request" in rules(records)) == (case == "a call that hangs")


def test_a_server_of_claude_desktop_that_never_answers_is_blamed() -> None:
    head = "[x] [info]"
    (records,) = read(
        f"{stamp(0)} {head} Initializing server...\n{stamp(1)} {head} Message from client: {INIT}\n"
        f"{stamp(2)} {head} Message from client: {LIST}\n{stamp(9)} {head} Server transport closed\n"
    )
    assert gaps(records) == []
    assert "unanswered-request" in rules(records)


LEFT = "Client transport closed"
GONE = "Server transport closed"
UNEXPECTED = "Server transport closed unexpectedly, this is likely due to the process exiting early."
ENDS = {
    "crashed": ((GONE, LEFT, UNEXPECTED, LEFT), "The server never answered initialize"),
    "crashed, unexpectedly first": ((UNEXPECTED, LEFT), "The server never answered initialize"),
    "crashed, with what it wrote": (("!TypeError: x", GONE, LEFT, UNEXPECTED), "TypeError: x"),
    "the client left": ((LEFT, GONE, LEFT), "The client left"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_who_ended_first_in_a_log_of_claude_desktop_is_told(case: str) -> None:
    ends, words = ENDS[case]
    lines = [end[1:] if end.startswith("!") else head(1.1, end) for end in ends]
    (records,) = read(desktop(head(0, "Initializing server..."), head(1, f"Message from client: {INIT}"), *lines))
    (finding,) = [finding for finding in transcribe(records).findings if finding.rule == "unanswered-request"]
    assert words in finding.what
    assert "written nothing" not in finding.what  # mcp.log has no stderr


def test_two_starts_at_once_that_both_crash_both_end() -> None:
    crash = (GONE, LEFT, UNEXPECTED, LEFT)
    starts = [head(0, "Initializing server..."), head(0.1, f"Message from client: {INIT}")] * 2
    first, second = read(desktop(*starts, *[head(4, end) for end in crash], "Error: no", *[head(6, end) for end in crash]))
    for records, seconds in ((first, 6), (second, 4)):
        (end,) = [record for record in records if isinstance(record, Close)]
        assert (end.by, round(end.at_ns / 1e9 + 0.1)) == ("server", seconds)
        assert "unanswered-request" in rules(records)


def test_a_session_after_two_that_crashed_is_told_apart() -> None:
    starts = [head(0, "Initializing server..."), head(0.1, f"Message from client: {INIT}")] * 2
    crashed = [head(at, end) for at in (4, 6) for end in (GONE, LEFT)]
    said = (("client", INIT), ("server", HELLO), ("client", READY), ("client", LIST), ("server", TOOLS))
    later = [
        head(9, "Initializing server..."),
        *[head(10 + at, f"Message from {who}: {text}") for at, (who, text) in enumerate(said)],
    ]
    sessions = read(desktop(*starts, *crashed, *later))
    assert [seen(records) for records in sessions] == [WHOLE[:1], WHOLE[:1], WHOLE[:5]]
    assert not any(gaps(records) for records in sessions)


# Cut lines

LONG = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search","description":"Search the'
CUTS = {
    "in the same second": "{at} send " + LONG,
    "with a mark": "{at} send " + LONG + "... (truncated)",
    "with a size": "{at} send " + LONG + "[2051 chars truncated]",
    "an ellipsis": "{at} send " + LONG + "…",
    "in quotes": 'time={at} msg="send ' + quoted(LONG) + '..."',
    "in bytes": "{at} send b'" + LONG + "'...",
    "id first": "{at} send " + '{"id":1,"jsonrpc":"2.0","result":{"tools":[{"na',
    "within a message of the next line": "{at} send " + LONG + "\n web for it",
}


@pytest.mark.parametrize("case", CUTS)
def test_a_cut_line_is_the_finding_and_no_answer_is_missed(case: str) -> None:
    before, after = timed(TALK[:4]), "".join(f"{stamp(9)} {word} {message}\n" for word, message in TALK[5:])
    (records,) = read(before + CUTS[case].replace("{at}", stamp(3)) + "\n" + after)
    assert [line for line in seen(records) if not line.startswith("!")] == WHOLE[:4] + WHOLE[5:]
    assert gaps(records) == ["line 5 of the log has only the beginning of a message"]
    assert rules(records) <= {"recording-gap"}
    assert outcomes(records) == ["ok", "unknown", "ok"]


def test_a_call_after_the_cut_line_that_has_no_answer_is_unanswered() -> None:
    more = [("recv", LIST.replace("1,", "3,")), ("recv", LIST.replace("1,", "4,")), ("send", TOOLS.replace("1,", "4,"))]
    log = timed(TALK[:4]) + f"{stamp(5)} send {LONG}\n" + "".join(f"{stamp(9)} {word} {said}\n" for word, said in more)
    (records,) = read(log)
    assert outcomes(records) == ["ok", "unknown", "unanswered", "ok"]
    assert "unanswered-request" in rules(records)


# Clocks


BANNERS = [
    "Python 3.12.3 (main, Apr  9 2024, 08:18:47) [GCC 13.2.0]",
    "2019-01-01 00:00:00,000 - server - INFO - started",
    "2031-01-01T00:00:00Z started",
    "[12:59:59] listening",
    "time=1590000000 msg=ready",
    "INFO:     Started server process [41]",
    '{"level":"info","time":1590000000000,"msg":"ready"}',
    "    at Module._load (node:internal:1:2)",
    "ready at 2019-01-01T00:00:00Z",
]


@pytest.mark.parametrize("banner", BANNERS)
def test_stderr_in_a_log_of_claude_desktop_is_shown_and_moves_no_time(banner: str) -> None:
    log = desktop(
        head(0, "Initializing server..."), banner, head(1, f"Message from client: {INIT}"), banner, "ready",
        head(2, f"Message from server: {HELLO}"), banner,
    )  # fmt: skip
    (records,) = read(log)
    assert seen(records) == [f"!{banner.strip()}", "→initialize", f"!{banner.strip()}", "!ready", "←0", f"!{banner.strip()}"]
    (exchange,) = transcribe(records).exchanges
    assert exchange.duration_ns == 1_000_000_000
    header = records[0]
    assert isinstance(header, Header)
    assert header.wall_ns == FIRST_NS


@pytest.mark.parametrize("banner", BANNERS)
def test_other_times_in_other_lines_of_a_servers_log_move_no_time(banner: str) -> None:
    log = banner + "\n" + timed(TALK[:1]) + banner + "\n" + f"{stamp(1)} send {HELLO}\n{banner}\n"
    (records,) = read(log)
    assert [line for line in seen(records) if line.startswith("!")] == [f"!{banner.strip()}"] * 3
    (exchange,) = transcribe(records).exchanges
    assert exchange.duration_ns == 1_000_000_000
    header = records[0]
    assert isinstance(header, Header)
    assert header.wall_ns == FIRST_NS


def test_a_servers_own_lines_with_the_time_of_its_log_have_it() -> None:
    log = timed(TALK[:1]) + f"{stamp(4)} warming up\n{stamp(6)} send {HELLO}\n"
    (records,) = read(log)
    assert [record.at_ns // 1_000_000_000 for record in records if isinstance(record, Frame)] == [0, 4, 6]


def test_what_claude_desktop_writes_about_its_own_command_is_no_stderr() -> None:
    log = desktop(
        head(0, "Initializing server..."),
        head(0, "Using MCP server command: npx with args and path: {"),
        "  metadata: {", "    args: [ 'x' ],", "    paths: [", "      '/usr/bin'", "    ]", "  }", "} %o",
        head(1, f"Message from client: {INIT}"), "trouble", head(2, f"Message from server: {HELLO}"),
    )  # fmt: skip
    (records,) = read(log)
    assert seen(records) == ["→initialize", "!trouble", "←0"]


# A server that was started twice


def _lines(*said: tuple[str, str]) -> str:
    return desktop(*(head(at, text if who == "·" else f"Message from {who}: {text}") for at, (who, text) in enumerate(said)))


BEGIN = ("·", "Initializing server...")
TWICE = {
    "in turn": _lines(
        BEGIN, ("client", INIT), BEGIN, ("client", INIT), ("server", HELLO), ("client", READY), ("server", HELLO), ("client", READY),
        ("client", LIST), ("server", TOOLS), ("client", LIST), ("server", TOOLS),
    ),
    "both begin before either": _lines(
        BEGIN, BEGIN, ("client", INIT), ("client", INIT), ("server", HELLO), ("server", HELLO), ("client", READY), ("client", READY),
        ("client", LIST), ("client", LIST), ("server", TOOLS), ("server", TOOLS),
    ),
    "one after the other's handshake": _lines(
        BEGIN, ("client", INIT), ("server", HELLO), BEGIN, ("client", INIT), ("client", READY), ("server", HELLO), ("client", READY),
        ("client", LIST), ("client", LIST), ("server", TOOLS), ("server", TOOLS),
    ),
    "in a servers log": timed([
        ("recv", INIT), ("recv", INIT), ("send", HELLO), ("recv", READY), ("send", HELLO), ("recv", READY),
        ("recv", LIST), ("send", TOOLS), ("recv", LIST), ("send", TOOLS),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("case", TWICE)
def test_two_servers_in_one_log_are_two_sessions(case: str) -> None:
    sessions = read(TWICE[case])
    assert [seen(records) for records in sessions] == [WHOLE[:5], WHOLE[:5]]
    assert all(any("cannot be told apart" in why for why in gaps(records) + notes(records)) for records in sessions)
    assert rules(*sessions) <= {"recording-gap"}


ONCE = {
    "a restart": _lines(
        BEGIN, ("client", INIT), ("server", HELLO), ("client", READY), BEGIN, ("client", INIT), ("server", HELLO), ("client", READY),
        ("client", LIST), ("server", TOOLS),
    ),
    "a restart of one that hung": _lines(
        BEGIN, ("client", INIT), ("·", "Client transport closed"), BEGIN, ("client", INIT), ("server", HELLO), ("client", READY),
        ("client", LIST), ("server", TOOLS),
    ),
    "a restart in a servers log": timed([*TALK[:3], *TALK[:5]]),
}  # fmt: skip


@pytest.mark.parametrize("case", ONCE)
def test_a_restart_makes_two_sessions_that_are_told_apart(case: str) -> None:
    first, second = read(ONCE[case])
    assert seen(second) == WHOLE[:5]
    assert seen(first) == WHOLE[: len(seen(first))]
    assert not any("told apart" in text for records in (first, second) for text in gaps(records) + notes(records))


def test_a_window_that_goes_on_beside_a_later_one_keeps_its_calls() -> None:
    later = [("client", LIST.replace("1,", "5,")), ("server", TOOLS.replace("1,", "5,"))]
    said = [BEGIN, ("client", INIT), ("server", HELLO), ("client", READY)]
    older = [
        (who, text.replace('"id":1', f'"id":{number}'))
        for number in range(1, 5)
        for who, text in (("client", LIST), ("server", TOOLS))
    ]
    first, second = read(_lines(*said, *older, *said, *later, *[("client", LIST), ("server", TOOLS)]))
    assert len(transcribe(first).exchanges) == 6
    assert len(transcribe(second).exchanges) == 2


# Several messages on a line


def _joined(talk: list[tuple[str, str]], form: str = "{at} {word} {message}", between: str = " ") -> str:
    return timed(talk, form).replace("\n", between).strip() + "\n"


ONE_LINE = {
    "pasted": _joined(TALK),
    "pasted without blanks": _joined(TALK, between=""),
    "without times": _joined(TALK, "{word} {message}"),
    "messages alone": _joined(TALK, "{message}"),
    "spelled line ends": _joined(TALK, between="\\n"),
    "of a client": _joined(TALK, "[{at}] {word} {message}"),
    "many": _joined(
        [*TALK[:3], *[(word, text.replace('"id":1', f'"id":{number}')) for number in range(1, 60) for word, text in TALK[3:5]]]
    ),
    "two a line": timed([(word, f"{message} and its copy") for word, message in TALK]),
    "a request and its answer": timed(
        [("recv", f"{INIT} -> send {HELLO}"), ("recv", READY), ("recv", f"{LIST} -> send {TOOLS}")]
    ),
    "members of one object": "".join(
        f'{{"at":"{stamp(at)}","request":{request},"response":{answer}}}\n'
        for at, (request, answer) in enumerate([(INIT, HELLO), (LIST, TOOLS)])
    ),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_all_messages_of_a_line_are_read(case: str) -> None:
    (records,) = read(ONE_LINE[case])
    calls = {"many": 60, "a request and its answer": 2, "members of one object": 2}.get(case, 3)
    assert outcomes(records) == ["ok"] * calls
    assert not rules(records) & {"unanswered-request", "id-reused"}


def test_the_times_of_a_pasted_line_are_those_before_its_messages() -> None:
    (records,) = read(ONE_LINE["pasted"])
    assert [record.at_ns // 1_000_000_000 for record in records if isinstance(record, Frame)] == list(range(7))


@pytest.mark.parametrize("between", ["", " ", ", ", ";", "\\n", "\\r\\n", "\t"])
@pytest.mark.parametrize("word", ["", "recv "])
def test_equal_notifications_of_a_pasted_line_are_each_read(word: str, between: str) -> None:
    (records,) = read(f"recv {INIT}\n{between.join([f'{word}{READY}'] * 5)}\n")
    assert len(seen(records)) == 6


@pytest.mark.parametrize("between", [" raw=", " and its copy ", " -> wrote "])
def test_a_notification_that_a_line_has_in_two_forms_is_read_once(between: str) -> None:
    (records,) = read(f"recv {INIT}\nrecv {READY}{between}{READY}\n")
    assert len(seen(records)) == 2


@pytest.mark.parametrize("between", ["", " ", "\n", " recv "])
@pytest.mark.parametrize("times", [3, 5, 2000])
def test_equal_requests_that_are_left_out_are_counted(between: str, times: int) -> None:
    (records,) = read(f"recv {INIT}\nrecv {between.join([LIST] * times)}\n")
    assert len(seen(records)) == 2
    assert [text for text in notes(records) if "not read" in text] == [
        f"not read: {times - 1:,} × a message that is the same as the one before it"
    ]


@pytest.mark.parametrize("between", ["", " ", "\n", "\nrecv ", " and its copy "])
def test_a_request_that_two_loggers_wrote_is_read_once_and_nothing_is_said(between: str) -> None:
    (records,) = read(f"recv {INIT}\nrecv {LIST}{between}{LIST}\n")
    assert len(seen(records)) == 2
    assert not [text for text in notes(records) if "not read" in text]


def test_equal_requests_of_different_ids_are_each_read_in_a_time_that_grows_with_the_line() -> None:
    (records,) = read("".join(LIST.replace("1,", f"{number},") for number in range(1, 20_001)))
    assert len(seen(records)) == 20_000


@pytest.mark.parametrize("message", [SAID, CALL])
def test_what_a_message_quotes_is_no_message(message: str) -> None:
    inner = json.loads(message)
    inner["quoted"] = f"recv {LIST}"
    inner["nested"] = json.loads(LIST)
    (records,) = read(timed([*TALK[:2], ("recv" if "method" in inner else "send", json.dumps(inner))]))
    assert len(seen(records)) == 3


# What is not read


PRETTY = json.dumps(json.loads(TOOLS), indent=2)


def test_a_message_over_several_lines_is_a_gap() -> None:
    (records,) = read(timed(TALK[:4]) + PRETTY + "\n" + timed(TALK[5:]))
    (gap,) = gaps(records)
    assert "is spread over several lines" in gap
    assert outcomes(records) == ["ok", "unknown", "ok"]


PROMPTS = [
    '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
    '{"input": "hi", "model": "m"}',
    "Request options: {'url': '/chat/completions', 'json_data': {'messages': [], 'model': 'm'}}",
    'msg="{\\"model\\":\\"m\\",\\"messages\\":[]}"',
]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_calls_of_a_model_in_a_log_are_left_out_and_said_so(prompt: str) -> None:
    (records,) = read(timed(TALK) + f"{stamp(9)} POST {prompt}\n")
    assert notes(records) == ["not read: 1 × a model call; record them with mcpspy proxy --model"]


@pytest.mark.parametrize("line", ['{"model":"m","year":4}', "model and messages", '{"messages":["a"]}', "the model: input"])
def test_other_lines_are_no_calls_of_a_model(line: str) -> None:
    (records,) = read(timed(TALK) + f"{stamp(9)} {line}\n")
    assert notes(records) == []


@given(
    st.lists(
        st.sampled_from(
            [
                '{"',
                '{\\"',
                "b'",
                "='{",
                "\\\\",
                "\\x",
                "\\ud800",
                "'",
                '"',
                ":",
                " F ",
                "}",
                INIT,
                quoted(TOOLS),
                LONG,
                stamp(1),
                "\n",
            ]
        )
    )
)
def test_any_pieces_are_read_cut_anywhere(pieces: list[str]) -> None:
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    source = Source(name="x", format="log", wall_ns=1, sha256="ab")
    whole, cut = LogImporter(source), LogImporter(source)
    step = [record for at in range(0, len(data), 7) for record in cut.feed(data[at : at + 7])]
    assert [*whole.feed(data), *whole.close()] == [*step, *cut.close()]


@pytest.mark.parametrize(
    "piece", ['{\\"a\\":', "{'jsonrpc':", '=\'{"a":', '{"jsonrpc":"2.0","x":"', '{\\"result\\":', '{"a":"{\\"a\\":']
)
def test_a_hostile_line_takes_linear_time(piece: str) -> None:
    importer = LogImporter(Source(name="x", format="log", wall_ns=1, sha256="ab"))
    importer.feed((piece * (1_000_000 // len(piece)) + "\n").encode())
    importer.close()
