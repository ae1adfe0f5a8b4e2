"""The standard list of faults: what each is, and the intercepts that cause it.

Each hits one message, so that a peer that tries again finds a sound one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

HUGE_LETTERS: Final = 8_000_000
"""A text of this length is huge: eight MB."""

NO_FAULT: Final = "none"
"""The name of the trial without a fault, with which the others are compared."""


class FaultSettings(NamedTuple):
    """The `calls` that are hit, a filter; a time that is `slow`, and one that is too `late`, as in `3s`; files with answers."""

    calls: str
    slow: str
    late: str
    tool_error: str
    huge: str


STDIO: Final = "stdio"
HTTP: Final = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFault:
    """A fault: its name, what happens in a few words, and the intercepts that make it happen.

    One that `needs_events` is played, over HTTP, to a client that gets its answers as events: a body has room for one message.
    """

    name: str
    words: str
    intercepts: Callable[[FaultSettings], tuple[str, ...]]
    transports: tuple[str, ...] = (STDIO, HTTP)
    needs_events: bool = False


def _request(action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({settings.calls}) kind:request => {_filled(action, settings)} max=1",)


def _answer(action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({settings.calls}) kind:result => {_filled(action, settings)} max=1",)


def _opening(kind: str, action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({_OPENINGS}) kind:{kind} => {_filled(action, settings)} max=1",)


_OPENINGS: Final = "method:initialize or method:server/discover"
"""The first requests of the two eras."""


def _filled(action: str, settings: FaultSettings) -> str:
    for name, value in settings._asdict().items():
        action = action.replace(f"<{name}>", json.dumps(value) if name in ("tool_error", "huge") else value)
    return action


def _line(message: dict[str, object]) -> str:
    """Write the action that sends a message of mcpspy's own first."""
    return f"garbage {json.dumps(json.dumps({'jsonrpc': '2.0', **message}))}"


def _named(
    *faults: tuple[str, str, Callable[[FaultSettings], tuple[str, ...]]],
    alone: Mapping[str, str] = {},
    with_events: Collection[str] = (),
) -> dict[str, TrialFault]:
    """Return the faults by name; `alone` are those that only one transport has."""
    return {
        name: TrialFault(
            name=name,
            words=words,
            intercepts=intercepts,
            transports=(alone[name],) if name in alone else (STDIO, HTTP),
            needs_events=name in with_events,
        )
        for name, words, intercepts in faults
    }


SERVER_FAULTS: Final = _named(
    (NO_FAULT, "no fault", lambda _: ()),
    ("slow", "the answer is slow", _answer("delay <slow>")),
    ("late", "the answer is later than most timeouts", _answer("delay <late>")),
    ("silent", "the request is never answered", _request("drop")),
    ("error", "the answer is an error", _request('error -32603 "Internal error"')),
    ("unknown-method", "the method is unknown", _request('error -32601 "Method not found"')),
    ("tool-error", "the tool fails", _request("respond <tool_error>")),
    ("empty-result", "the result is empty", _answer("set result={}")),
    ("wrong-type", "the result has a member of the wrong type", _answer("set result.content=42")),
    ("half-line", "the answer is cut off after 20 bytes", _answer("truncate 20")),
    ("noise", "a line that is no message comes before the answer", _answer('garbage "Loading the model..."')),
    ("early-noise", "a banner comes before the first answer", _opening("result", 'garbage "Starting the server..."')),
    ("duplicate", "the answer comes twice", _answer("duplicate")),
    ("reordered", "an answer comes after the answer to a later request", _answer("reorder 500ms")),
    ("wrong-id", "the answer has the id of no request", _answer('set id="mcpspy-wrong"')),
    ("stray-answer", "an answer to no request comes first", _answer(_line({"id": "mcpspy-stray", "result": {}}))),
    ("unknown-notification", "an unknown notification comes first", _answer(_line({"method": "notifications/mcpspy"}))),
    ("unknown-request", "an unknown request comes first", _answer(_line({"id": "mcpspy-1", "method": "mcpspy/unknown"}))),
    ("huge", "the answer has 8 MB", _request("respond <huge>")),
    ("disconnect", "the connection is closed during the call", _request("disconnect")),
    ("broken-answer", "the connection is closed within the answer", _answer("disconnect 20")),
    ("crash", "the server dies during the call", _request("kill")),
    ("status-500", "the status is 500", _request("status 500")),
    ("status-429", "the status is 429, with Retry-After: 1", _request('status 429 "Retry-After: 1"')),
    ("expired-session", "the session is over: the status is 404", _request("expire")),
    ("stall", "the server says nothing from the answer on", _answer("stall")),
    (
        "no-tools",
        "the server lists no tools",
        lambda _: ("method:tools/list kind:result => set result.tools=[] max=1",),
    ),
    ("slow-start", "the first answer is slow", _opening("result", "delay <slow>")),
    ("refused-start", "the first answer is an error", _opening("request", 'error -32603 "Internal error"')),
    (
        "unknown-revision",
        "the server speaks an unknown revision",
        lambda _: ('method:initialize kind:result => set result.protocolVersion="1999-01-01" max=1',),
    ),
    alone={"crash": STDIO, "status-500": HTTP, "status-429": HTTP, "expired-session": HTTP},
    with_events=("duplicate", "stray-answer", "unknown-notification", "unknown-request", "broken-answer"),
)
"""The faults of a server, by name."""

CLIENT_FAULTS: Final = _named(
    (NO_FAULT, "no fault", lambda _: ()),
    ("slow", "the request comes slowly", _request("delay <slow>")),
    ("half-line", "the request is cut off after 20 bytes", _request("truncate 20")),
    ("noise", "a line that is no message comes before the request", _request('garbage "GET / HTTP/1.1"')),
    ("duplicate", "the request comes twice, with one id", _request("duplicate")),
    ("unknown-method", "the method is unknown", _request('set method="mcpspy/unknown"')),
    ("unknown-tool", "the tool is unknown", _request('set params.name="mcpspy_unknown"')),
    ("no-params", "the request has no params", _request("remove params")),
    ("wrong-type", "the arguments are no object", _request("set params.arguments=42")),
    ("no-arguments", "the arguments are empty", _request("set params.arguments={}")),
    ("more-arguments", "there is an argument that nobody knows", _request("set params.arguments.mcpspy_unknown=1")),
    ("null-id", "the id is null", _request("set id=null")),
    ("float-id", "the id is a fraction", _request("set id=0.5")),
    (
        "unknown-cancel",
        "a cancellation of no request comes first",
        _request(_line({"method": "notifications/cancelled", "params": {"requestId": "mcpspy-none"}})),
    ),
    ("stray-answer", "an answer to no request comes first", _request(_line({"id": "mcpspy-stray", "result": {}}))),
    ("unknown-notification", "an unknown notification comes first", _request(_line({"method": "notifications/mcpspy"}))),
    ("huge", "an argument has 8 MB", _request("set params.arguments.mcpspy_huge=<huge>")),
    (
        "no-initialized",
        "notifications/initialized does not come",
        lambda _: ("method:notifications/initialized => drop max=1",),
    ),
    (
        "unknown-revision",
        "the client speaks an unknown revision",
        lambda _: ('method:initialize kind:request => set params.protocolVersion="1999-01-01" max=1',),
    ),
    ("disconnect", "the connection is closed during the call", _request("disconnect")),
)
"""The faults of a client, by name."""
