"""What HTTP alone says to what is asked live: logins, refusals and documents, in the order of the recording.

A machine that is fed each live request once. Refuses to serve MCP: where the recording let a request through, it says nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .exchanges import path_of, question_of
from .refusals import MCP_METHODS, Key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer import Answer, Asked
    from .facts import HttpFacts


class HttpWalk:
    """One client's way through the refusals of a recording. Each session has one, and so has what comes without a session."""

    __slots__ = ("_facts", "_given")

    def __init__(self, facts: HttpFacts) -> None:
        self._facts = facts
        self._given: Counter[Key] = Counter()

    def answer(self, asked: Asked) -> Answer | None:
        """What is said to this request; None if it goes on to MCP, or nobody knows its path. It counts: ask once per request."""
        facts = self._facts
        path = facts.recorded_path(asked)
        is_mcp = asked.method in MCP_METHODS and (path in facts.mcp_paths or path_of(asked.target) == asked.live.path)
        found = self._of_mcp(asked, path) if is_mcp else self._document(asked, path)
        return None if found is None else facts.names.answer(found, facts.placed(asked), asked.target)

    def _of_mcp(self, asked: Asked, path: str) -> Answer | None:
        facts = self._facts
        key = (asked.method, path, question_of(asked.message, facts.asking))
        challenge = None if asked.is_authorized else facts.challenge(key)
        if challenge is not None:
            return challenge
        if asked.method == "GET":
            return facts.no_stream
        if asked.method == "DELETE":
            return facts.deleted
        return self._next(key, facts.refusals.get(key, ()))

    def _document(self, asked: Asked, path: str) -> Answer | None:
        documents = self._facts.documents
        query = asked.target.partition("?")[2]
        exact = (asked.method, path, query)
        key: Key = exact if exact in documents else (asked.method, path, "")
        return self._next(key, documents.get(key, ()))

    def _next(self, key: Key, recorded: Sequence[Answer | None]) -> Answer | None:
        """The next of several; after the last, that one again."""
        if not recorded:
            return None
        given = self._given[key]
        self._given[key] += 1
        return recorded[min(given, len(recorded) - 1)]
