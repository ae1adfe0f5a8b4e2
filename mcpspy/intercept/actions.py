"""The actions of intercepts: a message in, what the receiver gets instead out.

No action reads a clock or a file: an answer that comes from a file is given in as bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..json_path import Step, in_ascii, one_line
from ..transcript.message import NOT_REORDERED, Kind, Message
from ..wire.edits import ValueEdit, with_values, without_value
from ..wire.json_spans import members

SECOND_NS: Final = 1_000_000_000

HOLD: Final = "hold"
DUPLICATE: Final = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The message is sent later, by a time between two bounds."""

    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The message waits until a controller lets it go, but no longer than this."""

    most_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder:
    """The answer waits until another one has been sent, but no longer than this."""

    most_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAnswer:
    """The request is answered by mcpspy; an answer is replaced. `template` is a whole message, whose id is put in."""

    template: bytes
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue:
    """A value is set, or added."""

    steps: tuple[Step, ...]
    value: bytes
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveValue:
    """A value is removed, with its name."""

    steps: tuple[Step, ...]
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """Only the first bytes of the message are sent."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """A line that is no message is sent before it."""

    line: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The message is sent twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withhold:
    """The message is not sent. `then` is what else happens: `drop` (nothing), `disconnect`, `stall` or `kill`."""

    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """Only the first bytes of the message are sent, and then the connection is closed."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStatus:
    """The request is answered by mcpspy with this status of HTTP, these fields, and a text."""

    code: int
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """The request and all later ones of its session are answered by mcpspy with status 404: the session is over."""


Action: TypeAlias = (
    AnswerStatus
    | CutOff
    | Delay
    | Duplicate
    | Expire
    | Garbage
    | Hold
    | MadeAnswer
    | RemoveValue
    | Reorder
    | SetValue
    | Truncate
    | Withhold
)


def words_of(action: Action, delay_ns: int = 0) -> str:
    """Say in a few words what an action does; `delay_ns` is the delay that chance chose."""
    match action:
        case Delay():
            return f"delay {delay_ns / SECOND_NS:.3f}".rstrip("0").rstrip(".") + " s"
        case Hold():
            return HOLD
        case Reorder():
            return NOT_REORDERED
        case CutOff(length=length):
            return f"disconnect {length}"
        case Expire():
            return "expire"
        case MadeAnswer(words=words):
            return words
        case SetValue(path=path):
            return f"set {path}"
        case RemoveValue(path=path):
            return f"remove {path}"
        case Truncate(length=length):
            return f"truncate {length}"
        case AnswerStatus(code=code):
            return f"status {code}"
        case Garbage():
            return "garbage"
        case Duplicate():
            return DUPLICATE
        case Withhold(then=then):
            return then


def edited(action: SetValue | RemoveValue | Truncate | CutOff, payload: bytes) -> bytes:
    """Return the payload with what the action changes; all other bytes stay."""
    match action:
        case SetValue(steps=steps, value=value):
            if payload.decode(errors="ignore").encode() != payload:  # it is in no encoding that we know
                value = in_ascii(value.decode()).encode()
            return with_values(payload, [ValueEdit(steps, value, adds=True)])
        case RemoveValue(steps=steps):
            return without_value(payload, steps)
        case Truncate(length=length):
            end = len(payload.rstrip(b"\r\n"))
            return payload if length >= end else payload[:length] + payload[end:]
        case CutOff(length=length):
            return payload.rstrip(b"\r\n")[:length]


def answered(action: MadeAnswer, message: Message) -> bytes:
    """Return the answer to a request, or what replaces an answer: the template with the id of the message."""
    id = (message.id or "null").encode("utf-8", "surrogatepass")
    return with_values(action.template, [ValueEdit(("id",), id, adds=True)])


def can_answer(message: Message) -> bool:
    """Return whether there is something to answer or to replace."""
    return message.kind in (Kind.REQUEST, Kind.RESULT, Kind.ERROR) and message.id is not None


def error_template(code: int, text: str) -> bytes:
    """Return the message of an error."""
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}, ensure_ascii=False).encode()


def answer_template(content: bytes) -> bytes | None:
    """Return the message of an answer that is one, or that is a result alone; None for what is no JSON."""
    line = one_line(content)
    if line is None or not members(line).keys().isdisjoint(("result", "error")):
        return line
    return b'{"jsonrpc":"2.0","id":null,"result":' + line + b"}"
