"""Strategies for hypothesis: any record that a tap could make, and any way to cut a file."""

from typing import Any

from hypothesis import strategies as st

from mcpspy.records import MAX_NUMBER, Close, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall, Unknown

# Lone surrogates come from file names and environments; a pair of them is another spelling of one character.
TEXTS = st.text(st.characters(codec=None), max_size=30).filter(lambda text: text == _paired(text))
COUNTS = st.integers(0, 2**40) | st.integers(0, MAX_NUMBER)
TIMES = st.integers(0, MAX_NUMBER)
DATA = st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode() + b"\n")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.integers(-999, 999).map(lambda number: number / 8) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
UNKNOWN_MEMBERS = st.dictionaries(TEXTS.map(lambda name: "x" + name), JSON, max_size=2)
REDACTIONS = st.lists(st.tuples(COUNTS, COUNTS, TEXTS), min_size=1, max_size=2).map(tuple)


def _paired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Draw frames with any of their rare facts."""
    rare: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "chunks": st.lists(COUNTS, min_size=1, max_size=3).map(tuple),
                "forwarded": DATA,
                "redacted": REDACTIONS,
                "injected": st.just(True),
                "extra": st.dictionaries(TEXTS.map(lambda name: "x" + name), JSON, min_size=1, max_size=2),
            },
        )
    )
    at_ns = draw(TIMES)
    first_ns = draw(st.just(at_ns) | TIMES)
    return Frame(draw(COUNTS), at_ns, first_ns, draw(DATA), draw(st.booleans()), **rare)


@st.composite
def hashed_frames(draw: st.DrawFn) -> Frame:
    """Draw frames past the size bound."""
    return Frame(
        draw(COUNTS), draw(TIMES), draw(TIMES), b"", length=draw(COUNTS), sha256=draw(st.binary(min_size=32).map(bytes.hex))
    )


PROCESSES = st.fixed_dictionaries({"pid": COUNTS, "name": TEXTS})
SIDES = st.sampled_from(["client", "server"])


def _any(kind: Any, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, at_ns=TIMES, extra=UNKNOWN_MEMBERS, **members)


OPENS = _any(
    Open,
    stream=COUNTS,
    sender=SIDES,
    name=TEXTS,
    framing=st.sampled_from(["lines", "sse", "body"]),
    connection=COUNTS,
    transaction=COUNTS,
    head=DATA,
    forwarded=st.none() | DATA,
    redacted=st.just(()) | REDACTIONS,
    injected=st.booleans(),
)

RECORDS: st.SearchStrategy[Record] = st.one_of(
    frames(),
    hashed_frames(),
    OPENS,
    _any(Partial, stream=COUNTS, first_ns=TIMES, data=DATA),
    _any(Stall, stream=COUNTS, waiting_bytes=COUNTS, lasted_ns=st.none() | TIMES),
    _any(Close, stream=COUNTS, by=TEXTS, how=TEXTS),
    _any(Spawn, pid=COUNTS, start=COUNTS),
    _any(Exit, pid=COUNTS, code=st.none() | st.integers(-300, 300), signal=st.none() | TEXTS, error=TEXTS,
         descendants=st.lists(PROCESSES, max_size=2).map(tuple)),
    _any(Gap, since_ns=TIMES, frames=COUNTS, bytes=COUNTS, why=TEXTS),
    _any(Note, topic=TEXTS, text=TEXTS),
    _any(End, frames=COUNTS, bytes=COUNTS, messages=COUNTS, gaps=COUNTS, why=TEXTS),
    st.builds(Unknown, at_ns=TIMES, kind=TEXTS.map(lambda kind: "new-" + kind), extra=UNKNOWN_MEMBERS),
)  # fmt: skip

HEADERS = st.builds(
    Header,
    capture_id=TEXTS,
    wall_ns=TIMES,
    monotonic_ns=TIMES,
    pid=COUNTS,
    tapped=st.dictionaries(TEXTS, JSON, max_size=3),
    boot_id=TEXTS,
    start=COUNTS,
    parent=PROCESSES | st.just({}),
    cwd=TEXTS,
    label=TEXTS,
    redaction=TEXTS,
    mcpspy_version=TEXTS,
    extra=UNKNOWN_MEMBERS,
)


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Cut `data` into pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
