"""Spans as plain facts, with ids that follow from the capture: sent twice, they are the same spans.

Source: OpenTelemetry semantic conventions for generative AI, MCP; W3C Trace Context for what a request carries in its `_meta`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, TypeAlias

from ..lazy_pattern import lazy_pattern

AttributeValue: TypeAlias = str | int | float | bool | list[str]
Attributes: TypeAlias = dict[str, AttributeValue]

LARGEST: Final = 2**63 - 1
"""The largest number that a span can have."""

MAX_TEXT: Final = 1 << 16
"""A text is cut at so many characters: collectors refuse requests that are too large."""

_traceparent = lazy_pattern(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_INVALID_VERSION: Final = "ff"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """A span that others refer to. `state` is its `tracestate`."""

    trace_id: int
    span_id: int
    state: str = ""
    is_sampled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """An event of a span."""

    name: str
    at_ns: int
    attributes: Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySpan:
    """A span that has ended. Times are Unix time. `error` is the description of its status; None: it did not fail."""

    name: str
    is_server: bool
    context: TraceContext
    parent: TraceContext | None
    began_ns: int
    ended_ns: int
    attributes: Attributes
    error: str | None = None
    links: list[TraceContext] = field(default_factory=list)
    events: list[SpanEvent] = field(default_factory=list)
    is_operation: bool = True
    """True for an MCP operation, which the metrics count."""


TextsMask: TypeAlias = Callable[[list[str | None]], list[str | None]]


def masked_spans(spans: Sequence[TelemetrySpan], mask: TextsMask) -> list[TelemetrySpan]:
    """Replace the captured texts of spans by those that `mask` returns for them, as far as they can be sent. Ids stay as they are."""
    new = _new_texts((text for span in spans for text in _texts(span)), mask)
    return [_with_texts(span, new) for span in spans] if new else list(spans)


def masked_attributes(attributes: Attributes, mask: TextsMask) -> Attributes:
    """Replace captured texts in attributes in the same way."""
    return _new_values(attributes, _new_texts(_texts_in(attributes), mask))


def sendable(text: str) -> str:
    """Cut a long text, and replace lone surrogates: a collector refuses a whole batch that has one."""
    short = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return short if short.isascii() else short.encode("utf-8", "replace").decode()


def _new_texts(texts: Iterable[str], mask: TextsMask) -> dict[str, str]:
    """Return the replacements of texts that change."""
    known = list(dict.fromkeys(texts))
    masked = (sendable(old if text is None else text) for old, text in zip(known, mask([*known]), strict=True))
    return {old: text for old, text in zip(known, masked, strict=True) if text != old}


def _texts(span: TelemetrySpan) -> Iterator[str]:
    yield span.name
    if span.error is not None:
        yield span.error
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        yield from _texts_in(attributes)


def _texts_in(attributes: Attributes) -> Iterator[str]:
    for value in attributes.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from value


def _with_texts(span: TelemetrySpan, new: dict[str, str]) -> TelemetrySpan:
    return replace(
        span,
        name=new.get(span.name, span.name),
        error=None if span.error is None else new.get(span.error, span.error),
        attributes=_new_values(span.attributes, new),
        events=[replace(event, attributes=_new_values(event.attributes, new)) for event in span.events],
    )


def _new_values(attributes: Attributes, new: dict[str, str]) -> Attributes:
    values: Attributes = {}
    for name, value in attributes.items():
        if isinstance(value, list):
            values[name] = [new.get(text, text) for text in value]
        else:
            values[name] = new.get(value, value) if isinstance(value, str) else value
    return values


def trace_context(value: str, state: str = "") -> TraceContext | None:
    """Read a `traceparent`; None if it is none."""
    parts = _traceparent.fullmatch(value)
    if parts is None or parts[1] == _INVALID_VERSION or (parts[1] == "00" and parts[5]):
        return None
    trace_id, span_id = int(parts[2], 16), int(parts[3], 16)
    if not trace_id or not span_id:
        return None
    return TraceContext(trace_id=trace_id, span_id=span_id, state=state, is_sampled=bool(int(parts[4], 16) & 1))


def own_context(capture_id: str, *parts: object, parent: TraceContext | None = None) -> TraceContext:
    """Make the context of a span of a capture: in the trace of its parent, else in the capture's own."""
    trace_id = _number(16, "trace", capture_id) if parent is None else parent.trace_id
    return TraceContext(
        trace_id=trace_id, span_id=_number(8, "span", capture_id, *parts), state="" if parent is None else parent.state
    )


def _number(size: int, *parts: object) -> int:
    text = "\n".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(sha256(text).digest()[:size]) or 1
