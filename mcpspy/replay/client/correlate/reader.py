"""Reads the messages of one capture in their order, and says of each of the client's what in it the server had said before.

First it looks ahead at all that the client says, so that of what the server says only that is remembered. Refuses to look at what a
client says of itself, and at the names of tools and prompts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....records import CLIENT
from ....transcript.mcp.codes import RELATED_TASK
from ....transcript.model import Exchange, Kind, UnpairedMessage
from ...json.canonical import canonical, read
from ...json.walk import Leaf, Scalar, leaves
from .model import VALUE, CorrelatedValue, Correlations, MessageKey, MessageRef, ValueOrigin, message_key
from .values import MIN_DIGITS, TASK_ID, GeneratedValue, NamedVariables, TextSpan, issued_values, opaque_words, returned_values

if TYPE_CHECKING:
    from ....transcript.model import Message, Transcript
    from ...compare.ignore import Step

MAX_OTHERS: Final = 8
"""So many other places where a value was said are remembered, should the first not be asked for again."""

SHORTEST_ID: Final = 10 ** (MIN_DIGITS - 1)
"""Smaller numbers are amounts, dates, or places in lists."""

MAX_LETTERS: Final = 4096
"""Longer texts are not taken for one value; words within them are."""

ROOTS: Final = "roots/list"

_OWN: Final = frozenset(("_meta", "protocolVersion", "capabilities", "clientInfo", "progressToken", "requestId", "ref"))
"""Members of `params` that a client says of itself, or by which it means messages."""

_NAMED: Final = frozenset(("tools/call", "prompts/get"))
"""Requests whose `name` a server never makes up."""

_pieces = re.compile(r"[^/?&=#:,;\s\"'()<>\[\]{}]+").finditer

_Key = tuple[str, str | None, tuple["Step", ...]]


class _Known:
    """Where the server said one value: `source` is the place that gives it out, `key` what such places have in common."""

    __slots__ = ("key", "others", "source")

    def __init__(self, source: ValueOrigin, key: _Key) -> None:
        self.source = source
        self.key = key
        self.others: deque[ValueOrigin] = deque(maxlen=MAX_OTHERS)

    def add(self, origin: ValueOrigin, key: _Key, *, gives: bool) -> None:
        """Another place. `gives` says that whatever is said there is given out anew.

        So it is, too, where the same call says it again, and where an answer says what was told before it came. Of the places in one
        message a value by itself is surer than one within a text.
        """
        if origin.said == self.source.said and (origin.span is not None or self.source.span is None):
            self.others.append(origin)
        elif (
            gives or key == self.key or self.source.said == origin.said or (self.source.said.method and not origin.said.method)
        ):
            self.others.appendleft(self.source)
            self.source, self.key = origin, key
        else:
            self.others.appendleft(origin)

    @property
    def origins(self) -> tuple[ValueOrigin, ...]:
        return self.source, *self.others


class _FoundValue(NamedTuple):
    """What was found at one place of the client's message."""

    span: tuple[int, int] | None
    value: Scalar
    what: str
    known: _Known
    guessed: bool = False


class CorrelationReader:
    """See above. `said` are the server's messages by what they are called."""

    __slots__ = ("_counts", "_guesses", "_handles", "_held", "_hosted", "_listed", "_named", "_own", "_wanted", "said")

    def __init__(self, handles: NamedVariables) -> None:
        self._handles = handles
        self.said: dict[MessageRef, Message] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._wanted: set[str] = set()
        """What looks made up among all that the client says."""
        self._own: set[str] = set()
        """What of it the client said before the server did."""
        self._guesses: dict[str, _Known] = {}
        self._listed: dict[GeneratedValue, _Known] = {}
        """What the specification says is carried."""
        self._hosted: set[GeneratedValue] = set()
        """Tasks that the client runs for the server: their ids are its own."""
        self._named: dict[str, _Known] = {}
        """What `--carry` names."""
        self._held: dict[int, set[str]] = {}
        """By row, the values that its request holds and that were carried."""

    def look_ahead(self, message: Message) -> None:
        """A message that the client is going to say."""
        for _, leaf in _leaves(message, read(message.raw)):
            for one in _candidates(_text(leaf)) if _may_hold(leaf) else ():
                self._wanted.add(one.text)

    def feed(self, message: Message, row: Exchange | UnpairedMessage) -> tuple[CorrelatedValue, ...]:
        """The next message, with its row. What of it is carried, if it is the client's."""
        if message.sender == CLIENT:
            if isinstance(row, Exchange) and row.method == ROOTS:
                return ()  # a client's folders are its own, whoever else has heard of them
            return tuple(self._client_said(message, row.row))
        self._server_said(message, row)
        return ()

    # The server

    def _server_said(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        said = self._called(message, row)
        self.said[said] = message
        body = read(message.raw)
        if not isinstance(body, dict):
            return
        method, target = (row.method, row.target) if isinstance(row, Exchange) else (message.method or "", None)

        def know(
            known: dict[Any, _Known], name: Any, steps: tuple[Step, ...], span: tuple[int, int] | None, *, is_name: bool = False
        ) -> None:
            origin = ValueOrigin(said, row.row, steps, span, is_name)
            key = method, target, tuple("*" if isinstance(one, int) else one for one in steps)
            if name in known:
                known[name].add(origin, key, gives=isinstance(name, GeneratedValue) and name.what != TASK_ID)
            else:
                known[name] = _Known(origin, key)

        held: set[str] = self._held.get(row.row, set())
        for named, steps, is_name in issued_values(message, method, body):
            if named not in self._hosted and (named.what != TASK_ID or named.value not in held):
                know(self._listed, named, steps, None, is_name=is_name)
        for steps, leaf in self._handles.leaves(body):
            if leaf != "" and _text(leaf) not in held:
                know(self._named, _text(leaf), steps, None)
        if self._wanted or self._handles.values:
            for steps, leaf in _content(body):
                for value, span in self._literal(leaf):
                    if value not in held:
                        know(self._named, value, steps, span)
                for one in self._asked_for(_text(leaf)) if _may_hold(leaf) else ():
                    if one.text not in held:
                        know(self._guesses, one.text, steps, None if one.text == _text(leaf) else (one.start, one.end))

    def _called(self, message: Message, row: Exchange | UnpairedMessage) -> MessageRef:
        if message.kind in (Kind.RESULT, Kind.ERROR):
            return MessageRef(row.row)
        of = 0 if isinstance(row, UnpairedMessage) else row.row
        method = message.method or ""
        nth = self._counts.get((of, method), 0)
        self._counts[of, method] = nth + 1
        return MessageRef(of, method, nth)

    def _asked_for(self, text: str) -> Iterator[TextSpan]:
        """What of the server's text the client is going to say, and has not said yet."""
        wanted, own = self._wanted, self._own
        if text in wanted and text not in own:
            yield TextSpan(0, len(text), text)
        for one in opaque_words(text):
            if one.text in wanted and one.text not in own and one.text != text:
                yield one

    def _literal(self, leaf: Scalar) -> Iterator[tuple[str, tuple[int, int] | None]]:
        """The values that `--carry` names as they are, in a text or number of the server's."""
        text = _text(leaf)
        for value in self._handles.values:
            if text == value:
                yield value, None
            elif isinstance(leaf, str) and (found := re.search(rf"(?<!\w){re.escape(value)}(?!\w)", leaf)):
                yield value, found.span()

    # The client

    def _client_said(self, message: Message, row: int) -> Iterator[CorrelatedValue]:
        body = read(message.raw)
        if not isinstance(body, dict):
            return
        if message.kind is Kind.RESULT:
            self._hosted.update(one for one, _, _ in issued_values(message, "", body) if one not in self._listed)
        done: set[tuple[Step, ...]] = set()
        for named, steps, is_name in returned_values(message, body):
            known = self._listed.get(named)
            if known is not None:
                done.add(steps)
                self._held.setdefault(row, set()).add(named.value)
                yield CorrelatedValue(row, steps, None, named.value, named.what, known.origins, is_name=is_name)
        for steps, leaf in _leaves(message, body):
            if steps not in done:
                for one in self._found(leaf):
                    self._held.setdefault(row, set()).add(_text(one.value))
                    yield CorrelatedValue(row, steps, one.span, one.value, one.what, one.known.origins, one.guessed)

    def _found(self, leaf: Scalar) -> Iterator[_FoundValue]:
        """What is carried in one text or number of the client's; what is not is the client's own from now on."""
        text = _text(leaf)
        if text in self._named:
            yield _FoundValue(None, leaf, VALUE, self._named[text])
            return
        if not _may_hold(leaf):
            return
        over = 0
        for one in sorted(self._in_text(text), key=lambda each: (each[0].start, -each[0].end)):
            span, known, guessed = one
            if span.start >= over:
                over = span.end
                is_whole = span.text == text
                yield _FoundValue(
                    None if is_whole else (span.start, span.end), leaf if is_whole else span.text, VALUE, known, guessed
                )

    def _in_text(self, text: str) -> Iterator[tuple[TextSpan, _Known, bool]]:
        if self._named:
            for piece in _pieces(text):
                if piece[0] in self._named:
                    yield TextSpan(*piece.span(), piece[0]), self._named[piece[0]], False
        for one in _candidates(text):
            if one.text in self._guesses:
                yield one, self._guesses[one.text], True
            else:
                self._own.add(one.text)


def read_correlations(transcript: Transcript, handles: Sequence[str] = ()) -> Correlations:
    """What a transcript carries; `handles` are what `--carry` names. Raises: PathError: for one that cannot be read."""
    named = NamedVariables(handles)
    readers = [CorrelationReader(named) for _ in transcript.captures]
    in_order = _in_order(transcript)
    for message, _ in in_order:
        if message.sender == CLIENT:
            readers[message.capture].look_ahead(message)
    values: dict[MessageKey, tuple[CorrelatedValue, ...]] = {}
    for message, row in in_order:
        found = readers[message.capture].feed(message, row)
        if found:
            values[message_key(message)] = found
    wanted = {one.said for some in values.values() for each in some for one in each.origins}
    recorded = {said: message for reader in readers for said, message in reader.said.items() if said in wanted}
    return Correlations(values, recorded, _direct(transcript, values))


def _in_order(transcript: Transcript) -> list[tuple[Message, Exchange | UnpairedMessage]]:
    """Every message that can be read, with its row, in the order in which a tap saw them."""
    found: list[tuple[Message, Exchange | UnpairedMessage]] = []
    for row in transcript.rows:
        if isinstance(row, Exchange):
            found += [(one, row) for one in row.messages]
        elif isinstance(row, UnpairedMessage) and row.message.kind is not Kind.MALFORMED:
            found.append((row.message, row))
    return sorted(found, key=lambda one: (one[0].at_ns, one[0].capture, one[0].number))


def _direct(transcript: Transcript, values: dict[MessageKey, tuple[CorrelatedValue, ...]]) -> dict[int, set[int]]:
    """By row, the client's requests that gave out what it holds."""
    asked = {row.row for row in transcript.rows if isinstance(row, Exchange) and row.sender == CLIENT}
    found: dict[int, set[int]] = {}
    for some in values.values():
        for one in some:
            if one.from_row in asked and one.from_row != one.row:
                found.setdefault(one.row, set()).add(one.from_row)
    return found


def _candidates(text: str) -> Iterator[TextSpan]:
    """What of a text could be carried, the whole first."""
    found = list(opaque_words(text))
    if found and len(text) <= MAX_LETTERS and found[0].text != text:
        yield TextSpan(0, len(text), text)
    yield from found


def _may_hold(leaf: Scalar) -> bool:
    """Whether something made up may be in it: in any text, and in numbers that are as long as ids are."""
    return isinstance(leaf, str) or (isinstance(leaf, int) and leaf >= SHORTEST_ID)


def _leaves(message: Message, body: Any) -> Iterator[Leaf]:
    """The texts and numbers of a client's message that may have come from its server."""
    if not isinstance(body, dict):
        return
    if message.kind is Kind.RESULT:
        yield from leaves(body.get("result"), ("result",))
    params = body.get("params")
    if not isinstance(params, dict) or message.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
        return
    for name, value in params.items():
        if name not in _OWN and not (name == "name" and message.method in _NAMED):
            yield from leaves(value, ("params", name))
    meta = params.get("_meta")
    if isinstance(meta, dict) and RELATED_TASK in meta:
        yield from leaves(meta[RELATED_TASK], ("params", "_meta", RELATED_TASK))


def _content(body: dict[str, Any]) -> Iterator[Leaf]:
    """All that a server's message says."""
    for name in ("result", "error", "params"):
        if name in body:
            yield from leaves(body[name], (name,), into_texts=True)


def _text(leaf: Scalar) -> str:
    """A value as the text by which it is known: 17 and "17" are the same handle."""
    return leaf if isinstance(leaf, str) else canonical(leaf)
