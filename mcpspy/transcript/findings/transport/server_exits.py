"""Findings about requests without a response on stdio, and about the server's process. `disconnects` is about HTTP."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Unpack

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, OTHER_SIDE, SERVER, Exit, Note
from ...log_lines import error_line, plain_line
from ...mcp.methods import INITIALIZE, PING
from ...model import Exchange, Kind, UnpairedMessage
from ..facts import HANDSHAKE_METHODS, CaptureFacts
from ..hits import hit_on_record
from ..meanwhile import FOR_PEOPLE, awaited, log_advice, log_words, logged_while, meanwhile_words, usual_ns, written_words
from ..rule import CONFIGURATION, Hit, HitDetails, Severity, hit_in, transport_rule
from ..words import call_name, listed, quoted, seconds
from .deliveries import explained_rows

UNANSWERED_REQUEST: Final = transport_rule(
    name="unanswered-request",
    title="Request without an answer",
    severity=Severity.ERROR,
    what=(
        "A request was neither answered nor cancelled. While mcpspy records, a request that waits is a note after 5 s, "
        "and a warning after 30 s of silence."
    ),
    why="The side that sent it waits until its own timeout.",
    blame="The receiver: it received the request and never replied.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· 30.0 s later\n· the client closes stdin',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    advice="Send a response to every request, and an error if it cannot be served.",
)

SERVER_DIED: Final = transport_rule(
    name="server-died",
    title="Server died",
    severity=Severity.ERROR,
    what="The server's process ended while the client was connected, with calls pending or with a failure.",
    why="Pending calls stay unanswered, and the client has lost its server.",
    blame="The server: it ended by itself, before the client closed anything.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n! KeyError: \'name\'\n· the server exits 1',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n'
    "· the client closes stdin\n· the server exits 1",
    advice="Run its command in a terminal, and read what it writes to stderr.",
)

SERVER_NOT_STARTED: Final = transport_rule(
    name="server-not-started",
    title="Server did not start",
    severity=Severity.ERROR,
    what="The server's command could not be started, or ended at once because it did not find what it should run.",
    why="The client only sees that the server is gone at once.",
    blame="The configuration of the server: it names a program or a file that does not exist here, or that may not be run.",
    example="· the server does not start: command not found",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Check the command, its path and its permissions; clients start servers with a PATH of their own.",
)

DESCENDANTS_LEFT: Final = transport_rule(
    name="descendants-left",
    title="Processes left behind",
    what="The server ended and left processes running that it had started.",
    why="Nobody reads their output or ends them, and each start adds more.",
    blame="The server, or a launcher such as npx or sh -c: it did not end its child processes.",
    example="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0, leaving chromium, sleep",
    clean="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0",
    advice="End child processes when stdin closes and on SIGTERM, or start the server without a launcher.",
)

UNUSED_START: Final = transport_rule(
    name="unused-start",
    title="Server started but never used",
    severity=Severity.NOTE,
    what="The server ran for five seconds or more, and nobody sent it a message.",
    why="It costs memory and start-up time; some clients start a server twice and forget one.",
    blame="The client: it started the server and never wrote to it.",
    example="! ready\n· 60.0 s later\n· the client closes stdin",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· 60.0 s later',
    advice="Look for the server in two of the client's configuration files.",
)

END_OF_INPUT_IGNORED: Final = transport_rule(
    name="end-of-input-ignored",
    title="Server had to be ended by a signal",
    what="The server still ran two seconds after the client had closed its stdin, and a signal had to end it.",
    why="Clients wait for it at each shutdown, and a client that dies without a signal leaves the server running for ever.",
    blame="The server: the end of its stdin tells it to end, and it had two seconds for that.",
    example="· handshake 2025-11-25\n· the client closes stdin\n· 2.0 s later\n· the client sends SIGTERM\n· 1.0 s later\n"
    "· mcpspy sends SIGKILL\n· the server exits by SIGKILL",
    clean="· handshake 2025-11-25\n· the client closes stdin\n· 0.1 s later\n· the client sends SIGTERM\n"
    "· the server exits by SIGTERM",
    advice="End the process when stdin ends; look for timers, threads and listening sockets that keep it alive.",
)

RULES: Final = (
    UNANSWERED_REQUEST, SERVER_DIED, SERVER_NOT_STARTED, DESCENDANTS_LEFT, END_OF_INPUT_IGNORED, UNUSED_START,
)  # fmt: skip

_TASK_RESULT: Final = "tasks/result"

_TIME_TO_END_NS: Final = 1_900_000_000
"""Clients on the SDKs wait two seconds after they closed stdin, by their own clocks."""

_BUSY_NS: Final = 500_000_000
"""A server that waited longer than this for a processor did not have that time. One that sleeps hardly ever waits, however busy the
machine is: up to 40 ms of 2 s with eight other processes on two processors, where one that works waited for 1.5 s and more."""

PATIENCE_NS: Final = 5_000_000_000
"""A side that leaves sooner than this after its request did not wait for the response; one that waited longer was kept waiting."""

_TAIL: Final = 3
"""So many of the last lines on stderr are quoted."""

_FROM_OUTSIDE: Final = ("SIGTERM", "SIGINT", "SIGHUP")
_KILLED_BLAME: Final = (
    "The server, if it used too much memory: the system ends such a process with SIGKILL. Or somebody else killed it."
)

_ERROR_LETTERS: Final = 300

SOON_NS: Final = 1_000_000_000
"""A ping has to be answered within this time."""

_LAUNCHERS: Final = frozenset(("npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "sh", "bash", "dash", "zsh"))

_FLAG_LETTERS: Final = 2
"""An argument this short, such as -m, names no program."""

_SHELL_CODES: Final = (126, 127)
"""A shell ends with these if it may not run a command, or does not find it (POSIX, Shell Command Language, 2.8.2)."""

_shell_complains = lazy_pattern(rb"not found|no such file|permission denied|is not recognized", re.IGNORECASE)
_launcher_complains = lazy_pattern(
    rb"can't open file|cannot find module|no module named|404 not found|could not determine executable|not found in the package",
    re.IGNORECASE,
)
"""Python, Node, npx, uvx."""

EXIT_NS: Final = 1_000_000_000
"""A server that ends within this time after it closed its stdout closed it by ending."""

_GROUP_NS: Final = 250_000_000
"""A signal that mcpspy gets within this time after the server's end was for both: clients and terminals signal a whole group."""

LISTED_CALLS: Final = 3

OPEN_ENDED: Final = {"subscriptions/listen"}
"""Requests that last until they are cancelled, and need no response (MCP specification 2026-07-28, subscriptions)."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find what the end of a server's process tells, and requests without a response."""
    pending = [
        exchange
        for exchange in facts.unanswered
        if exchange.transaction is None and needs_answer(exchange) and not _may_be_lost(facts, exchange)
    ]
    if facts.exit is not None:
        at_ns, record = facts.exit
        yield from _process(facts, at_ns, record)
        if not record.error and (_died(facts, at_ns) or _says_why(facts, record)):
            left_alone = [exchange for exchange in pending if exchange.sender == CLIENT and exchange.at_ns <= at_ns]
            if left_alone or record.signal or record.code:
                yield _failed(facts, at_ns, record, left_alone)
                pending = [exchange for exchange in pending if exchange.sender != CLIENT]  # also those sent to nobody any more
    of_server = [exchange for exchange in pending if exchange.sender == SERVER]
    last = max(of_server, key=lambda exchange: exchange.at_ns, default=None)
    explained = explained_rows(facts)
    for exchange in pending:
        if exchange.is_probe or exchange.row in explained or abandoned_ns(facts, exchange) is not None:
            continue
        if last is not None and exchange.sender == CLIENT and last.at_ns > exchange.at_ns:
            yield _kept_waiting(facts, exchange, last)
        else:
            yield _unanswered(facts, exchange)


def abandoned_ns(facts: CaptureFacts, exchange: Exchange) -> int | None:
    """Return when the sender of a ping gave up or left, a second or more later; None if it did neither, or was answered before."""
    if exchange.method != PING:
        return None
    until_ns = exchange.given_up_ns
    if until_ns is None and exchange.response is None and exchange.transaction is None:
        client_first = facts.left_ns, facts.gone_ns
        sender_ns, receiver_ns = client_first if exchange.sender == CLIENT else client_first[::-1]
        until_ns = sender_ns if receiver_ns is None or (sender_ns or 0) <= receiver_ns else None
    return None if until_ns is None or until_ns - exchange.at_ns < SOON_NS else until_ns


def _failed(facts: CaptureFacts, at_ns: int, record: Exit, left_alone: list[Exchange]) -> Hit:
    """Say why a server ended: its command names what does not exist, or it died."""
    missing = _missing_program(facts, record)
    if not missing:
        what = _death(facts, at_ns, record, left_alone)
        from .exit_causes import exit_cause  # a server that dies is rare, and its patterns take time

        cause = exit_cause(facts)
        if cause is not None:
            return hit_on_record(
                SERVER_DIED, facts, at_ns, record.number, what, cause.culprit, blame=cause.blame, advice=cause.advice
            )
        if record.signal in _FROM_OUTSIDE:
            blame = f"Unclear: somebody outside of this capture sent {record.signal}; the client and mcpspy did not."
            advice = "Look for what ended it: a supervisor, a container that was stopped, a time limit, Ctrl-C in its terminal."
            return hit_on_record(SERVER_DIED, facts, at_ns, record.number, what, "unclear", blame=blame, advice=advice)
        blame = _KILLED_BLAME if record.signal == "SIGKILL" else ""
        advice = "" if record.signal else _repeating(left_alone)
        return hit_on_record(SERVER_DIED, facts, at_ns, record.number, what, SERVER, advice=advice, blame=blame)
    what = f"The server could not be started: {_command(facts)}it ended with code {record.code} and wrote {missing}."
    return hit_on_record(SERVER_NOT_STARTED, facts, at_ns, record.number, what, CONFIGURATION)


def _repeating(left_alone: list[Exchange]) -> str:
    """Say how to see the end again of a server that died in a call; empty where it was in none."""
    called = [exchange for exchange in left_alone if exchange.method not in HANDSHAKE_METHODS]
    if not called:
        return ""
    call = f"{call_name(called[-1])} with the arguments of row {called[-1].row}"
    return f"Repeat {call}, and mend what stderr names: a call that fails is answered with an error, and the server goes on."


def needs_answer(exchange: Exchange) -> bool:
    """Return whether a request needs a response."""
    return exchange.method not in OPEN_ENDED


def never_answered(facts: CaptureFacts, exchange: Exchange, reason: str, until_ns: int, **details: Unpack[HitDetails]) -> Hit:
    """Make a finding that blames the side that was asked; `reason` says who left first, or how the response ended."""
    receiver = OTHER_SIDE[exchange.sender]
    is_first = exchange.method == INITIALIZE and exchange.transaction is None
    line = b"" if is_first else logged_while(facts, exchange, until_ns)
    meanwhile = written_words(facts, until_ns) if is_first else meanwhile_words(facts, exchange, until_ns) + log_words(line)
    what = f"The {receiver} never answered {call_name(exchange)}: {reason}.{meanwhile}"
    if is_first and receiver == SERVER:
        from .exit_causes import without_stdin  # as above

        if (cause := without_stdin(facts)) is not None:
            return _unanswered_hit(exchange, what, cause.culprit, blame=cause.blame, advice=cause.advice)
    if advice := log_advice(line):
        details.setdefault("advice", advice)
    if facts.stalls and exchange.transaction is None:
        from .stalls import was_never_read  # as above

        if was_never_read(facts, exchange):
            name = facts.stream_name(exchange.request.stream)
            details.setdefault("blame", f"The {receiver}: it stopped reading {name} before it had read the request.")
    if exchange.sender == SERVER and (hit := undeclared_hit(facts, exchange, what)) is not None:
        return hit
    return _unanswered_hit(exchange, what, receiver, **details)


def undeclared_hit(facts: CaptureFacts, exchange: Exchange, what: str) -> Hit | None:
    """Make a note about a request that the client need not know, as it did not declare the capability: the fault is the server's."""
    from ..protocol.handshake import undeclared  # as above

    capability = undeclared(facts, exchange)
    if not capability:
        return None
    blame = f"The server: the client had not declared the capability {capability}, and need not know the method."
    advice = "Ask for nothing that the client did not declare; and let a client refuse what it does not know, with -32601."
    return _unanswered_hit(exchange, what, SERVER, blame=blame, advice=advice, severity=Severity.NOTE)


def left_early(exchange: Exchange, until_ns: int, *, how: str = "left", other_ns: int = 0) -> Hit:
    """Make a note about a side that did not wait for the response to its request, perhaps not as long as for another one before."""
    waited = seconds(max(until_ns - exchange.at_ns, 0))
    sender = exchange.sender
    what = f"The {sender} {how} {waited} after it sent {call_name(exchange)}, before the {OTHER_SIDE[sender]} had answered."
    if other_ns:
        what += f" Another {exchange.method} was answered after {seconds(other_ns)}."
    blame = f"The {sender}: it did not wait for the response."
    advice = "Wait for the response, or cancel the request before you leave."
    return _unanswered_hit(exchange, what, sender, blame=blame, advice=advice, severity=Severity.NOTE)


def ended_task_ns(facts: CaptureFacts, exchange: Exchange) -> int | None:
    """Return when the task ended whose result was asked for; None if it had not, as far as was seen, and 0 for other requests."""
    if exchange.method != _TASK_RESULT:
        return 0
    call = facts.capture.calls.get(exchange.row)
    return None if call is None else call.ended_ns


def left_while_waiting(facts: CaptureFacts, exchange: Exchange, left_ns: int) -> Hit | None:
    """Make a note about a client that left while a task worked, or while its call waited for its own answer, or just after.

    None if it left at another time.
    """
    if ended_task_ns(facts, exchange) is None:
        waited = seconds(left_ns - exchange.at_ns)
        what = f"The {exchange.sender} left {waited} after it asked for the result of a task that may still work."
        blame = "Unclear: tasks/result is answered when the task has ended."
        advice = "Ask for the state of the task with tasks/get, or cancel it before you leave."
        return _unanswered_hit(exchange, what, "unclear", blame=blame, advice=advice, severity=Severity.NOTE)
    question = awaited(facts, exchange, left_ns) if exchange.sender == CLIENT else None
    if question is None or question.response is None:
        return None if question is None else _kept_waiting(facts, exchange, question)
    answer = "an error" if question.response.kind is Kind.ERROR else "a result"
    what = (
        f"The server kept {call_name(exchange)} waiting for {call_name(question)} (row {question.row}). The client answered that "
        f"with {answer} after {seconds(question.response.at_ns - question.at_ns)}, and left at once."
    )
    blame = "The client: it left before the server could go on."
    advice = "Wait for the response, or cancel the request before you leave."
    return _unanswered_hit(exchange, what, CLIENT, blame=blame, advice=advice, severity=Severity.NOTE)


def _kept_waiting(facts: CaptureFacts, exchange: Exchange, question: Exchange) -> Hit:
    name = f"{call_name(question)} (row {question.row})"
    what = f"The client never answered {name}, for which the server kept {call_name(exchange)} waiting."
    from ..protocol.handshake import undeclared  # as above

    if capability := undeclared(facts, question):
        blame = f"The server: the client had not declared the capability {capability}, for which it asked meanwhile."
        return _unanswered_hit(exchange, what, SERVER, blame=blame, severity=Severity.NOTE)
    blame = "The client: it did not answer the request that the server sent meanwhile."
    return _unanswered_hit(exchange, what, CLIENT, blame=blame, severity=Severity.NOTE)


def _unanswered_hit(exchange: Exchange, what: str, culprit: str, **details: Unpack[HitDetails]) -> Hit:
    return hit_in(UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit=culprit, **details)


def _process(facts: CaptureFacts, at_ns: int, record: Exit) -> Iterator[Hit]:
    """Find a server that did not start, left processes behind, or was never used."""
    if record.error:
        what = f"The server could not be started: {_command(facts)}{record.error.rstrip('.')}."
        yield hit_on_record(SERVER_NOT_STARTED, facts, at_ns, record.number, what, CONFIGURATION)
    if record.descendants and facts.left_running is not None:
        left = _still_running(record, facts.left_running)
        names = ", ".join(str(process.get("name", "?")) for process in left[:LISTED_CALLS])
        what = f"The server ended and left {len(left)} of its processes running: {names}."
        was_told = facts.signalled_ns is not None and facts.signalled_ns <= at_ns
        was_sudden = was_told or record.signal is not None  # it may have had no time to end them
        severity = Severity.NOTE if was_sudden else None
        launcher = facts.argv[0].rpartition("/")[2] if facts.argv else ""
        culprit, blame = (
            (
                "unclear",
                f"Unclear: the server, or {launcher}, which started it and ended before it: it did not end its child processes.",
            )
            if launcher in _LAUNCHERS
            else (SERVER, "")
        )
        yield hit_on_record(DESCENDANTS_LEFT, facts, at_ns, record.number, what, culprit, severity=severity, blame=blame)
    yield from _ended_by_signal(facts, record)
    if facts.capture.messages == 0 and facts.starts_ns and not facts.is_unseen(at_ns):
        ran_ns = at_ns - facts.starts_ns[0]
        if ran_ns > PATIENCE_NS:
            what = f"The server ran for {seconds(ran_ns)}, and the client never sent it a message."
            yield hit_on_record(UNUSED_START, facts, at_ns, record.number, what, CLIENT)


def _still_running(record: Exit, note: Note) -> Sequence[dict[str, Any]]:
    """Return the processes that a server left and that ran on, which the note lists by the names that they had then."""
    running = note.extra.get("descendants")
    return [process for process in running if isinstance(process, dict)] if isinstance(running, list) else record.descendants


def _ended_by_signal(facts: CaptureFacts, record: Exit) -> Iterator[Hit]:
    """Find a server that did not end with its input. It is a note if the first signal was enough."""
    closed_ns, signalled_ns = facts.stdin_closed_ns, facts.signalled_ns
    if closed_ns is None or signalled_ns is None or signalled_ns - closed_ns < _TIME_TO_END_NS:
        return
    is_killed = facts.was_killed or record.signal == "SIGKILL"
    waited_ns = facts.waited_ns
    was_busy = waited_ns is not None and waited_ns > _BUSY_NS
    if was_busy and not is_killed:
        return
    how = "only SIGKILL ended it" if is_killed else "a signal ended it"
    what = f"The server still ran {seconds(signalled_ns - closed_ns)} after the client had closed stdin, and {how}."
    details: HitDetails = {"severity": None if is_killed and not was_busy else Severity.NOTE}
    pending = [exchange for exchange in facts.unanswered if exchange.sender == CLIENT and exchange.at_ns < closed_ns]
    if pending:
        what += f" It had not answered {call_name(pending[-1])}."
        details["advice"] = "Cancel what still runs when stdin ends, and end the process."
    culprit: str = SERVER
    if was_busy:
        culprit = "unclear"
        details["blame"] = (
            f"Unclear: for {seconds(waited_ns or 0)} of that time the server waited for a processor of a busy machine."
        )
    elif waited_ns is None and not is_killed:
        details["blame"] = f"{END_OF_INPUT_IGNORED.blame} On a busy machine it may have been about to end."
    yield hit_on_record(END_OF_INPUT_IGNORED, facts, signalled_ns, record.number, what, culprit, **details)


def _may_be_lost(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Return whether a response may be missing from the capture: records after the request are lost, or the recording broke off."""
    broke_off = facts.end is None and facts.exit is None and facts.gone_ns is None
    return broke_off or (facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns)


def _died(facts: CaptureFacts, exit_ns: int) -> bool:
    """Return whether the server ended by itself while the client was connected."""
    gone_ns = exit_ns if facts.gone_ns is None else facts.gone_ns
    hole_ns = facts.last_hole_ns  # the client may have left in it, unless it asked for something later
    if hole_ns is not None and not any(row.sender == CLIENT and row.at_ns > hole_ns for row in facts.exchanges):
        return False
    if facts.signalled_ns is not None and 0 <= facts.signalled_ns - gone_ns < _GROUP_NS:
        return False  # the signal was for the whole group of processes, and reached the server first
    return exit_ns - gone_ns < EXIT_NS and (facts.left_ns is None or gone_ns < facts.left_ns)


def _says_why(facts: CaptureFacts, record: Exit) -> bool:
    """Return whether a server that answered nothing says why it failed: then it would have failed if the client had stayed, too."""
    if not record.code or facts.signalled_ns is not None or any(exchange.response is not None for exchange in facts.exchanges):
        return False
    from .exit_causes import exit_cause  # as above

    return bool(_missing_program(facts, record)) or exit_cause(facts) is not None


def _command(facts: CaptureFacts) -> str:
    """Name the program of the server's command, followed by a colon; empty where it is not known."""
    argv = facts.argv
    return f"{quoted(argv[0])}: " if argv else ""


def _missing_program(facts: CaptureFacts, record: Exit) -> str:
    """Quote the line by which a shell or an interpreter says that it cannot run what the command names; empty if none did."""
    line = error_line(facts.last_lines)
    if not record.code or any(exchange.response is not None for exchange in facts.exchanges):
        return ""
    is_shell = record.code in _SHELL_CODES and _shell_complains.search(line)
    is_launcher = _launcher_complains.search(line) and any(
        _is_named(argument, line) for argument in facts.argv if len(argument) > _FLAG_LETTERS
    )
    return quoted(line, _ERROR_LETTERS) if is_shell or is_launcher else ""


def _is_named(argument: str, line: bytes) -> bool:
    """Return whether a line complains about an argument itself, and not about a module that it imports."""
    return b"imported from" not in line and bool(re.search(rb"(?<![\w.@-])%b(?![\w/-])" % re.escape(argument.encode()), line))


def _death(facts: CaptureFacts, at_ns: int, record: Exit, pending: list[Exchange]) -> str:
    how = f"was killed by {record.signal}" if record.signal else f"ended with code {record.code}"
    calls = listed(map(call_name, pending), LISTED_CALLS)
    connected = (
        f"while the client was connected{_notified(facts, at_ns)}" if _died(facts, at_ns) else "and had answered nothing"
    )
    waiting = f"while the client waited for {calls}" if pending else connected
    return f"The server {how} {waiting}{_log(facts) or '.'}"


def _notified(facts: CaptureFacts, at_ns: int) -> str:
    """Name the notification that reached the server just before its end, if nothing was sent after it; empty if none did."""
    sent = [use.first.message for use in facts.notifications.values() if isinstance(use.first, UnpairedMessage)]
    sent += [exchange.cancelled for exchange in facts.cancelled if exchange.cancelled is not None]
    last = max((message for message in sent if message.sender == CLIENT), key=lambda message: message.at_ns, default=None)
    if last is None or not 0 <= at_ns - last.at_ns <= SOON_NS:
        return ""
    if any(exchange.sender == CLIENT and exchange.at_ns > last.at_ns for exchange in facts.exchanges):
        return ""
    return f", {seconds(at_ns - last.at_ns)} after it had sent {last.method}"


def _log(facts: CaptureFacts) -> str:
    """Quote what stderr says about the end: the last error, and the last lines."""
    tail = [line for line in map(plain_line, list(facts.last_lines)[-_TAIL:]) if line]
    error = error_line(facts.last_lines)
    others = " ".join(quoted(line) for line in tail if line not in error)
    if error:
        rest = f", {'after' if tail[-1:] == [error] else 'and its last lines:'} {others}" if others else ""
        return f"; its last error on stderr: {quoted(error, _ERROR_LETTERS)}{rest}"
    if others:
        return f"; its last lines on stderr: {others}"
    from .exit_causes import noise  # as above

    written = noise(facts)
    is_told = len(written) > 1 and not written[-1].startswith((b" ", b"-"))  # else it is an option in the usage
    last = f", and at last {quoted(written[-1])}" if is_told else ""
    return f"; it wrote nothing to stderr, and {quoted(written[0])} to stdout{last}." if written else ""


def _unanswered(facts: CaptureFacts, exchange: Exchange) -> Hit:
    """Blame the side that ended first; but a receiver that kept the sender waiting for five seconds is to blame even so.

    A client that leaves while the server waits is to blame only after five seconds, and never for a question to a person.
    """
    sender, receiver = exchange.sender, OTHER_SIDE[exchange.sender]
    client_first = facts.left_ns, facts.gone_ns
    sender_ns, receiver_ns = client_first if sender == CLIENT else client_first[::-1]
    call = call_name(exchange)
    if receiver_ns is not None and (sender_ns is None or receiver_ns < sender_ns):
        waited_ns = receiver_ns - exchange.at_ns
        if receiver == SERVER:
            reason = f"it closed its stdout first, after {seconds(max(waited_ns, 0))}"
            return never_answered(facts, exchange, reason, receiver_ns)
        if waited_ns >= PATIENCE_NS and exchange.method not in FOR_PEOPLE:
            return never_answered(facts, exchange, f"it left first, after {seconds(waited_ns)}", receiver_ns)
        if waited_ns <= 0:
            what, culprit = f"The server sent {call} when the client was gone.", SERVER
            blame = "The server: it sent the request when the client was gone."
        else:
            what = f"The client left {seconds(waited_ns)} after the server sent {call}, without an answer."
            culprit, blame = CLIENT, "The client: it left."
        return _unanswered_hit(exchange, what, culprit, blame=blame, severity=Severity.NOTE)
    if sender_ns is None:
        end_ns = facts.capture.last_ns + facts.capture.shift_ns
        return never_answered(facts, exchange, "the recording ended with both sides connected", end_ns)
    if (hit := left_while_waiting(facts, exchange, sender_ns)) is not None:
        return hit
    waited_ns = sender_ns - exchange.at_ns
    heard_ns = max((message.at_ns for message in exchange.notifications if message.sender == receiver), default=exchange.at_ns)
    if min(waited_ns, sender_ns - heard_ns) < PATIENCE_NS:
        return left_early(exchange, sender_ns)
    if longer_ns := usual_ns(facts, exchange, sender_ns):
        return left_early(exchange, sender_ns, other_ns=longer_ns)
    return never_answered(facts, exchange, f"the {sender} left first, after {seconds(waited_ns)}", sender_ns)
