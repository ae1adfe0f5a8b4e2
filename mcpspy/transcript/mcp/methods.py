"""Table of all methods and notifications of MCP: their senders, their revisions, and the capabilities they need.

Everything else that mcpspy knows about methods is derived from this table; the shapes of their parameters are in `mcp-types`.
Source: MCP specification, schema of each revision (the unions `ClientRequest`, `ServerRequest`, `ClientNotification`,
`ServerNotification`), and the documents of extensions (SEP-2663 for tasks, SEP-2640 for skills).
"""

from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

from ...records import CLIENT, OTHER_SIDE, SERVER, Side
from .revisions import FIRST_MODERN, LATEST, OLDEST, position

MethodKind: TypeAlias = Literal["request", "notification"]
Capability: TypeAlias = tuple[str, ...]
"""The side that declares a capability, and the members that lead to it: `("server", "tools", "listChanged")`."""

INITIALIZED: Final = "notifications/initialized"
PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
INITIALIZE: Final = "initialize"
DISCOVER: Final = "server/discover"
PING: Final = "ping"
LISTEN: Final = "subscriptions/listen"
OPENINGS: Final = frozenset({INITIALIZE, DISCOVER})
"""The methods with which a client opens, to agree on a revision."""

TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"
"""Names of extensions in `capabilities.extensions`."""

_BEFORE_MODERN: Final = "2025-11-25"


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: a method that one side may send, from the revision `first` to `last`. A method may have several rows."""

    name: str
    kind: MethodKind
    sender: Side
    first: str = OLDEST
    last: str = LATEST
    needs: Capability = ()
    """The capability that has to be declared before it is sent; empty if none has to."""
    about: str = ""
    """The member of `params` with its target; for `completion/complete` see `fields`."""
    extension: str = ""
    deprecated: str = ""
    """The revision that deprecates it and still has it."""
    inside: bool = False
    """True if it is a member of `inputRequests` in a result and no message of its own; the retry brings its answer."""
    may_need_input: bool = False
    """True if its result may be `input_required`, from 2026-07-28."""

    def is_in(self, revision: str) -> bool:
        """Return whether `revision` has it, or the released revision nearest to that one."""
        return position(self.first) <= position(revision) <= position(self.last)


def _request(sender: Side, name: str, first: str = OLDEST, last: str = LATEST, **facts: object) -> Method:
    return Method(name=name, kind="request", sender=sender, first=first, last=last, **facts)  # type: ignore[arg-type]  # **facts


def _notification(sender: Side, name: str, first: str = OLDEST, last: str = LATEST, **facts: object) -> Method:
    name = f"notifications/{name}"
    return Method(name=name, kind="notification", sender=sender, first=first, last=last, **facts)  # type: ignore[arg-type]  # **facts


def _tasks(sender: Side) -> tuple[Method, ...]:
    """Return the rows of tasks in 2025-11-25. Either side may run tasks for the other; the side that runs them declares it."""
    first = last = _BEFORE_MODERN
    host = OTHER_SIDE[sender]
    return (
        _request(sender, "tasks/get", first, last, needs=(host, "tasks"), about="taskId"),
        _request(sender, "tasks/result", first, last, needs=(host, "tasks"), about="taskId"),
        _request(sender, "tasks/list", first, last, needs=(host, "tasks", "list")),
        _request(sender, "tasks/cancel", first, last, needs=(host, "tasks", "cancel"), about="taskId"),
        _notification(sender, "tasks/status", first, last, needs=(sender, "tasks"), about="taskId"),
    )


_PROMPTS: Final = (SERVER, "prompts")
_RESOURCES: Final = (SERVER, "resources")
_TOOLS: Final = (SERVER, "tools")
_LOGGING: Final = (SERVER, "logging")
_SUBSCRIBE: Final = (SERVER, "resources", "subscribe")
_COMPLETIONS: Final = (SERVER, "completions")
_SAMPLING: Final = (CLIENT, "sampling")
_ROOTS: Final = (CLIENT, "roots")
_ELICITATION: Final = (CLIENT, "elicitation")
_TASKS_OF_SERVER: Final = (SERVER, "extensions", TASKS)
_SKILLS_OF_SERVER: Final = (SERVER, "extensions", SKILLS)

METHODS: Final = (
    # Requests of the client
    _request(CLIENT, INITIALIZE, last=_BEFORE_MODERN, about="protocolVersion"),
    _request(CLIENT, "ping", last=_BEFORE_MODERN),
    _request(CLIENT, DISCOVER, FIRST_MODERN),
    _request(CLIENT, LISTEN, FIRST_MODERN),
    _request(CLIENT, "tools/list", needs=_TOOLS),
    _request(CLIENT, "tools/call", needs=_TOOLS, about="name", may_need_input=True),
    _request(CLIENT, "prompts/list", needs=_PROMPTS),
    _request(CLIENT, "prompts/get", needs=_PROMPTS, about="name", may_need_input=True),
    _request(CLIENT, "resources/list", needs=_RESOURCES),
    _request(CLIENT, "resources/templates/list", needs=_RESOURCES),
    _request(CLIENT, "resources/read", needs=_RESOURCES, about="uri", may_need_input=True),
    _request(CLIENT, "resources/subscribe", last=_BEFORE_MODERN, needs=_SUBSCRIBE, about="uri"),
    _request(CLIENT, "resources/unsubscribe", last=_BEFORE_MODERN, needs=_SUBSCRIBE, about="uri"),
    _request(CLIENT, "completion/complete", last="2024-11-05"),  # the capability came with the next revision
    _request(CLIENT, "completion/complete", "2025-03-26", needs=_COMPLETIONS),
    _request(CLIENT, "logging/setLevel", last=_BEFORE_MODERN, needs=_LOGGING, about="level"),
    *_tasks(CLIENT),
    _request(CLIENT, "tasks/get", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "tasks/update", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "tasks/cancel", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "skills/list", needs=_SKILLS_OF_SERVER, extension=SKILLS),
    _request(CLIENT, "skills/get", needs=_SKILLS_OF_SERVER, about="uri", extension=SKILLS),
    _request(CLIENT, "resources/directory/read", needs=(*_SKILLS_OF_SERVER, "directoryRead"), about="uri", extension=SKILLS),
    # Requests of the server; from 2026-07-28 on they are parts of results
    _request(SERVER, "ping", last=_BEFORE_MODERN),
    _request(SERVER, "sampling/createMessage", last=_BEFORE_MODERN, needs=_SAMPLING),
    _request(SERVER, "sampling/createMessage", FIRST_MODERN, needs=_SAMPLING, inside=True, deprecated=FIRST_MODERN),
    _request(SERVER, "roots/list", last=_BEFORE_MODERN, needs=_ROOTS),
    _request(SERVER, "roots/list", FIRST_MODERN, needs=_ROOTS, inside=True, deprecated=FIRST_MODERN),
    _request(SERVER, "elicitation/create", "2025-06-18", _BEFORE_MODERN, needs=_ELICITATION),
    _request(SERVER, "elicitation/create", FIRST_MODERN, needs=_ELICITATION, inside=True),
    *_tasks(SERVER),
    # Notifications of the client
    _notification(CLIENT, "initialized", last=_BEFORE_MODERN),
    _notification(CLIENT, "roots/list_changed", last=_BEFORE_MODERN, needs=(*_ROOTS, "listChanged")),
    _notification(CLIENT, "cancelled", last=_BEFORE_MODERN),
    _notification(CLIENT, "cancelled", FIRST_MODERN),
    _notification(CLIENT, "progress", last=_BEFORE_MODERN),
    # Notifications of the server
    _notification(SERVER, "cancelled"),
    _notification(SERVER, "progress"),
    _notification(SERVER, "message", last=_BEFORE_MODERN, needs=_LOGGING, about="level"),
    _notification(SERVER, "message", FIRST_MODERN, needs=_LOGGING, about="level", deprecated=FIRST_MODERN),
    _notification(SERVER, "tools/list_changed", needs=(*_TOOLS, "listChanged")),
    _notification(SERVER, "prompts/list_changed", needs=(*_PROMPTS, "listChanged")),
    _notification(SERVER, "resources/list_changed", needs=(*_RESOURCES, "listChanged")),
    _notification(SERVER, "resources/updated", needs=_SUBSCRIBE, about="uri"),
    _notification(
        SERVER, "elicitation/complete", _BEFORE_MODERN, _BEFORE_MODERN, needs=(*_ELICITATION, "url"), about="elicitationId"
    ),
    _notification(SERVER, "subscriptions/acknowledged", FIRST_MODERN),
    _notification(SERVER, "tasks", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
)


class MethodStanding(StrEnum):
    """The standing of a message's method in a revision."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    """No revision has it: it is somebody's own, which is legal."""
    OTHER_KIND = "other kind"
    """It is a request and was sent as a notification, or the other way round."""
    OTHER_SIDE = "other side"
    """Only the other side may send it."""
    OTHER_REVISION = "other revision"
    """Only earlier or later revisions have it."""
    INSIDE_ONLY = "inside only"
    """In this revision it is no message of its own, but a part of an `input_required` result."""


_BY_NAME: Final[dict[str, tuple[Method, ...]]] = {
    name: tuple(row for row in METHODS if row.name == name) for name in dict.fromkeys(row.name for row in METHODS)
}


def method_rows(name: str) -> tuple[Method, ...]:
    """Return all rows of a method, in the order of the table; none for a method that MCP does not know."""
    return _BY_NAME.get(name, ())


def method_row(name: str, sender: Side, revision: str) -> Method | None:
    """Return the row for a method that `sender` sends in `revision`; None if there is none."""
    return next((row for row in method_rows(name) if row.sender == sender and row.is_in(revision)), None)


def method_standing(name: str, kind: MethodKind, sender: Side, revision: str) -> MethodStanding:
    """Return the standing in `revision` of a method that `sender` sends as a message of this kind: the first thing that is wrong."""
    rows = method_rows(name)
    if not rows:
        return MethodStanding.UNKNOWN
    if rows[0].kind != kind:
        return MethodStanding.OTHER_KIND
    own = [row for row in rows if row.sender == sender]
    here = [row for row in own if row.is_in(revision)]
    if not here:
        in_revision = any(row.is_in(revision) for row in rows)
        return MethodStanding.OTHER_SIDE if not own or in_revision else MethodStanding.OTHER_REVISION
    return MethodStanding.INSIDE_ONLY if here[0].inside else MethodStanding.KNOWN


TARGETS: Final[dict[str, str]] = {row.name: row.about for row in METHODS if row.about}
"""The member of `params` with the target of a message, by its method."""

NAMED_IN_HEADERS: Final = (
    "tools/call",
    "prompts/get",
    "resources/read",
    *(row.name for row in METHODS if row.extension == TASKS),
)
"""Methods whose HTTP requests have their target in the field `Mcp-Name`, from 2026-07-28 on (basic/transports/streamable-http)."""

MAY_NEED_INPUT: Final = frozenset(row.name for row in METHODS if row.may_need_input)
INPUT_REQUESTS: Final = frozenset(row.name for row in METHODS if row.inside)
"""The methods that an `input_required` result may have in its `inputRequests`."""

MAY_BE_TASKS: Final = frozenset({"tools/call", "sampling/createMessage", "elicitation/create"})
"""Requests that may be run as a task if their `params.task` says so, 2025-11-25 only."""
