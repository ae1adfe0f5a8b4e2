"""Reading of correlations: finds in each message of a client the values that its server had sent before.

First it looks ahead at everything the client sends, so that only such values are remembered. It leaves out what a client says of
itself, and the names of tools and prompts.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ....json_path import Step
from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....transcript.mcp.codes import RELATED_TASK
from ....transcript.model import Exchange, Kind, Message, Transcript, UnpairedMessage
from ...json_values import Leaf, Scalar, leaves, read
from .model import VALUE, CorrelatedValue, Correlations, MessageKey, MessageRef, ValueOrigin, message_key, text_of
from .values import MIN_DIGITS, TASK_ID, GeneratedValue, NamedVariables, TextSpan, issued_values, opaque_words, returned_values

MAX_OTHERS: Final = 8
"""The most other origins of a value that are remembered, in case the first is not requested again."""

SHORTEST_ID: Final = 10 ** (MIN_DIGITS - 1)
"""Smaller numbers are amounts, dates, or indices."""

MAX_LETTERS: Final = 4096
"""Longer texts are not taken as one value; words in them are."""

ROOTS: Final = "roots/list"

_CLIENTS_OWN: Final = frozenset(("_meta", "protocolVersion", "capabilities", "clientInfo", "progressToken", "requestId", "ref"))
"""Members of `params` that describe a client, or refer to messages."""

_WITH_FIXED_NAME: Final = frozenset(("tools/call", "prompts/get"))
"""Requests whose `name` a server never generates."""

_pieces = lazy_pattern(r"[^/?&=#:,;\s\"'()<>\[\]{}]+")

_Key = tuple[str, str | None, tuple["Step", ...]]
"""Method, target, and steps with `*` for each index: the same for all places that issue the same kind of value."""


class _Origins:
    """The places where the server sent one value: `issuer` is the one that issued it, and `key` the issuer's kind of place."""

    __slots__ = ("issuer", "key", "others")

    def __init__(self, issuer: ValueOrigin, key: _Key) -> None:
        self.issuer = issuer
        self.key = key
        self.others: deque[ValueOrigin] = deque(maxlen=MAX_OTHERS)

    def add(self, origin: ValueOrigin, key: _Key, *, issues: bool) -> None:
        """Add another place, which may be the new issuer.

        It is if `issues` says so, if it is the same kind of place, or if it is an answer and the issuer was a message before it. In
        one message a whole value is a better issuer than a part of a text.
        """
        is_same_message = origin.message == self.issuer.message
        if is_same_message and (origin.span is not None or self.issuer.span is None):
            self.others.append(origin)
        elif issues or key == self.key or is_same_message or (self.issuer.message.method and not origin.message.method):
            self.others.appendleft(self.issuer)
            self.issuer, self.key = origin, key
        else:
            self.others.appendleft(origin)

    @property
    def all(self) -> tuple[ValueOrigin, ...]:
        return self.issuer, *self.others


class _FoundValue(NamedTuple):
    """A correlated value at one place of the client's message."""

    span: tuple[int, int] | None
    value: Scalar
    origins: _Origins
    is_guessed: bool = False


class CorrelationReader:
    """A reader of the messages of one capture, in order. `messages` are the server's, by reference."""

    __slots__ = (
        "_clients_own", "_clients_tasks", "_counts", "_guesses", "_named", "_specified", "_used", "_variables", "_wanted", "messages",
    )  # fmt: skip

    def __init__(self, variables: NamedVariables) -> None:
        self._variables = variables
        self.messages: dict[MessageRef, Message] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._wanted: set[str] = set()
        """The opaque words that the client sends."""
        self._clients_own: set[str] = set()
        """Those that the client sent before the server."""
        self._guesses: dict[str, _Origins] = {}
        """The origins of opaque words."""
        self._specified: dict[GeneratedValue, _Origins] = {}
        """The origins of what the specification says that servers generate."""
        self._clients_tasks: set[GeneratedValue] = set()
        """Tasks that the client runs for the server: it generates their ids."""
        self._named: dict[str, _Origins] = {}
        """The origins of the variables that `--carry` names."""
        self._used: dict[int, set[str]] = {}
        """By row, the correlated values in its request."""

    def look_ahead(self, message: Message) -> None:
        """Take a message that the client is going to send."""
        for _, leaf in _leaves(message, read(message.raw)):
            if _may_be_opaque(leaf):
                self._wanted.update(span.text for span in _candidates(text_of(leaf)))

    def feed(self, message: Message, row: Exchange | UnpairedMessage) -> tuple[CorrelatedValue, ...]:
        """Take the next message with its row; return the correlated values in it, if it is the client's."""
        if message.sender == CLIENT:
            if isinstance(row, Exchange) and row.method == ROOTS:
                return ()  # a client's folders are its own, even if its server names them too
            return tuple(self._take_clients(message, row.row))
        self._take_servers(message, row)
        return ()

    # The server

    def _take_servers(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        reference = self._reference(message, row)
        self.messages[reference] = message
        body = read(message.raw)
        if not isinstance(body, dict):
            return
        method, target = (row.method, row.target) if isinstance(row, Exchange) else (message.method or "", None)

        def add(
            known: dict[Any, _Origins],
            value: Any,
            steps: tuple[Step, ...],
            span: tuple[int, int] | None,
            *,
            is_name: bool = False,
        ) -> None:
            origin = ValueOrigin(reference, row.row, steps, span, is_name)
            key = method, target, tuple("*" if isinstance(step, int) else step for step in steps)
            if value in known:
                known[value].add(origin, key, issues=isinstance(value, GeneratedValue) and value.what != TASK_ID)
            else:
                known[value] = _Origins(origin, key)

        used: set[str] = self._used.get(row.row, set())
        for generated, steps, is_name in issued_values(message, method, body):
            if generated not in self._clients_tasks and (generated.what != TASK_ID or generated.value not in used):
                add(self._specified, generated, steps, None, is_name=is_name)
        for steps, leaf in self._variables.leaves(body):
            if leaf != "" and text_of(leaf) not in used:
                add(self._named, text_of(leaf), steps, None)
        if self._wanted or self._variables.values:
            for steps, leaf in _content(body):
                for value, span in self._named_values(leaf):
                    if value not in used:
                        add(self._named, value, steps, span)
                for word in self._wanted_words(text_of(leaf)) if _may_be_opaque(leaf) else ():
                    if word.text not in used:
                        add(self._guesses, word.text, steps, None if word.text == text_of(leaf) else (word.start, word.end))

    def _reference(self, message: Message, row: Exchange | UnpairedMessage) -> MessageRef:
        if message.kind in (Kind.RESULT, Kind.ERROR):
            return MessageRef(row.row)
        owner = 0 if isinstance(row, UnpairedMessage) else row.row
        method = message.method or ""
        nth = self._counts.get((owner, method), 0)
        self._counts[owner, method] = nth + 1
        return MessageRef(owner, method, nth)

    def _wanted_words(self, text: str) -> Iterator[TextSpan]:
        """Yield the parts of a server's text that the client is going to send, and has not sent yet."""
        wanted, own = self._wanted, self._clients_own
        if text in wanted and text not in own:
            yield TextSpan(0, len(text), text)
        for word in opaque_words(text):
            if word.text in wanted and word.text not in own and word.text != text:
                yield word

    def _named_values(self, leaf: Scalar) -> Iterator[tuple[str, tuple[int, int] | None]]:
        """Yield the values that `--carry` names themselves, in a text or number of the server."""
        text = text_of(leaf)
        for value in self._variables.values:
            if text == value:
                yield value, None
            elif isinstance(leaf, str) and (match := re.search(rf"(?<!\w){re.escape(value)}(?!\w)", leaf)):
                yield value, match.span()

    # The client

    def _take_clients(self, message: Message, row: int) -> Iterator[CorrelatedValue]:
        body = read(message.raw)
        if not isinstance(body, dict):
            return
        if message.kind is Kind.RESULT:
            issued = (generated for generated, _, _ in issued_values(message, "", body))
            self._clients_tasks.update(generated for generated in issued if generated not in self._specified)
        done: set[tuple[Step, ...]] = set()
        for returned, steps, is_name in returned_values(message, body):
            origins = self._specified.get(returned)
            if origins is not None:
                done.add(steps)
                self._used.setdefault(row, set()).add(returned.value)
                yield CorrelatedValue(row, steps, None, returned.value, returned.what, origins.all, is_name=is_name)
        for steps, leaf in _leaves(message, body):
            if steps not in done:
                for found in self._values_in(leaf):
                    self._used.setdefault(row, set()).add(text_of(found.value))
                    yield CorrelatedValue(row, steps, found.span, found.value, VALUE, found.origins.all, found.is_guessed)

    def _values_in(self, leaf: Scalar) -> Iterator[_FoundValue]:
        """Yield the correlated values in one text or number of the client; other opaque words are the client's own from now on."""
        text = text_of(leaf)
        if text in self._named:
            yield _FoundValue(None, leaf, self._named[text])
            return
        if not _may_be_opaque(leaf):
            return
        end = 0
        for span, origins, is_guessed in sorted(self._spans_in(text), key=lambda found: (found[0].start, -found[0].end)):
            if span.start < end:
                continue
            end = span.end
            if span.text == text:
                yield _FoundValue(None, leaf, origins, is_guessed)
            else:
                yield _FoundValue((span.start, span.end), span.text, origins, is_guessed)

    def _spans_in(self, text: str) -> Iterator[tuple[TextSpan, _Origins, bool]]:
        if self._named:
            for piece in _pieces.finditer(text):
                if piece[0] in self._named:
                    yield TextSpan(*piece.span(), piece[0]), self._named[piece[0]], False
        for word in _candidates(text):
            if word.text in self._guesses:
                yield word, self._guesses[word.text], True
            else:
                self._clients_own.add(word.text)


def read_correlations(transcript: Transcript, names: Sequence[str] = ()) -> Correlations:
    """Read the correlations of a transcript; `names` are those of `--carry`. Raises: PathError: for one that cannot be read."""
    variables = NamedVariables(names)
    readers = [CorrelationReader(variables) for _ in transcript.captures]
    in_order = _in_order(transcript)
    for message, _ in in_order:
        if message.sender == CLIENT:
            readers[message.capture].look_ahead(message)
    values: dict[MessageKey, tuple[CorrelatedValue, ...]] = {}
    for message, row in in_order:
        correlated = readers[message.capture].feed(message, row)
        if correlated:
            values[message_key(message)] = correlated
    wanted = {origin.message for in_message in values.values() for value in in_message for origin in value.origins}
    recorded = {
        reference: message for reader in readers for reference, message in reader.messages.items() if reference in wanted
    }
    return Correlations(values, recorded, _direct_needs(transcript, values))


def _in_order(transcript: Transcript) -> list[tuple[Message, Exchange | UnpairedMessage]]:
    """List every readable message with its row, in the order in which a tap saw them."""
    messages: list[tuple[Message, Exchange | UnpairedMessage]] = []
    for row in transcript.rows:
        if isinstance(row, Exchange):
            messages += [(message, row) for message in row.messages]
        elif isinstance(row, UnpairedMessage) and row.message.kind is not Kind.MALFORMED:
            messages.append((row.message, row))
    return sorted(messages, key=lambda item: (item[0].at_ns, item[0].capture, item[0].number))


def _direct_needs(transcript: Transcript, values: dict[MessageKey, tuple[CorrelatedValue, ...]]) -> dict[int, set[int]]:
    """Return, by row, the client's requests whose answers issued its values."""
    requests = {row.row for row in transcript.rows if isinstance(row, Exchange) and row.sender == CLIENT}
    needs: dict[int, set[int]] = {}
    for in_message in values.values():
        for value in in_message:
            if value.from_row in requests and value.from_row != value.row:
                needs.setdefault(value.row, set()).add(value.from_row)
    return needs


def _candidates(text: str) -> Iterator[TextSpan]:
    """Yield the parts of a text that may be correlated, the whole first."""
    words = list(opaque_words(text))
    if words and len(text) <= MAX_LETTERS and words[0].text != text:
        yield TextSpan(0, len(text), text)
    yield from words


def _may_be_opaque(leaf: Scalar) -> bool:
    """Return whether it may hold something opaque: any text may, and numbers that are as long as ids."""
    return isinstance(leaf, str) or (isinstance(leaf, int) and leaf >= SHORTEST_ID)


def _leaves(message: Message, body: Any) -> Iterator[Leaf]:
    """Yield the texts and numbers of a client's message that may come from its server."""
    if not isinstance(body, dict):
        return
    if message.kind is Kind.RESULT:
        yield from leaves(body.get("result"), ("result",))
    params = body.get("params")
    if not isinstance(params, dict) or message.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
        return
    for name, value in params.items():
        if name not in _CLIENTS_OWN and not (name == "name" and message.method in _WITH_FIXED_NAME):
            yield from leaves(value, ("params", name))
    meta = params.get("_meta")
    if isinstance(meta, dict) and RELATED_TASK in meta:
        yield from leaves(meta[RELATED_TASK], ("params", "_meta", RELATED_TASK))


def _content(body: dict[str, Any]) -> Iterator[Leaf]:
    """Yield all texts and numbers of a server's message."""
    for name in ("result", "error", "params"):
        if name in body:
            yield from leaves(body[name], (name,), into_texts=True)
