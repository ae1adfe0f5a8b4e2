"""The nouns of a transcript: captures, lanes, rows, and the transcript that holds them all.

No parsed JSON is kept: a message keeps its bytes, or leaves long ones in the file of a large capture, and parses them on request.

Whatever a capture may have millions of is a `msgspec.Struct` without garbage collection, not a dataclass; this is safe because
nothing here refers back to its owner. With dataclasses a transcript of a million messages took 12.7 s and 675 MiB, a third of it
the collector's; with structs it takes 7.1 s and 650 MiB (CPython 3.11). The structs are not frozen, because the correlator fills
an exchange as its messages arrive; only `transcript/` assigns to them. The other nouns are structs as well, since each dataclass
adds 0.5 to 0.9 ms to the start of a mock, and a client waits for its first answer.

Every `at_ns` is on the transcript's clock: nanoseconds since the first capture began, on one axis for all captures.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from ..records import Exit, Header, Open, Record
from .exchange import Exchange, ForwardedCall, UnpairedMessage, shared_answer
from .http.transaction import Stream, Transaction
from .llm.model_call import ModelCall
from .message import FrameSource, Kind, Message
from .outcome import HTTP_ERRORS, HTTP_FAILURES, HTTP_REDIRECTS, NO_ANSWERS, Outcome

if TYPE_CHECKING:  # dataclasses, which a mock does not wait for
    from .calls.call import Call
    from .findings.rule import Finding, FindsCredentials, Unchecked

__all__ = [
    "HTTP_ERRORS",
    "HTTP_FAILURES",
    "HTTP_REDIRECTS",
    "NO_ANSWERS",
    "CaptureInfo",
    "ChannelEvent",
    "Exchange",
    "Kind",
    "Lane",
    "Log",
    "Message",
    "ModelCall",
    "Numbered",
    "Outcome",
    "Row",
    "Transcript",
    "UnpairedMessage",
    "name_lanes",
]


class Log(msgspec.Struct, eq=False, gc=False, array_like=True, tag="log"):
    """One line that the server wrote to stderr, with its terminator. It has no row number."""

    capture: int
    number: int
    at_ns: int
    raw: bytes


class ChannelEvent(msgspec.Struct, eq=False):
    """An event of the channel: a record that carries no message (spawn, exit, close, stall, gap, damage, …)."""

    capture: int
    at_ns: int
    record: Record


Numbered: TypeAlias = Exchange | UnpairedMessage | Transaction | ModelCall
"""The rows with a number, by which a user addresses them."""

Row: TypeAlias = Numbered | Log | ChannelEvent


class CaptureInfo(msgspec.Struct, eq=False):
    """One capture of a transcript: its header, its lanes, its HTTP transactions, and whether it is complete.

    `shift_ns` was added to the times of its records, to bring them onto the transcript's clock. `server` and `client` are the
    lanes of its two sides; the client's may change until the client has sent its name.
    """

    index: int
    header: Header | None = None
    shift_ns: int = 0
    server: str = "server"
    client: str = "client"
    messages: int = 0
    exit: Exit | None = None
    complete: bool = False
    """True if its `end` record was read and no record before it is missing."""
    gaps: int = 0
    damages: int = 0
    escalations: int = 0
    """The number of times that mcpspy ended the server's processes by force."""
    intercepted_ns: int | None = None
    """The time of the first intercept that acted, on the capture's own clock; None if none did."""
    restarted: bool = False
    """True if mcpspy restarted its server while the client lived."""
    unkept: int = 0
    """The number of frames, or parts of frames, of which only length and digest were recorded, and not their bytes."""
    last_ns: int = 0
    """The time of its last record, on the capture's own clock: add `shift_ns`."""
    left_ns: int | None = None
    """The time at which the client closed the standard input of its server, on the capture's own clock; None if it did not."""
    unread: list[list[int]] = []
    """Stream, beginning and end of each time in which a reader did not read, on the capture's own clock, once it is over.

    And the number of the first record on that stream that it had not read.
    """
    now_ns: int | None = None
    """The present, on the transcript's clock, for a capture that is still being recorded; None if nobody said so."""
    closed: bool = False
    """True if no more records will come: its `end` was read, or the reader reached the end of the file."""
    streams: dict[int, Open | Stream] = {}
    """The record that opened each stream, or over HTTP the stream itself, by the stream's number."""
    transactions: dict[int, Transaction] = {}
    """Its HTTP transactions, by their numbers; empty on stdio."""
    client_names: dict[str, None] = {}
    """The names that HTTP clients gave themselves, each once."""
    client_processes: dict[int, tuple[int, int]] = {}
    """Pid and start time of the process at the other end of each HTTP connection, where the tap could find it."""
    client_ports: dict[int, int] = {}
    """The port of the client's end of each HTTP connection whose process is known."""
    frames: FrameSource | None = None
    """The file of the capture, if long payloads are left there."""
    calls: dict[int, Call] = {}
    """Calls of more than one exchange, and calls with a task, a subscription or notifications: by the numbers of all their rows."""

    @property
    def label(self) -> str:
        """The name by which a user knows its server."""
        return (self.header.label if self.header else "") or "server"

    @property
    def baseline(self) -> str:
        """The name of its server's baseline: the label, or that of the capture which a replay played."""
        return str(self.header.tapped.get("replayed_label") or "" if self.header else "") or self.label

    @property
    def is_model(self) -> bool:
        """True for a capture of a model API, which carries no JSON-RPC."""
        return self.header is not None and self.header.tapped.get("leg") == "model"

    @property
    def failed_start(self) -> str:
        """The reason why its server never served: it could not be started, or failed before it had a message. Else empty."""
        if self.exit is None or self.messages:
            return ""
        return self.exit.error or (f"it ended with code {self.exit.code}" if self.exit.code else "")

    def transaction_of(self, stream: int) -> Transaction | None:
        """Return the transaction that a stream belongs to."""
        opened = self.streams.get(stream)
        return None if opened is None else self.transactions.get(opened.transaction)

    def connection_words(self, connection: int) -> str:
        """Name an HTTP connection by its number, and by the client's port where that is known."""
        port = self.client_ports.get(connection)
        return f"connection {connection}" + (f" from port {port}" if port else "")

    def transactions_of(self, row: Numbered) -> list[Transaction]:
        """Return the transactions that carried the messages of a row, by their numbers; empty on stdio."""
        if isinstance(row, Transaction):
            return [row]
        if isinstance(row, ModelCall):
            return [row.transaction]
        messages = [row.message] if isinstance(row, UnpairedMessage) else row.messages
        carriers = (self.transaction_of(message.stream) for message in messages)
        by_number = {transaction.number: transaction for transaction in carriers if transaction is not None}
        return [by_number[number] for number in sorted(by_number)]

    @property
    def clients(self) -> list[str]:
        """The lanes of its clients, in the order in which they came; only HTTP has more than one."""
        names = (transaction.scope.client or self.client for transaction in self.transactions.values())
        return list(dict.fromkeys(names)) or [self.client]

    def client_of(self, row: Row | Message) -> str:
        """Return the lane of the client that a row or a message belongs to: an HTTP server may have many clients."""
        if not self.transactions or isinstance(row, Log | ChannelEvent):
            return self.client
        if isinstance(row, Transaction):
            return row.scope.client or self.client
        if isinstance(row, ModelCall):
            return self.client
        message = row if isinstance(row, Message) else row.request if isinstance(row, Exchange) else row.message
        transaction = self.transaction_of(message.stream)
        return (transaction.scope.client if transaction else "") or self.client


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A named participant: a client, a server, a model; diagrams add the user."""

    name: str
    role: Literal["user", "client", "model", "server"]


class Transcript(msgspec.Struct, eq=False):
    """One or more captures as rows, calls and findings. `rows` are in the order in which they began."""

    captures: list[CaptureInfo] = []
    rows: list[Row] = []
    findings: list[Finding] = []
    hops: dict[int, ForwardedCall] = {}
    """The calls that passed a gateway between two of its captures, by the numbers of all their rows."""
    credentials: FindsCredentials | None = None
    """The search for credentials in a text; None: none are sought."""
    limits: dict[Unchecked, None] = {}
    """Parts of the rows that rules have left out so far."""
    known: dict[str, tuple[object, list[Any]]] = {}
    """Facts and lifecycles that were gathered from the rows, each with what changes when the rows do: they are gathered once."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The rows that are exchanges."""
        return [row for row in self.rows if isinstance(row, Exchange)]

    @property
    def model_calls(self) -> list[ModelCall]:
        """The rows that are model calls."""
        if not any(info.is_model for info in self.captures):
            return []  # without a pass over a million rows
        return [row for row in self.rows if isinstance(row, ModelCall)]

    @property
    def messages(self) -> list[Message]:
        """Every message once, malformed ones included, in the order of time."""
        messages: list[Message] = []
        shared: set[Hashable] = set()
        for row in self.rows:
            if isinstance(row, Exchange):
                messages.append(row.request)
                messages.extend(row.notifications)
                messages.extend(row.partials)
                messages.extend(row.more_responses)
                if row.response is not None and (answer := shared_answer(row)) not in shared:
                    messages.append(row.response)
                    if answer is not None:
                        shared.add(answer)
            elif isinstance(row, UnpairedMessage):
                messages.append(row.message)
        return sorted(messages, key=lambda message: (message.at_ns, message.capture, message.number))

    @property
    def calls(self) -> list[Call]:
        """The calls that are more than one plain exchange, in the order in which they began."""
        by_row = {call.row: call for info in self.captures for call in info.calls.values()}
        return [by_row[row] for row in sorted(by_row)]

    def call_of(self, row: Row) -> Call | None:
        """Return the call that a row belongs to; None for a plain exchange."""
        return self.captures[row.capture].calls.get(row.row) if isinstance(row, Exchange | UnpairedMessage) else None

    @property
    def lanes(self) -> list[Lane]:
        """Clients, then models, then servers, each once, in the order in which their captures began."""
        clients = dict.fromkeys(name for info in self.captures for name in info.clients)
        models = dict.fromkeys(info.server for info in self.captures if info.is_model)
        servers = dict.fromkeys(info.server for info in self.captures if not info.is_model)
        return [
            *(Lane(name=name, role="client") for name in clients),
            *(Lane(name=name, role="model") for name in models),
            *(Lane(name=name, role="server") for name in servers),
        ]

    def row(self, number: int) -> Numbered | None:
        """Return the row with this number, or None."""
        for row in self.rows:
            if isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall) and row.row == number:
                return row
        return None


def name_lanes(captures: list[CaptureInfo], client_names: dict[int, str]) -> None:
    """Set the lanes of `captures`: a name for every server, and one name for a client in all captures that it started.

    `client_names` are the names that clients gave themselves, by the index of the capture. If an HTTP capture has several
    clients, its own lane is for those without a name.
    """
    for info, name in zip(captures, _unique(info.label for info in captures), strict=True):
        info.server = name
    clients: dict[tuple[str, ...], list[CaptureInfo]] = {}
    for info in captures:
        if not _is_http(info):
            clients.setdefault(_client(info), []).append(info)
    names = _unique(_client_name(group, client_names) for group in clients.values())
    for group, name in zip(clients.values(), names, strict=True):
        for info in group:
            info.client = name
    for info in filter(_is_http, captures):
        info.client = next(iter(info.client_names)) if len(info.client_names) == 1 else "client"
    _name_model_clients([info for info in captures if info.is_model], [info for info in captures if not info.is_model])


def _name_model_clients(models: list[CaptureInfo], others: list[CaptureInfo]) -> None:
    """Name the client of model APIs, which carry no name: it is the client of the other captures, if these have only one."""
    known = {name for info in others for name in (*info.client_names, info.client)}
    if len(known) > 1:
        known.discard("client")
    if len(known) == 1:
        (name,) = known
        for info in models:
            info.client = name


def _client(info: CaptureInfo) -> tuple[str, ...]:
    """Return a key that is equal for captures with the same parent process."""
    header = info.header
    if header is None or "pid" not in header.parent:
        return (str(info.index),)
    return (header.boot_id, str(header.parent["pid"]), str(header.parent.get("start")))


def _is_http(info: CaptureInfo) -> bool:
    return info.header is not None and info.header.tapped.get("transport") == "http"


def _client_name(group: list[CaptureInfo], client_names: dict[int, str]) -> str:
    own = next((client_names[info.index] for info in group if info.index in client_names), None)
    header = group[0].header
    return own or (str(header.parent.get("name") or "") if header else "") or "client"


def _unique(names: Iterable[str]) -> list[str]:
    """Return `names` with a number after those that are taken: `weather`, `weather 2`."""
    unique: dict[str, None] = {}
    for name in names:
        free, count = name, 1
        while free in unique:
            count += 1
            free = f"{name} {count}"
        unique[free] = None
    return list(unique)
