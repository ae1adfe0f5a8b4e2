"""Masks of captured text in columns and spans: they replace what `export share` replaces, with pseudonyms of the store's key.

What is secret by its name in one message is replaced in all others, so a capture is learned first: from its file, where payloads
are written too, else from its rows as they are read, which leaves out what only heads and lines of a log give away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from copy import deepcopy

from ...sharing.hints import may_tell, that_may_have
from ...transcript.model import Exchange, Log, ModelCall, Row, Transcript, UnpairedMessage
from ..share_copy import Copier, Original, copier_of

_LOOK_PAYLOADS = 200
_LARGE_BYTES = 1 << 16
"""So many payloads are looked at together, or fewer if one is large: most of them tell no secret."""

_CUT_OFF = "…"


def new_copier(store_key: bytes | None = None) -> Copier:
    """Return a copier that knows the secrets of this machine. Without `store_key` pseudonyms are those of its store."""
    return copier_of(personal=False, same_key=True, store_key=store_key)


class ShareMask:
    """A mask of captured texts, which knows the secrets of this machine, and those of captures that it has learned."""

    def __init__(self, store_key: bytes | None = None) -> None:
        self._key = store_key
        self._copier = new_copier(store_key)
        self._copier.learned()
        self._known = self._copier.known.count
        self._is_done = False

    def learn_files(self, *paths: str) -> None:
        """Learn captures from their files. Raises: CaptureError; OSError."""
        copier = new_copier(self._key)
        with ExitStack() as files:
            for path in paths:
                copier.learn(Original(files.enter_context(open(path, "rb")), path))
        copier.learned()
        self._copier = copier
        self._is_done = True

    def learn(self, transcript: Transcript) -> None:
        """Learn from the rows of a transcript, unless all is known."""
        if self._is_done:
            return
        learning = SecretLearning(transcript, new_copier(self._key))
        learning.feed(transcript.rows)
        self._copier = learning.end()

    def texts(self, texts: list[str | None]) -> list[str | None]:
        """Mask the texts of a column. Most have no secret."""
        data = {text.encode("utf-8", "surrogatepass"): text for text in set(texts) if text}
        suspects = set(that_may_have(data))
        if self._copier.known:
            suspects.update(text for text in data if next(self._copier.known.edits(text), None) is not None)
        new = {old: masked for text in suspects if (masked := self._masked(old := data[text])) != old}
        return [new.get(text, text) if text else text for text in texts] if new else texts

    def payload(self, payload: bytes) -> str:
        """Return a payload without secrets."""
        return self._copier.masked(payload).decode("utf-8", "replace")

    def _masked(self, text: str) -> str:
        if _CUT_OFF in text:
            return self._copier.masked_text(text).encode("utf-8", "replace").decode()
        return self._copier.masked(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


class SecretLearning:
    """The secrets that rows tell: a watcher of rows, which also learns the command of their captures."""

    def __init__(self, transcript: Transcript, copier: Copier) -> None:
        self._transcript = transcript
        self._copier = copier
        self._held: list[bytes] = []

    def feed(self, rows: Iterable[Row]) -> None:
        """Take some rows."""
        held = self._held
        for row in rows:
            held += (payloads := _payloads(row))
            if len(held) >= _LOOK_PAYLOADS or (payloads and len(payloads[-1]) > _LARGE_BYTES):
                self._look()
                held = self._held

    def end(self) -> Copier:
        """Return what has learned all rows."""
        self._look()
        self._copier.learn_records(deepcopy(info.header) for info in self._transcript.captures if info.header is not None)
        self._copier.learned()
        return self._copier

    def _look(self) -> None:
        """Learn from the held payloads, if they may tell a secret."""
        held, self._held = self._held, []
        if may_tell(b"\n".join(held)):
            self._copier.learn_payloads(payload for payload in held if may_tell(payload))


def _payloads(row: Row) -> Sequence[bytes]:
    if isinstance(row, Exchange):
        if row.response is not None and not (row.notifications or row.partials or row.more_responses):
            return (row.request.raw, row.response.raw)
        return [message.raw for message in row.messages]
    if isinstance(row, UnpairedMessage):
        return (row.message.raw,)
    if isinstance(row, ModelCall):
        return (row.payload,)
    return (row.raw,) if isinstance(row, Log) else ()
