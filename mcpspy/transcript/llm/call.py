"""A model call: what passed between a client and a model's API once, and when. A row, as an exchange is one.

Refuses to hold what is in it: the prompt is read from the request's bytes when it is asked for, and the answer is put together from
the deltas as they come. Apart from `nouns`, so that who never meets a model does not wait for these to be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from ..outcome import HTTP_ERRORS, HTTP_REDIRECTS, Outcome

if TYPE_CHECKING:
    from ..http.transaction import Transaction
    from .model import Answer, Api, Prompt

METHODS: Final = {"chat": "chat.completions", "responses": "responses", "messages": "messages"}
"""What a call of each API goes by."""


class Assembly(Protocol):
    """An answer that is being put together."""

    @property
    def answer(self) -> Answer:
        """As far as it came."""


class ModelCall(msgspec.Struct, eq=False):
    """A request to a model's API and what came of it. `row` is its number, as an exchange has one.

    Times are nanoseconds on the transcript's clock.
    """

    row: int
    api: Api
    transaction: Transaction
    payload: bytes = b""
    """The body of the request, its content encoding taken off; empty while it goes on, and where it was not recorded."""
    model: str = ""
    """The model that is asked, as the request names it."""
    first_ns: int | None = None
    """When the first token was read: the first event that carries content; None while there is none, and for plain JSON."""
    added: int = 0
    """The index in `prompt.turns` of the first turn that the call before it, of the same conversation, did not have."""
    before: int = 0
    """The row of that call; 0 if it begins a conversation."""
    assembly: Assembly | None = None
    """What puts its answer together; None while nothing of it came."""

    @property
    def prompt(self) -> Prompt:
        """What was asked, read from `payload`. The last few are remembered; hold it rather than ask again in a long loop."""
        from .apis import prompt

        return prompt(self.api, self.payload)

    @property
    def answer(self) -> Answer | None:
        """What the model said so far; None while nothing of it came."""
        return None if self.assembly is None else self.assembly.answer

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.transaction.capture

    @property
    def number(self) -> int:
        """The record that it began with, in its capture."""
        request = self.transaction.request
        return -1 if request is None else request.opened.number

    @property
    def method(self) -> str:
        """What was asked of the API: `chat.completions`, `responses` or `messages`."""
        return METHODS[self.api]

    @property
    def target(self) -> str:
        """The model that is asked."""
        return self.model

    @property
    def at_ns(self) -> int:
        """When it began: when the last byte of the request was read."""
        request = self.transaction.request
        return self.transaction.at_ns if request is None or request.last_ns is None else request.last_ns

    @property
    def outcome(self) -> Outcome:
        """What became of it so far."""
        transaction = self.transaction
        if transaction.status >= HTTP_ERRORS:
            return Outcome.HTTP_ERROR
        if transaction.status >= HTTP_REDIRECTS:
            return Outcome.REDIRECTED
        answer = self.answer
        if answer is not None and answer.error:
            return Outcome.ERROR
        if answer is not None and answer.is_whole:
            return Outcome.OK
        if not transaction.over:
            return Outcome.PENDING
        return Outcome.CANCELLED if transaction.ended_by == "client" else Outcome.UNANSWERED

    @property
    def ended_ns(self) -> int | None:
        """When the last byte of the answer was read, or the connection ended before one; None while it goes on."""
        response = self.transaction.response
        if self.transaction.over and response is not None and response.last_ns is not None:
            return response.last_ns
        return self.transaction.ended_ns

    @property
    def duration_ns(self) -> int | None:
        """From the request's last byte to the answer's last byte; None while that goes on."""
        return None if self.ended_ns is None else self.ended_ns - self.at_ns

    @property
    def until_first_ns(self) -> int | None:
        """From the request's last byte to the first token; None where there is none, and for plain JSON."""
        return None if self.first_ns is None else self.first_ns - self.at_ns
