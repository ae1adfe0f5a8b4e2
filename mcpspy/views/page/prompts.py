"""The prompts of a page: each told by what it repeats of the one that it goes on with, and so the command that sends it.

The script `01-data.js` puts them together again; the two change together. Refuses to leave anything out.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .carried import curl_text
from .model_calls import prompt_of_call
from .repeated import repeated

if TYPE_CHECKING:
    from ...transcript.model import ModelCall, Transcript

MIN_LETTERS: Final = 2_000
"""A shorter prompt stands whole."""

MAX_HELD: Final = 16
"""The texts of so many prompts are at hand, as many as go on at once; others are made again."""


class _Texts(NamedTuple):
    """A prompt, and the command that sends it."""

    prompt: str
    curl: str


class Prompts:
    """Takes in the model calls of a page in its order, each with its place in the list."""

    __slots__ = ("_by_number", "_held", "_last", "_places", "_transcript")

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._by_number = {one.row: one for one in transcript.model_calls}
        self._places: dict[int, int] = {}
        """Of the calls whose prompts can be referred to, by their numbers."""
        self._held: OrderedDict[int, _Texts] = OrderedDict()
        self._last: dict[int, int] = {}
        """The number of the last of these, by capture."""

    def shorten(self, call: ModelCall, place: int, what: dict[str, Any]) -> None:
        """Tell the prompt in `what` the call carries beside that of a call before it, if that is shorter."""
        prompt = what["messages"][0]
        if "text" not in prompt or "curl" not in what:
            return
        texts = _Texts(prompt["text"], what["curl"])
        number = self._like(call)
        if number and len(texts.prompt) >= MIN_LETTERS:
            like = self._texts(number)
            pieces, command = repeated(texts.prompt, like.prompt), repeated(texts.curl, like.curl)
            if 2 * sum(len(one) for one in pieces if isinstance(one, str)) < len(texts.prompt):
                del prompt["text"]
                prompt |= {"like": self._places[number], "pieces": pieces}
                what["curl"] = {"like": self._places[number], "pieces": command}
        self._places[call.row] = place
        self._last[call.capture] = call.row
        self._hold(call.row, texts)

    def _like(self, call: ModelCall) -> int:
        """The number of the call on the page that it goes on with, else of the one before it; 0 if there is none."""
        number = call.before
        while number and number not in self._places:
            number = self._by_number[number].before if number in self._by_number else 0
        return number or self._last.get(call.capture, 0)

    def _texts(self, number: int) -> _Texts:
        if number not in self._held:
            call = self._by_number[number]
            source = self._transcript.captures[call.capture]
            self._hold(number, _Texts(prompt_of_call(call)["text"], curl_text(call.transaction, source)))
        self._held.move_to_end(number)
        return self._held[number]

    def _hold(self, number: int, texts: _Texts) -> None:
        self._held[number] = texts
        if len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
