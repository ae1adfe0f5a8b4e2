"""Every method and notification of MCP in one table: who may send it, from which revision to which, and what it needs.

All else that mcpspy knows of methods is derived from this table. Source: MCP specification, schema of each revision (the unions
`ClientRequest`, `ServerRequest`, `ClientNotification`, `ServerNotification`), and the extensions' own documents (SEP-2663 for
tasks, SEP-2640 for skills). Refuses to know shapes beyond what a message is about: those are in `mcp-types`.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ...records import CLIENT, SERVER
from .revisions import FIRST_MODERN, LATEST, OLDEST, position

if TYPE_CHECKING:
    from ...records import Side

MethodKind: TypeAlias = Literal["request", "notification"]
Capability: TypeAlias = tuple[str, ...]
"""Whose capability, and the members that lead to it: `("server", "tools", "listChanged")`."""

PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
INITIALIZE: Final = "initialize"
DISCOVER: Final = "server/discover"
LISTEN: Final = "subscriptions/listen"
OPENINGS: Final = frozenset({INITIALIZE, DISCOVER})
"""What a client asks first, to agree on a revision."""

TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"
UI: Final = "io.modelcontextprotocol/ui"
"""Extensions by the names under which `capabilities.extensions` has them. That of MCP Apps adds no methods."""

_BEFORE_MODERN: Final = "2025-11-25"


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """What one side may send under one name, from the revision `first` to `last`. A method has one row for each side and shape."""

    name: str
    kind: MethodKind
    sender: "Side"
    first: str = OLDEST
    last: str = LATEST
    needs: Capability = ()
    """The capability without which it may not be sent; empty if none is needed."""
    about: str = ""
    """The member of `params` that says what it is about; for `completion/complete` see `mcp.py`."""
    extension: str = ""
    deprecated: str = ""
    """The revision that deprecates it, though it still has it."""
    inside: bool = False
    """Whether it is no message of its own: it stands in the `inputRequests` of a result, and is answered with the next try."""
    stdio_only: bool = False
    cacheable: bool = False
    """Whether its result says for how long it may be kept (`ttlMs`, `cacheScope`), from 2026-07-28."""
    may_need_input: bool = False
    """Whether its result may be `input_required`, from 2026-07-28."""

    def is_in(self, revision: str) -> bool:
        """Whether `revision`, or the released one nearest to it, has it."""
        return position(self.first) <= position(revision) <= position(self.last)


def _request(sender: "Side", name: str, first: str = OLDEST, last: str = LATEST, **facts: object) -> Method:
    return Method(name=name, kind="request", sender=sender, first=first, last=last, **facts)  # type: ignore[arg-type]  # **facts


def _notification(sender: "Side", name: str, first: str = OLDEST, last: str = LATEST, **facts: object) -> Method:
    name = f"notifications/{name}"
    return Method(name=name, kind="notification", sender=sender, first=first, last=last, **facts)  # type: ignore[arg-type]  # **facts


def _tasks(sender: "Side") -> tuple[Method, ...]:
    """Tasks of 2025-11-25: either side may run them for the other, whose capability is asked."""
    first = last = _BEFORE_MODERN
    host = SERVER if sender == CLIENT else CLIENT
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
    _request(CLIENT, DISCOVER, FIRST_MODERN, cacheable=True),
    _request(CLIENT, LISTEN, FIRST_MODERN),
    _request(CLIENT, "tools/list", needs=_TOOLS, cacheable=True),
    _request(CLIENT, "tools/call", needs=_TOOLS, about="name", may_need_input=True),
    _request(CLIENT, "prompts/list", needs=_PROMPTS, cacheable=True),
    _request(CLIENT, "prompts/get", needs=_PROMPTS, about="name", may_need_input=True),
    _request(CLIENT, "resources/list", needs=_RESOURCES, cacheable=True),
    _request(CLIENT, "resources/templates/list", needs=_RESOURCES, cacheable=True),
    _request(CLIENT, "resources/read", needs=_RESOURCES, about="uri", cacheable=True, may_need_input=True),
    _request(CLIENT, "resources/subscribe", last=_BEFORE_MODERN, needs=_SUBSCRIBE, about="uri"),
    _request(CLIENT, "resources/unsubscribe", last=_BEFORE_MODERN, needs=_SUBSCRIBE, about="uri"),
    _request(CLIENT, "completion/complete", last="2024-11-05"),  # the capability came with the next revision
    _request(CLIENT, "completion/complete", "2025-03-26", needs=_COMPLETIONS),
    _request(CLIENT, "logging/setLevel", last=_BEFORE_MODERN, needs=_LOGGING, about="level"),
    *_tasks(CLIENT),
    _request(CLIENT, "tasks/get", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "tasks/update", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "tasks/cancel", FIRST_MODERN, needs=_TASKS_OF_SERVER, about="taskId", extension=TASKS),
    _request(CLIENT, "skills/list", needs=_SKILLS_OF_SERVER, extension=SKILLS, cacheable=True),
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
    _notification(CLIENT, "cancelled", FIRST_MODERN, stdio_only=True),
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
    """What a revision says of a message's method."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    """No revision has the name: somebody's own, which is legal."""
    OTHER_KIND = "other kind"
    """It is a request, and was sent as a notification, or the other way round."""
    OTHER_SIDE = "other side"
    """The other side may send it, this one may not."""
    OTHER_REVISION = "other revision"
    """Other revisions have it, this one has not, or not yet, or no longer."""
    INSIDE_ONLY = "inside only"
    """In this revision it is no message of its own, but part of an `input_required` result."""


_BY_NAME: Final[dict[str, tuple[Method, ...]]] = {
    name: tuple(one for one in METHODS if one.name == name) for name in dict.fromkeys(one.name for one in METHODS)
}


def rows(name: str) -> tuple[Method, ...]:
    """All rows of a method, in the order of the table; none for one that MCP does not know."""
    return _BY_NAME.get(name, ())


def row(name: str, sender: "Side", revision: str) -> Method | None:
    """The row that holds for what `sender` sends under `revision`; None if there is none."""
    return next((one for one in rows(name) if one.sender == sender and one.is_in(revision)), None)


def method_standing(name: str, kind: MethodKind, sender: "Side", revision: str) -> MethodStanding:
    """What `revision` says of a method that `sender` sends as a message of this kind: the first thing that is wrong with it."""
    found = rows(name)
    if not found:
        return MethodStanding.UNKNOWN
    if found[0].kind != kind:
        return MethodStanding.OTHER_KIND
    own = [one for one in found if one.sender == sender]
    here = [one for one in own if one.is_in(revision)]
    if not here:
        in_revision = any(one.is_in(revision) for one in found)
        return MethodStanding.OTHER_SIDE if not own or in_revision else MethodStanding.OTHER_REVISION
    return MethodStanding.INSIDE_ONLY if here[0].inside else MethodStanding.KNOWN


TARGETS: Final[dict[str, str]] = {one.name: one.about for one in METHODS if one.about}
"""Which member of `params` says what a message is about, by its method."""

NAMED_IN_HEADERS: Final = (
    "tools/call",
    "prompts/get",
    "resources/read",
    *(one.name for one in METHODS if one.extension == TASKS),
)
"""Methods whose HTTP requests have an `Mcp-Name` field from 2026-07-28 on: what they are about (basic/transports/streamable-http)."""

CACHEABLE: Final = frozenset(one.name for one in METHODS if one.cacheable)
MAY_NEED_INPUT: Final = frozenset(one.name for one in METHODS if one.may_need_input)
INPUT_REQUESTS: Final = frozenset(one.name for one in METHODS if one.inside)
"""What an `input_required` result may ask for."""

MAY_BE_TASKS: Final = frozenset({"tools/call", "sampling/createMessage", "elicitation/create"})
"""Requests that may ask to be run as a task (`params.task`), 2025-11-25 only."""
