"""A model call: one request to a model API and its response, with their times. It is a row, as an exchange is.

It does not hold the prompt, which is read from the request's bytes on demand, nor the answer, which its assembly puts together. The
types of both are in `model` and are not imported here, so that a transcript without a model API does not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ..http.transaction import Transaction
from ..outcome import HTTP_ERRORS, HTTP_REDIRECTS, Outcome

if TYPE_CHECKING:
    from .bodies import AnswerDecoder
    from .prompt import Answer, Api, Prompt

METHODS: Final = {"chat": "chat.completions", "responses": "responses", "messages": "messages"}
"""The method that is shown for a call of each API."""


class ModelCall(msgspec.Struct, eq=False):
    """A request to a model API and its response. `row` is its number, as an exchange has one.

    Times are nanoseconds on the transcript's clock.
    """

    row: int
    api: Api
    transaction: Transaction
    payload: bytes = b""
    """The decoded body of the request; empty while it is being sent, and if it was not recorded."""
    model: str = ""
    """The model that the request names."""
    first_ns: int | None = None
    """Time of the first token, which is the first event with content; None while there is none, and for plain JSON."""
    added: int = 0
    """Index in `prompt.turns` of the first turn that is new: that the call before it in the conversation did not have."""
    before: int = 0
    """Row of the call before it in the conversation; 0 if it begins one."""
    assembly: AnswerDecoder | None = None
    """The decoder of its answer; None until a response begins."""

    @property
    def prompt(self) -> Prompt:
        """The prompt, read from `payload`. Only the last few are cached: in a long loop, keep it in a variable."""
        from .apis import prompt

        return prompt(self.api, self.payload)

    @property
    def answer(self) -> Answer | None:
        """The answer, as far as it was received; None until a response begins."""
        return None if self.assembly is None else self.assembly.answer

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.transaction.capture

    @property
    def number(self) -> int:
        """The number of the record that opened its request, in its capture."""
        request = self.transaction.request
        return -1 if request is None else request.record

    @property
    def method(self) -> str:
        """The API's method: `chat.completions`, `responses` or `messages`."""
        return METHODS[self.api]

    @property
    def target(self) -> str:
        """The model that the request names, as an exchange has the tool that it calls."""
        return self.model

    @property
    def at_ns(self) -> int:
        """Time at which it began: the last byte of the request was read."""
        request = self.transaction.request
        return self.transaction.at_ns if request is None or request.last_ns is None else request.last_ns

    @property
    def outcome(self) -> Outcome:
        """Its outcome so far."""
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
        """Time at which the last byte of the answer was read, or the connection ended without one; None while it goes on."""
        response = self.transaction.response
        if self.transaction.over and response is not None and response.last_ns is not None:
            return response.last_ns
        return self.transaction.ended_ns

    @property
    def duration_ns(self) -> int | None:
        """Time from the request's last byte to the answer's last byte; None while it goes on."""
        return None if self.ended_ns is None else self.ended_ns - self.at_ns

    @property
    def until_first_ns(self) -> int | None:
        """Time from the request's last byte to the first token; None while there is none, and for plain JSON."""
        return None if self.first_ns is None else self.first_ns - self.at_ns
