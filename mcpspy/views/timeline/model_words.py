"""A model call in a few words: what the model said or wants done, and how many tokens that took. Refuses to show turns whole."""

from ...transcript.llm.call import ModelCall
from ...transcript.llm.model import Answer, ToolUse, Usage
from ...transcript.outcome import Outcome
from ..text.escape import PHRASE_LETTERS, one_line
from ..text.units import duration
from .phrases import Phrase, status_words

SAID_LETTERS = 60
"""So much of a text stands in a row before the tokens: what is cut there, `show @:7` has whole."""

ENOUGH = frozenset({"", "stop", "end_turn", "tool_calls", "tool_use", "function_call", "completed", "stop_sequence"})
"""Why answers end that are all that the model wanted to say."""

_STYLES = {
    Outcome.PENDING: "wait",
    Outcome.OK: "dim",
    Outcome.ERROR: "bad",
    Outcome.HTTP_ERROR: "bad",
    Outcome.UNANSWERED: "bad",
}


def model_phrase(call: ModelCall, letters: int = SAID_LETTERS) -> Phrase:
    """How a model call ended: `ok: → get_weather {"city":"杭州"} · 88 + 15 tokens`."""
    outcome, answer = call.outcome, call.answer
    style = _STYLES.get(outcome, "warn")
    if outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED):
        said = one_line(answer.error) if answer is not None else ""
        return Phrase(outcome.value, style, f"{status_words(call.transaction)}{f': {said}' if said else ''}")
    if answer is None:
        return Phrase(outcome.value, style)
    parts = [one_line(answer.error)] if answer.error else []
    parts += [answer_words(answer, letters), usage_words(answer.usage)]
    if answer.finish not in ENOUGH:
        parts.append(one_line(answer.finish))
        style = "warn" if outcome is Outcome.OK else style
    return Phrase(outcome.value, style, " · ".join(filter(None, parts)))


def answer_words(answer: Answer, letters: int = SAID_LETTERS) -> str:
    """What the model wants done, else what it says: `→ fetch {"url":"…"}`, `“It is sunny.”`."""
    turn = answer.turn
    if turn.uses:
        return ", ".join(f"→ {use_words(use, letters)}" for use in turn.uses)
    text = turn.text or turn.refusal or turn.thinking
    return f"“{one_line(text, letters)}”" if text.strip() else ""


def use_words(use: ToolUse, letters: int = SAID_LETTERS) -> str:
    """A tool use: the tool's name and its arguments."""
    arguments = one_line(use.arguments, letters)
    return f"{one_line(use.name) or '(no name)'}{f' {arguments}' if arguments not in ('', '{}') else ''}"


def usage_words(usage: Usage) -> str:
    """Tokens as the API counted them: `88 + 15 tokens`; empty where it did not say."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return ""
    asked, said = (("?" if one is None else f"{one:,}") for one in (usage.input_tokens, usage.output_tokens))
    cached = f", {usage.cached_tokens:,} cached" if usage.cached_tokens else ""
    thought = f", {usage.reasoning_tokens:,} of reasoning" if usage.reasoning_tokens else ""
    return f"{asked} + {said} tokens{cached}{thought}"


def first_token_words(call: ModelCall) -> str:
    """`first token after 312 ms`; empty for plain JSON."""
    return "" if call.until_first_ns is None else f"first token after {duration(call.until_first_ns)}"


def words_of(text: str, letters: int = PHRASE_LETTERS) -> str:
    """Captured text in a line, in quotation marks."""
    return f"“{one_line(text, letters)}”"
