"""Model calls in a few words: what the model said or which tools it uses, and the number of tokens."""

from ...transcript.llm.model_call import ModelCall
from ...transcript.llm.prompt import Answer, ToolUse, Usage
from ...transcript.outcome import Outcome
from ..text.escape import PHRASE_LETTERS, one_line
from ..text.units import duration
from .phrases import OUTCOME_STYLES, Phrase, status_words

SAID_LETTERS = 60
"""The letters of a text that a row shows before the tokens; `show @:7` shows all of it."""

ENOUGH = frozenset({"", "stop", "end_turn", "tool_calls", "tool_use", "function_call", "completed", "stop_sequence"})
"""The finish reasons of answers that the model ended by itself."""


def model_phrase(call: ModelCall, letters: int = SAID_LETTERS) -> Phrase:
    """Return the outcome of a model call: `ok: → get_weather {"city":"杭州"} · 88 tokens in, 15 out`."""
    outcome, answer = call.outcome, call.answer
    style = OUTCOME_STYLES[outcome]
    if outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED):
        error = one_line(answer.error) if answer is not None else ""
        return Phrase(outcome.value, style, f"{status_words(call.transaction)}{f': {error}' if error else ''}")
    if answer is None:
        return Phrase(outcome.value, style)
    parts = [one_line(answer.error)] if answer.error else []
    parts += [answer_words(answer, letters), usage_words(answer.usage)]
    if answer.finish not in ENOUGH:
        parts.append(one_line(answer.finish))
        style = "warn" if outcome is Outcome.OK else style
    return Phrase(outcome.value, style, " · ".join(filter(None, parts)))


def answer_words(answer: Answer, letters: int = SAID_LETTERS) -> str:
    """Return the tool uses of an answer, else its text: `→ fetch {"url":"…"}`, `“It is sunny.”`."""
    turn = answer.turn
    if turn.uses:
        return ", ".join(f"→ {use_words(use, letters)}" for use in turn.uses)
    text = turn.text or turn.refusal or turn.thinking
    return f"“{one_line(text, letters)}”" if text.strip() else ""


def use_words(use: ToolUse, letters: int = SAID_LETTERS) -> str:
    """Return the name and the arguments of a tool use."""
    arguments = one_line(use.arguments, letters)
    return f"{one_line(use.name) or '(no name)'}{f' {arguments}' if arguments not in ('', '{}') else ''}"


def usage_words(usage: Usage) -> str:
    """Return the tokens of prompt and answer as the API counted them: `88 tokens in, 15 out`; empty where it did not count."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return ""
    tokens_in, tokens_out = (("?" if count is None else f"{count:,}") for count in (usage.input_tokens, usage.output_tokens))
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    reasoning = f" ({usage.reasoning_tokens:,} for reasoning)" if usage.reasoning_tokens else ""
    return f"{tokens_in} tokens in{cached}, {tokens_out} out{reasoning}"


def first_token_words(call: ModelCall) -> str:
    """Return `first token after 312 ms`; empty for an answer that was not streamed."""
    return "" if call.until_first_ns is None else f"first token after {duration(call.until_first_ns)}"


def quoted_text(text: str, letters: int = PHRASE_LETTERS) -> str:
    """Return captured text on one line, in quotation marks."""
    return f"“{one_line(text, letters)}”"
