"""Model calls as steps of a diagram: what the user asks, what the model receives, what it answers and which tools it uses.

The user is not recorded: the words come from prompts, and from answers without tool uses. What became of a tool use is drawn by the
rows of its server.
"""

from collections.abc import Iterator
from typing import Final

from ...transcript.llm.agent_runs import AgentRun, agent_runs
from ...transcript.llm.prompt import Prompt, ToolReturn, Turn
from ...transcript.llm.tool_trips import ToolTrip, tool_trips
from ...transcript.model import ModelCall, Transcript
from ...transcript.outcome import Outcome
from ..text.escape import one_line, safe_text
from ..text.units import counted, duration
from ..timeline.details import Detail
from ..timeline.model_call import answer_words, first_token_words, model_phrase, quoted_text
from ..timeline.payloads import bounded
from .diagram import Arrow, ArrowKind, Aside
from .lanes import DiagramLanes

LETTERS: Final = 60
MORE_LETTERS: Final = 100
"""Characters of a text that `--detail params` shows."""

MAX_RETURNS: Final = 3
"""Tool returns of one prompt that are shown; the rest are counted."""

Drawn = Arrow | Aside


class ModelSteps:
    """Steps of model calls. `runs` are the agent runs of the whole transcript."""

    __slots__ = ("_detail", "_lanes", "_letters", "_returned", "_runs", "runs")

    def __init__(self, transcript: Transcript, lanes: DiagramLanes, detail: Detail) -> None:
        trips = tool_trips(transcript)
        self._lanes = lanes
        self._detail = detail
        self._letters = LETTERS if detail is Detail.NAMES else MORE_LETTERS
        self.runs: list[AgentRun] = agent_runs(transcript, trips)
        self._runs = {call.row: run for run in self.runs for call in run.calls}
        self._returned: dict[int, list[ToolTrip]] = {}
        for trip in trips:
            if trip.returned_in is not None:
                self._returned.setdefault(trip.returned_in.row, []).append(trip)

    def feed(self, call: ModelCall) -> Iterator[Drawn]:
        """Yield the steps of a model call, in order."""
        client, model = self._lanes.client(call), self._lanes.server(call)
        run = self._runs[call.row]
        if call is run.calls[0] and run.user_text:
            words = quoted_text(run.user_text, self._letters)
            spoken_ns = run.spoken_ns
            yield self._arrow(call, self._lanes.user, client, ArrowKind.REQUEST, words, at_ns=spoken_ns, opens=client)
        yield self._prompt(call, client, model)
        yield self._answer(call, client, model)
        answer = call.answer
        if call is run.calls[-1] and run.is_whole and run.user_text and answer is not None and call.ended_ns is not None:
            words = answer_words(answer, self._letters) or "nothing"
            ended_ns = call.ended_ns
            yield self._arrow(call, client, self._lanes.user, ArrowKind.RESPONSE, words, at_ns=ended_ns, closes=client)

    def _prompt(self, call: ModelCall, client: str, model: str) -> Arrow:
        prompt = call.prompt
        new = prompt.turns[call.added :]
        content = self._returns(call, [returned for turn in new for returned in turn.returns]) or _size(prompt)
        offers = [f"{counted(len(prompt.offers), 'tool')} offered"] if prompt.offers and not call.before else []
        text = one_line(f"{call.row} {call.target or call.method}") + f": {' · '.join([content, *offers])}"
        response = call.transaction.response
        is_stopped = response is not None and response.injected
        details = tuple(bounded(_prompt_lines(prompt, new, is_first=not call.before))) if self._detail is Detail.FULL else ()
        return self._arrow(
            call, client, model, ArrowKind.REQUEST, text, opens=model, details=details, stops=is_stopped
        )  # fmt: skip

    def _returns(self, call: ModelCall, returns: list[ToolReturn]) -> str:
        """Describe the results of tool uses as the prompt reports them to the model."""
        left = list(self._returned.get(call.row, ()))
        words: list[str] = []
        for returned in returns[:MAX_RETURNS]:
            tool_trip = next((tool_trip for tool_trip in left if tool_trip.returned == returned), None)
            if tool_trip is not None:
                left.remove(tool_trip)
            name = one_line(returned.name or ("" if tool_trip is None else tool_trip.use.name)) or "a tool"
            words.append(f"← {name}{' failed' if returned.is_error else ''} {quoted_text(returned.text, self._letters)}")
        if len(returns) > MAX_RETURNS:
            words.append(f"{len(returns) - MAX_RETURNS} more")
        return ", ".join(words)

    def _answer(self, call: ModelCall, client: str, model: str) -> Drawn:
        phrase = model_phrase(call, self._letters)
        ended_ns = call.at_ns if call.ended_ns is None else call.ended_ns
        if call.outcome is Outcome.PENDING:
            return Aside(
                at_ns=ended_ns, at=model, text=f"{call.row} {phrase.word}", style=phrase.style, row=call.row, closes=model
            )
        took = "" if call.duration_ns is None else f" · {duration(call.duration_ns)}"
        detail = " · ".join(filter(None, (phrase.detail, first_token_words(call))))
        text = f"{call.row} {phrase.word}{took}{f': {detail}' if detail else ''}"
        start, end, kind = model, client, ArrowKind.RESPONSE
        if call.outcome is Outcome.CANCELLED:
            start, end, kind = client, model, ArrowKind.CANCELLATION
        elif call.outcome is Outcome.UNANSWERED:
            kind = ArrowKind.LOST
        answer, response = call.answer, call.transaction.response
        details = tuple(bounded(_turn(answer.turn))) if self._detail is Detail.FULL and answer is not None else ()
        return self._arrow(
            call, start, end, kind, text, at_ns=ended_ns, style=phrase.style, closes=model, details=details,
            injected=response is not None and response.injected,
        )  # fmt: skip

    def _arrow(
        self, call: ModelCall, start: str, end: str, kind: ArrowKind, text: str, *, at_ns: int | None = None, style: str = "",
        opens: str = "", closes: str = "", details: tuple[str, ...] = (), injected: bool = False, stops: bool = False,
    ) -> Arrow:  # fmt: skip
        return Arrow(
            at_ns=call.at_ns if at_ns is None else at_ns, start=start, end=end, kind=kind, text=text, style=style, row=call.row,
            opens=opens, closes=closes, details=details, injected=injected, stops=stops,
        )  # fmt: skip


def run_words(run: AgentRun) -> str:
    """Describe an agent run: what the user asked, and how the time was spent."""
    question = quoted_text(run.user_text, LETTERS) if run.user_text else "run"
    spent = [("model", run.model_ns), ("server", run.server_ns), ("client", run.client_ns)]
    shares = ", ".join(f"{who} {duration(took_ns)}" for who, took_ns in spent if took_ns)
    return f"{question} · {duration(run.took_ns)}: {shares}"


def _size(prompt: Prompt) -> str:
    return one_line(prompt.flaw) or counted(len(prompt.turns), "turn")


def _prompt_lines(prompt: Prompt, new: tuple[Turn, ...], *, is_first: bool) -> Iterator[str]:
    """Print the new turns of a prompt without those of the model, and in the first prompt the tools that it offers."""
    for turn in new:
        if turn.role != "assistant":
            yield from _turn(turn)
    if is_first and prompt.offers:
        yield safe_text("offered: " + ", ".join(offer.name for offer in prompt.offers))


def _turn(turn: Turn) -> Iterator[str]:
    text = turn.text or turn.refusal
    if text or not (turn.uses or turn.returns):
        yield from _lines(turn.role, text)
    for use in turn.uses:
        if not use.from_text:
            yield safe_text(f"{turn.role}: → {use.name} {use.arguments}")
    for returned in turn.returns:
        if not returned.from_text or not text:
            yield from _lines(turn.role, returned.text)


def _lines(role: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n")):
        yield safe_text(line if number else f"{role}: {line}")
