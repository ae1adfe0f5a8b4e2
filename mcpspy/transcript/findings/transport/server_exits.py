"""Findings about who went first on stdio: requests without an answer, and servers that died. `http_endings` is for HTTP."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER, Exit
from ...model import Exchange
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit, hit_in
from ..words import call_name, quoted, seconds

UNANSWERED_REQUEST: Final = Rule(
    name="unanswered-request",
    title="Request never answered",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="A request that was never answered and not cancelled.",
    why="Who asked waits until a timeout of its own.",
    blame="Whoever was asked: the request reached it, and there was time to answer.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· 30.0 s later\n· the client closes stdin',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    fix="Answer every request, with an error if need be.",
)

SERVER_DIED: Final = Rule(
    name="server-died",
    title="Server died",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server's process ended while the client was there, with calls pending or with a failure.",
    why="The pending calls stay unanswered, and the client has no server any more.",
    blame="The server: it ended by itself, before the client closed anything.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n! KeyError: \'TOKEN\'\n· the server exits 1',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n'
    "· the client closes stdin\n· the server exits 1",
    fix="Read the server's last lines on stderr; run its command by itself.",
)

SERVER_NOT_STARTED: Final = Rule(
    name="server-not-started",
    title="Server did not start",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server's command could not be started.",
    why="The client sees a server that is gone at once.",
    blame="Whoever wrote the command down: the system found no such program, or may not run it.",
    example="· the server does not start: command not found",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Check the command, its path and its permissions: clients start servers with a PATH of their own.",
)

DESCENDANTS_LEFT: Final = Rule(
    name="descendants-left",
    title="Processes left behind",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The server ended and left processes behind that it had started.",
    why="They go on without anybody who reads their output or ends them; start by start they pile up.",
    blame="The server: it started them, and ended without ending them. A launcher like npx or sh -c may stand between.",
    example="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0, leaving chromium, sleep",
    clean="· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0",
    fix="End children when stdin ends and on SIGTERM; start the server itself instead of a launcher.",
)

UNUSED_START: Final = Rule(
    name="unused-start",
    title="Server started but never used",
    family=Family.TRANSPORT,
    severity=Severity.INFO,
    what="The server was started, ran for five seconds or more, and nobody sent a message.",
    why="It costs memory and start-up time; a client that starts a server twice may have forgotten the one.",
    blame="The client: it started the server, and did not write to it.",
    example="! ready\n· 60.0 s later\n· the client closes stdin",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· 60.0 s later',
    fix="See whether the client has the server in two of its configuration files, and talks to the other one.",
)

RULES: Final = (UNANSWERED_REQUEST, SERVER_DIED, SERVER_NOT_STARTED, DESCENDANTS_LEFT, UNUSED_START)

PATIENCE_NS: Final = 5_000_000_000
"""Who leaves sooner than this after asking did not wait for the answer; who waited longer was kept waiting."""

LAST_BREATH_NS: Final = 1_000_000_000
"""A server that ends within this time after it closed its stdout closed it by ending."""

LISTED_CALLS: Final = 3

OPEN_ENDED: Final = {"subscriptions/listen"}
"""Requests that last as long as they are wanted, and need no answer (MCP specification 2026-07-28, subscriptions)."""

FOR_PEOPLE: Final = {"elicitation/create"}
"""What a client passes on to a person, who may take their time, or leave."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Who left whom without an answer."""
    pending = [one for one in facts.unanswered if one.transaction is None and is_due(one) and not _unseen(facts, one)]
    if facts.exit is not None:
        at_ns, record = facts.exit
        if record.error:
            what = f"The server could not be started: {_command(facts)}{record.error.rstrip('.')}."
            yield _about_process(SERVER_NOT_STARTED, facts, at_ns, record, what)
        if record.descendants:
            names = ", ".join(str(one.get("name", "?")) for one in record.descendants[:LISTED_CALLS])
            what = f"The server ended and left {len(record.descendants)} of its processes behind: {names}."
            is_sudden = facts.was_signalled or record.signal is not None  # then they may be about to end, too
            severity = Severity.INFO if is_sudden else None
            yield _about_process(DESCENDANTS_LEFT, facts, at_ns, record, what, severity=severity)
        if (
            facts.capture.messages == 0
            and facts.starts_ns
            and at_ns - facts.starts_ns[0] > PATIENCE_NS
            and not facts.is_unseen(at_ns)
        ):
            what = f"The server ran for {seconds(at_ns - facts.starts_ns[0])}, and the client never sent it a message."
            yield _about_process(UNUSED_START, facts, at_ns, record, what, culprit=CLIENT)
        if not record.error and _died(facts, at_ns):
            left_alone = [one for one in pending if one.sender == CLIENT and one.at_ns <= at_ns]
            pending = [one for one in pending if one.sender != CLIENT or one.at_ns > at_ns]
            if left_alone or record.signal or record.code:
                yield _about_process(SERVER_DIED, facts, at_ns, record, _obituary(facts, record, left_alone))
    question = max((one for one in pending if one.sender == SERVER), key=lambda one: one.at_ns, default=None)
    for exchange in (one for one in pending if not one.is_probe):
        if question is not None and exchange.sender == CLIENT and question.at_ns > exchange.at_ns:
            what = f"{call_name(exchange)} was never answered: the server had asked {call_name(question)}, and waited for that."
            yield hit_in(UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit=CLIENT, severity=Severity.INFO)
        else:
            yield _unanswered(facts, exchange)


def is_due(exchange: Exchange) -> bool:
    """Whether a request needs an answer."""
    return exchange.method not in OPEN_ENDED


def _unseen(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Whether an answer may have come unrecorded: records are missing after the request, or the recording broke off."""
    broken_off = facts.end is None and facts.exit is None and facts.gone_ns is None
    return broken_off or (facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns)


def _died(facts: CaptureFacts, exit_ns: int) -> bool:
    """Whether the server ended by itself while the client was there."""
    gone_ns = exit_ns if facts.gone_ns is None else facts.gone_ns
    return exit_ns - gone_ns < LAST_BREATH_NS and (facts.left_ns is None or gone_ns < facts.left_ns)


def _command(facts: CaptureFacts) -> str:
    """The program of the server's command, to be followed by what is wrong with it; empty where nobody wrote it down."""
    header = facts.capture.header
    argv = header.tapped.get("argv") if header is not None else None
    return f"{quoted(str(argv[0]).encode())}: " if isinstance(argv, list) and argv else ""


def _obituary(facts: CaptureFacts, record: Exit, pending: list[Exchange]) -> str:
    how = f"was killed by {record.signal}" if record.signal else f"ended with code {record.code}"
    calls = ", ".join(call_name(one) for one in pending[:LISTED_CALLS])
    more = f" and {len(pending) - LISTED_CALLS} more" if len(pending) > LISTED_CALLS else ""
    waiting = f" while the client waited for {calls}{more}" if pending else " while the client was there"
    words = " ".join(quoted(line) for line in facts.last_lines)
    return f"The server {how}{waiting}." + (f" Its last lines on stderr: {words}" if words else "")


def _about_process(
    rule: Rule,
    facts: CaptureFacts,
    at_ns: int,
    record: Exit,
    what: str,
    *,
    culprit: str = SERVER,
    severity: Severity | None = None,
) -> Hit:
    return hit(
        rule,
        at_ns=at_ns,
        capture=facts.capture.index,
        number=record.number,
        row=None,
        what=what,
        culprit=culprit,
        severity=severity,
    )


def _unanswered(facts: CaptureFacts, exchange: Exchange) -> Hit:
    left_ns, gone_ns, row, request = facts.left_ns, facts.gone_ns, exchange.row, exchange.request
    asked = f"{call_name(exchange)} was never answered"
    if exchange.sender == CLIENT:
        answerer, answerer_ns, asker, asker_ns = "server", gone_ns, "client", left_ns
    else:
        answerer, answerer_ns, asker, asker_ns = "client", left_ns, "server", gone_ns
    if answerer_ns is not None and (asker_ns is None or answerer_ns < asker_ns):
        if exchange.sender == CLIENT:
            return hit_in(UNANSWERED_REQUEST, request, row, f"{asked}: the server closed its stdout.", culprit=answerer)
        waited_ns = answerer_ns - exchange.at_ns
        if waited_ns >= PATIENCE_NS and exchange.method not in FOR_PEOPLE:
            what = f"{asked} in {seconds(waited_ns)}; then the client left."
            return hit_in(UNANSWERED_REQUEST, request, row, what, culprit=answerer)
        what = f"{asked}: the client was leaving."
        culprit = asker if answerer_ns <= exchange.at_ns else answerer
        return hit_in(UNANSWERED_REQUEST, request, row, what, culprit=culprit, severity=Severity.INFO)
    if asker_ns is None:
        return hit_in(UNANSWERED_REQUEST, request, row, f"{asked}.", culprit=answerer)
    waited_ns = asker_ns - exchange.at_ns
    if waited_ns < PATIENCE_NS:
        what = f"{asked}: the {asker} left {seconds(max(waited_ns, 0))} after asking."
        return hit_in(UNANSWERED_REQUEST, request, row, what, culprit=asker, severity=Severity.INFO)
    return hit_in(UNANSWERED_REQUEST, request, row, f"{asked} in {seconds(waited_ns)}.", culprit=answerer)
