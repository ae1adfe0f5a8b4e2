"""Findings about requests without an answer on stdio, and about the server's process. `disconnects` is about HTTP."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER, Exit
from ...model import Exchange
from ..facts import CaptureFacts
from ..hits import hit_on_record
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, listed, quoted, seconds

UNANSWERED_REQUEST: Final = Rule(
    name="unanswered-request",
    title="Request never answered",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="A request was neither answered nor cancelled.",
    why="The side that sent it waits until its own timeout.",
    blame="The receiver: it received the request and never replied.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· 30.0 s later\n· the client closes stdin',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    fix="Answer every request, with an error if nothing else fits.",
)

SERVER_DIED: Final = Rule(
    name="server-died",
    title="Server died",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server's process ended while the client was connected, with calls pending or with a failure.",
    why="Pending calls stay unanswered, and the client has lost its server.",
    blame="The server: it ended by itself, before the client closed anything.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n! KeyError: \'TOKEN\'\n· the server exits 1',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n'
    "· the client closes stdin\n· the server exits 1",
    fix="Run its command in a terminal, and read what it writes to stderr.",
)

SERVER_NOT_STARTED: Final = Rule(
    name="server-not-started",
    title="Server did not start",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server's command could not be started.",
    why="The client only sees that the server is gone at once.",
    blame="The server's configuration: there is no such program, or it may not be run.",
    example="· the server does not start: command not found",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Check the command, its path and its permissions; clients start servers with a PATH of their own.",
)

DESCENDANTS_LEFT: Final = Rule(
    name="descendants-left",
    title="Processes left behind",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The server ended and left processes running that it had started.",
    why="Nobody reads their output or ends them, and each start adds more.",
    blame="The server, or a launcher such as npx or sh -c: it did not end its child processes.",
    example="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0, leaving chromium, sleep",
    clean="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0",
    fix="End child processes when stdin closes and on SIGTERM, or start the server without a launcher.",
)

UNUSED_START: Final = Rule(
    name="unused-start",
    title="Server started but never used",
    family=Family.TRANSPORT,
    severity=Severity.INFO,
    what="The server ran for five seconds or more, and nobody sent it a message.",
    why="It costs memory and start-up time; some clients start a server twice and forget one.",
    blame="The client: it started the server and never wrote to it.",
    example="! ready\n· 60.0 s later\n· the client closes stdin",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· 60.0 s later',
    fix="Look for the server in two of the client's configuration files.",
)

RULES: Final = (UNANSWERED_REQUEST, SERVER_DIED, SERVER_NOT_STARTED, DESCENDANTS_LEFT, UNUSED_START)

PATIENCE_NS: Final = 5_000_000_000
"""A side that leaves sooner than this after its request did not wait for the answer; one that waited longer was kept waiting."""

EXIT_NS: Final = 1_000_000_000
"""A server that ends within this time after it closed its stdout closed it by ending."""

LISTED_CALLS: Final = 3

OPEN_ENDED: Final = {"subscriptions/listen"}
"""Requests that last until they are cancelled, and need no answer (MCP specification 2026-07-28, subscriptions)."""

FOR_PEOPLE: Final = {"elicitation/create"}
"""Requests that a client shows to a person, who may take their time or leave."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find what the end of a server's process tells, and requests without an answer."""
    pending = [
        exchange
        for exchange in facts.unanswered
        if exchange.transaction is None and needs_answer(exchange) and not _may_be_lost(facts, exchange)
    ]
    if facts.exit is not None:
        at_ns, record = facts.exit
        yield from _process(facts, at_ns, record)
        if not record.error and _died(facts, at_ns):
            left_alone = [exchange for exchange in pending if exchange.sender == CLIENT and exchange.at_ns <= at_ns]
            pending = [exchange for exchange in pending if exchange.sender != CLIENT or exchange.at_ns > at_ns]
            if left_alone or record.signal or record.code:
                yield hit_on_record(SERVER_DIED, facts, at_ns, record.number, _death(facts, record, left_alone), SERVER)
    of_server = [exchange for exchange in pending if exchange.sender == SERVER]
    last = max(of_server, key=lambda exchange: exchange.at_ns, default=None)
    for exchange in pending:
        if exchange.is_probe:
            continue
        if last is not None and exchange.sender == CLIENT and last.at_ns > exchange.at_ns:
            reason = f"the server waited for the answer to {call_name(last)}"
            blame = "The client: it did not answer the request that the server sent meanwhile."
            yield unanswered(exchange, reason, CLIENT, blame=blame, severity=Severity.INFO)
        else:
            yield _unanswered(facts, exchange)


def needs_answer(exchange: Exchange) -> bool:
    """Tell whether a request needs an answer."""
    return exchange.method not in OPEN_ENDED


def other_side(side: str) -> str:
    """Give the server for the client and the client for the server."""
    return SERVER if side == CLIENT else CLIENT


def unanswered(exchange: Exchange, reason: str, culprit: str, *, blame: str = "", severity: Severity | None = None) -> Hit:
    """Make a finding about a request without an answer; `reason` says in a few words how that came, and may be empty."""
    if not blame and culprit == exchange.sender:
        blame = f"The {culprit}: it did not wait for the answer."
    what = f"{call_name(exchange)} was never answered" + (f": {reason}." if reason else ".")
    request = exchange.request
    return hit_in(UNANSWERED_REQUEST, request, exchange.row, what, culprit=culprit, blame=blame, severity=severity)


def _process(facts: CaptureFacts, at_ns: int, record: Exit) -> Iterator[Hit]:
    """Find a server that did not start, left processes behind, or was never used."""
    if record.error:
        what = f"The server could not be started: {_command(facts)}{record.error.rstrip('.')}."
        yield hit_on_record(SERVER_NOT_STARTED, facts, at_ns, record.number, what, SERVER)
    if record.descendants:
        names = ", ".join(str(process.get("name", "?")) for process in record.descendants[:LISTED_CALLS])
        what = f"The server ended and left {len(record.descendants)} of its processes running: {names}."
        was_sudden = facts.was_signalled or record.signal is not None  # the processes may be about to end too
        severity = Severity.INFO if was_sudden else None
        yield hit_on_record(DESCENDANTS_LEFT, facts, at_ns, record.number, what, SERVER, severity=severity)
    if facts.capture.messages == 0 and facts.starts_ns and not facts.is_unseen(at_ns):
        ran_ns = at_ns - facts.starts_ns[0]
        if ran_ns > PATIENCE_NS:
            what = f"The server ran for {seconds(ran_ns)}, and the client never sent it a message."
            yield hit_on_record(UNUSED_START, facts, at_ns, record.number, what, CLIENT)


def _may_be_lost(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Tell whether an answer may be missing from the capture: records after the request are lost, or the recording broke off."""
    broke_off = facts.end is None and facts.exit is None and facts.gone_ns is None
    return broke_off or (facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns)


def _died(facts: CaptureFacts, exit_ns: int) -> bool:
    """Tell whether the server ended by itself while the client was connected."""
    gone_ns = exit_ns if facts.gone_ns is None else facts.gone_ns
    return exit_ns - gone_ns < EXIT_NS and (facts.left_ns is None or gone_ns < facts.left_ns)


def _command(facts: CaptureFacts) -> str:
    """Name the program of the server's command, followed by a colon; empty where it is not known."""
    header = facts.capture.header
    argv = header.tapped.get("argv") if header is not None else None
    return f"{quoted(str(argv[0]).encode())}: " if isinstance(argv, list) and argv else ""


def _death(facts: CaptureFacts, record: Exit, pending: list[Exchange]) -> str:
    how = f"was killed by {record.signal}" if record.signal else f"ended with code {record.code}"
    calls = listed(map(call_name, pending), LISTED_CALLS)
    waiting = f"while the client waited for {calls}" if pending else "while the client was connected"
    lines = " ".join(quoted(line) for line in facts.last_lines)
    return f"The server {how} {waiting}" + (f"; its last lines on stderr: {lines}" if lines else ".")


def _unanswered(facts: CaptureFacts, exchange: Exchange) -> Hit:
    """Blame the side that ended first; but a receiver that kept the sender waiting for five seconds is to blame even so.

    A client that leaves while the server waits is to blame only after five seconds, and never for a question to a person.
    """
    sender, receiver = exchange.sender, other_side(exchange.sender)
    client_first = facts.left_ns, facts.gone_ns
    sender_ns, receiver_ns = client_first if sender == CLIENT else client_first[::-1]
    if receiver_ns is not None and (sender_ns is None or receiver_ns < sender_ns):
        if receiver == SERVER:
            return unanswered(exchange, "the server closed its stdout", receiver)
        waited_ns = receiver_ns - exchange.at_ns
        if waited_ns >= PATIENCE_NS and exchange.method not in FOR_PEOPLE:
            return unanswered(exchange, f"the client left after {seconds(waited_ns)}", receiver)
        culprit = sender if receiver_ns <= exchange.at_ns else receiver
        blame = "The server: it sent the request when the client was gone." if culprit == sender else "The client: it left."
        return unanswered(exchange, "the client was leaving", culprit, blame=blame, severity=Severity.INFO)
    if sender_ns is None:
        return unanswered(exchange, "", receiver)
    waited_ns = sender_ns - exchange.at_ns
    if waited_ns < PATIENCE_NS:
        return unanswered(exchange, f"the {sender} left after {seconds(max(waited_ns, 0))}", sender, severity=Severity.INFO)
    return unanswered(exchange, f"the {sender} waited {seconds(waited_ns)}", receiver)
