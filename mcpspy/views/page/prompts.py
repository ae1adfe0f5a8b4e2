"""Prompts of a page, each as its difference from an earlier prompt, and the commands that send them likewise.

The script `01-data.js` restores them; change the two together. Nothing is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .model_calls import prompt_of_call
from .row_details import curl_text
from .text_runs import text_runs

if TYPE_CHECKING:
    from ...transcript.model import ModelCall, Transcript

MIN_LETTERS: Final = 2_000
"""A shorter prompt is stored whole."""

MAX_HELD: Final = 16
"""The most prompts whose text is kept in memory; others are built again."""


class _Texts(NamedTuple):
    """A prompt, and the command that sends it."""

    prompt: str
    curl: str


class Prompts:
    """Model calls of a page in order, each with its position in the list."""

    __slots__ = ("_by_number", "_held", "_last", "_places", "_transcript")

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._by_number = {call.row: call for call in transcript.model_calls}
        self._places: dict[int, int] = {}
        """The positions of the calls whose prompts can be referred to, by row number."""
        self._held: OrderedDict[int, _Texts] = OrderedDict()
        self._last: dict[int, int] = {}
        """The row number of the last of these, by capture."""

    def shorten(self, call: ModelCall, place: int, what: dict[str, Any]) -> None:
        """Store the prompt of `call` as a difference from an earlier call, if that is shorter."""
        prompt = what["messages"][0]
        if "text" not in prompt or "curl" not in what:
            return
        texts = _Texts(prompt["text"], what["curl"])
        number = self._like(call)
        if number and len(texts.prompt) >= MIN_LETTERS:
            like = self._texts(number)
            pieces, command = text_runs(texts.prompt, like.prompt), text_runs(texts.curl, like.curl)
            if 2 * sum(len(piece) for piece in pieces if isinstance(piece, str)) < len(texts.prompt):
                del prompt["text"]
                prompt |= {"like": self._places[number], "pieces": pieces}
                what["curl"] = {"like": self._places[number], "pieces": command}
        self._places[call.row] = place
        self._last[call.capture] = call.row
        self._hold(call.row, texts)

    def _like(self, call: ModelCall) -> int:
        """Find the row number of the call that this one continues, else of the call before it. 0 if there is none."""
        number = call.before
        while number and number not in self._places:
            number = self._by_number[number].before if number in self._by_number else 0
        return number or self._last.get(call.capture, 0)

    def _texts(self, number: int) -> _Texts:
        if number not in self._held:
            call = self._by_number[number]
            capture = self._transcript.captures[call.capture]
            self._hold(number, _Texts(prompt_of_call(call)["text"], curl_text(call.transaction, capture)))
        self._held.move_to_end(number)
        return self._held[number]

    def _hold(self, number: int, texts: _Texts) -> None:
        self._held[number] = texts
        if len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
