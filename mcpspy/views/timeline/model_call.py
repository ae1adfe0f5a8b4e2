"""One model call, in full and in a few words. In full: the tools offered, the prompt, the answer, the call that each tool use became.

Turns that the call before had already are counted by role, system messages are cut to one line, and new turns are shown.
`--json` has every turn in full.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from ...transcript.llm.model_call import ModelCall
from ...transcript.llm.prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from ...transcript.llm.tool_names import bare_name, deferred_names, search_tool
from ...transcript.llm.tool_trips import ToolTrip
from ...transcript.llm.tool_trips import tool_trips as tool_trips_of
from ...transcript.model import CaptureInfo, Exchange, Transcript
from ...transcript.outcome import Outcome
from ..text.cells import MIN_CHOP_CELLS, padded
from ..text.escape import PHRASE_LETTERS, one_line, safe_text
from ..text.line import Line, Piece, fitted, joined, line_cells
from ..text.pretty import broken
from ..text.units import counted, duration, size
from .findings import row_finding_lines
from .phrases import OUTCOME_STYLES, Phrase, outcome_phrase, status_words
from .transaction import fact_lines, with_facts

_BETWEEN: Piece = (" · ", "dim")

MAX_LINES = 60
"""The most lines of a turn shown on a screen; more are counted. A pipe gets all of them."""

MAX_OFFERS = 40
"""The most tool offers listed on a screen."""

FOLDED_LETTERS = 300
"""The letters of a system message that its line shows."""

SYSTEM = ("system", "developer")
_ROLE_CELLS = 11

SAID_LETTERS = 60
"""The letters of a text that a row shows before the tokens; `show @:7` shows all of it."""

ENOUGH = frozenset({"", "stop", "end_turn", "tool_calls", "tool_use", "function_call", "completed", "stop_sequence"})
"""The finish reasons of answers that the model ended by itself."""


def model_call_lines(
    transcript: Transcript, row: ModelCall, tool_trips: Iterable[ToolTrip], *, width: int | None = None
) -> Iterator[Line]:
    """Yield everything about a model call. `tool_trips` are those of the transcript; `width` in cells, None cuts nothing."""
    capture = transcript.captures[row.capture]
    trips = [trip for trip in tool_trips if row in (trip.used_in, trip.returned_in)]
    for line in _headings(row, capture, width):
        yield fitted(line, width)
    yield from row_finding_lines(transcript, row, width=width)
    prompt = row.prompt
    yield from _prompt(row, prompt, [trip for trip in trips if trip.returned_in is row], width)
    answer = row.answer
    if answer is not None:
        yield from _answer(transcript, row, answer, [trip for trip in trips if trip.used_in is row], width)
    yield []
    yield from (fitted(line, width) for line in fact_lines(row.transaction, capture, width))


def _headings(row: ModelCall, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    phrase = model_phrase(row)
    outcome = (phrase.word, "good" if phrase.word == "ok" and phrase.style == "dim" else phrase.style)
    parts: list[Line] = [[(f"row {row.row}", "strong")], [(one_line(f"{row.method} {row.target}"), "strong")], [outcome]]
    if row.duration_ns is not None:
        parts.append([(duration(row.duration_ns), "")])
    yield joined(parts, _BETWEEN)
    answer = row.answer
    between: Line = [(f"{safe_text(capture.client_of(row))} → {safe_text(capture.server)}", "dim")]
    facts = [f"continues row {row.before}"] if row.before else []
    if answer is not None:
        facts += [
            _usage_words(answer.usage),
            first_token_words(row),
            f"finish reason {one_line(answer.finish)}" if answer.finish else "",
        ]
        facts += [f"answered by {one_line(answer.model)}"] if answer.model not in ("", row.model) else []
        facts += [counted(answer.deltas, "delta")] if answer.deltas else []
    yield from with_facts(between, [fact for fact in facts if fact], width)
    if answer is not None and answer.error:
        yield [(one_line(answer.error), "bad")]
    if answer is not None:
        yield from ([(one_line(flaw), "warn")] for flaw in answer.flaws)


def bodies(row: ModelCall) -> list[tuple[int, bytes]]:
    """Return the bytes of the prompt and of the answer, each with its time and a line end. The transcript has to keep frames."""
    response = row.transaction.response
    raws = [(row.at_ns, row.payload)]
    if response is not None and response.kept:
        raws.append((response.at_ns, b"".join(frame.data for frame in response.kept)))
    return [(at_ns, raw if raw.endswith(b"\n") else raw + b"\n") for at_ns, raw in raws]


# The prompt


def _prompt(row: ModelCall, prompt: Prompt, answered: list[ToolTrip], width: int | None) -> Iterator[Line]:
    yield []
    new = len(prompt.turns) - row.added
    heading = f"  {counted(len(prompt.turns), 'turn')}" + (f", {new} new" if row.added else "")
    yield fitted([("→ prompt", "strong"), (f"{heading} · {size(len(row.payload))}", "dim")], width)
    if prompt.flaw:
        yield fitted([("  ", ""), (one_line(prompt.flaw), "warn")], width)
    yield from _offers(prompt.offers, width)
    yield from _deferred(prompt, width)
    old = Counter(turn.role for turn in prompt.turns[: row.added])
    if old:
        words = ", ".join(f"{count:,} {one_line(role)}" for role, count in old.items())
        yield fitted([("  ", ""), (f"{counted(old.total(), 'turn')} as in row {row.before}: {words}", "dim")], width)
    left = list(answered)
    for turn in prompt.turns[row.added :]:
        if turn.role in SYSTEM:
            letters = f"{len(turn.text):,} characters: " if len(turn.text) > FOLDED_LETTERS else ""
            yield fitted([_role(turn.role), (letters, "dim"), (one_line(turn.text, FOLDED_LETTERS), "")], width)
        else:
            yield from _turn(turn, left, width)


def _offers(offers: tuple[ToolOffer, ...], width: int | None) -> Iterator[Line]:
    if not offers:
        return
    total = sum(offer.bytes for offer in offers)
    yield fitted([("  ", ""), (f"{counted(len(offers), 'tool')} offered", ""), (f"  {size(total)}", "dim")], width)
    shown = offers if width is None else offers[:MAX_OFFERS]
    for offer in shown:
        about = one_line(offer.description)
        hosted = "  run by the API itself" if offer.is_hosted else ""
        yield fitted([("    ", ""), (_signature(offer), "key"), (hosted, "dim"), (f"  {about}", "dim")], width)
    if len(shown) < len(offers):
        yield [("    ", ""), (f"… {counted(len(offers) - len(shown), 'more tool')}", "dim")]


def _deferred(prompt: Prompt, width: int | None) -> Iterator[Line]:
    """Print the names of deferred tools, and whether the model has searched for any."""
    names, search = deferred_names(prompt), search_tool(prompt)
    if not names:
        return
    searches = sum(use.name == search for turn in prompt.turns for use in turn.uses)
    so_far = f"searched {counted(searches, 'time')} so far" if searches else "not searched for yet"
    words = f"  {one_line(search)} finds them: {so_far}" if search else ""
    yield fitted([("  ", ""), (f"{counted(len(names), 'name')} of deferred tools", ""), (words, "dim")], width)
    yield fitted([("    ", ""), (one_line(", ".join(names)), "key")], width)


def _signature(offer: ToolOffer) -> str:
    """Return the signature of a tool: `get_weather(city*: string)`, where the star marks a required argument."""
    schema = offer.schema if isinstance(offer.schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set()
    names = properties if isinstance(properties, dict) else {}
    parts = [f"{name}{'*' if name in wanted else ''}{_type(argument)}" for name, argument in names.items()]
    return one_line(f"{offer.name}({', '.join(parts)})")


def _type(schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return f": {kind}" if isinstance(kind, str) else ""


def _turn(turn: Turn, answered: list[ToolTrip], width: int | None) -> Iterator[Line]:
    """Yield the lines of a new turn: its thinking, its text, its tool uses and its tool returns."""
    begin = [_role(turn.role)]
    if turn.thinking:
        yield from _text(begin, turn.thinking, "dim", width)
        begin = [_role("")]
    text = turn.text or turn.refusal
    if text or not (turn.uses or turn.returns or turn.thinking):
        yield from _text(begin, text, "", width)
        begin = [_role("")]
    for use in turn.uses:
        if use.from_text:
            continue  # the text shows it
        yield from _text(begin, f"→ {use.name} {use.arguments}", "", width, after=f"  id {use.id}" if use.id else "")
        begin = [_role("")]
    for returned in turn.returns:
        tool_trip = next((trip for trip in answered if trip.returned == returned), None)
        if tool_trip is not None:
            answered.remove(tool_trip)
        style = "bad" if returned.is_error else ""
        yield from _text(begin, returned.text, style, width, after=f"  {_origin(returned, tool_trip)}")
        begin = [_role("")]


def _origin(returned: ToolReturn, tool_trip: ToolTrip | None) -> str:
    """Return the tool use that a tool return answers: `for get_weather of row 2, called in row 3`."""
    words = ["failed"] if returned.is_error else []
    if tool_trip is None:
        return "  ".join([*words, f"for {returned.id or returned.name or 'an unknown tool use'}"])
    by = f", matched by {tool_trip.returned_by}" if tool_trip.returned_by != "id" else ""
    called = f", called in row {tool_trip.call.row}" if tool_trip.call is not None else ""
    return "  ".join([*words, f"for {tool_trip.use.name} of row {tool_trip.used_in.row}{called}{by}"])


# The answer


def _answer(
    transcript: Transcript, row: ModelCall, answer: Answer, tool_trips: list[ToolTrip], width: int | None
) -> Iterator[Line]:
    yield []
    took = f"  {duration(row.duration_ns)}" if row.duration_ns is not None else ""
    whole = "" if answer.is_whole else " · incomplete"
    yield fitted([("← answer", "strong"), (f"{took}{whole}", "dim")], width)
    turn = answer.turn
    if turn.thinking:
        yield from _text([_role("thinking")], turn.thinking, "dim", width)
    if turn.text:
        yield from _text([_role(turn.role)], turn.text, "", width)
    if turn.refusal:
        yield from _text([_role("refusal")], turn.refusal, "warn", width)
    for use in turn.uses:
        yield from _text([_role("uses")], f"{use.name} {use.arguments}", "strong", width)
        tool_trip = next((trip for trip in tool_trips if trip.use == use), None)
        if tool_trip is not None:
            tool_trips.remove(tool_trip)
        yield from (fitted([_role(""), *line], width) for line in _use_lines(transcript, use, tool_trip))
    for other in answer.more:
        yield from _text([_role("or")], other.text or ", ".join(use.name for use in other.uses), "dim", width)


def _use_lines(transcript: Transcript, use: ToolUse, tool_trip: ToolTrip | None) -> Iterator[Line]:
    """Yield the call that a tool use became, and the row that returned its result to the model."""
    id = f" · id {one_line(use.id)}" if use.id else " · without an id"
    named: Piece = (f"{id}, in the text" if use.from_text else id, "dim")
    if tool_trip is None:
        yield [("run by the API itself" if use.is_hosted else "not traced", "dim"), named]
        return
    yield [*_call_of_use(transcript, tool_trip), named]
    if tool_trip.returned is not None and tool_trip.returned_in is not None:
        by = "" if tool_trip.returned_by == "id" else f", matched by {tool_trip.returned_by}"
        failed = " as a failure" if tool_trip.returned.is_error else ""
        yield [("← ", ""), (f"returned in row {tool_trip.returned_in.row}{failed}", ""), (by, "dim")]
    elif tool_trip.next is not None:
        yield [("← ", ""), (f"not returned in row {tool_trip.next.row}", "warn")]


def _call_of_use(transcript: Transcript, tool_trip: ToolTrip) -> Line:
    call = tool_trip.call
    if call is None:
        recorded = any(not capture.is_model for capture in transcript.captures)
        return [("no call recorded", "warn" if recorded and bare_name(tool_trip.use.name) else "dim")]
    return [("→ ", ""), *_exchange(transcript, call), (_match_words(tool_trip), "dim")]


def _exchange(transcript: Transcript, call: Exchange) -> Line:
    phrase = outcome_phrase(call)
    server = safe_text(transcript.captures[call.capture].server)
    took = "" if call.duration_ns is None else f" in {duration(call.duration_ns)}"
    line: Line = [(f"row {call.row}", "strong"), (f" {one_line(call.target or '')} of {server}: ", "")]
    return [*line, (phrase.word, "good" if phrase.word == "ok" else phrase.style), (took, "")]


def _match_words(tool_trip: ToolTrip) -> str:
    words = "" if tool_trip.joined_by == "name and arguments" else f", matched by {tool_trip.joined_by} only"
    return words + (f", one of {tool_trip.candidates} candidates" if tool_trip.candidates > 1 else "")


def tool_use_lines(transcript: Transcript, call: Exchange) -> Iterator[Line]:
    """Yield the tool use that requested a call, and the row that returned its result; nothing where that is not known."""
    for trip in tool_trips_of(transcript):
        if trip.call is call:
            returned = f", returned in row {trip.returned_in.row}" if trip.returned_in is not None else ""
            yield [
                (
                    f"requested by {one_line(trip.used_in.target)} in row {trip.used_in.row} as {one_line(trip.use.name)}{returned}",
                    "dim",
                ),
                (_match_words(trip), "dim"),
            ]


# Texts


def _role(name: str) -> Piece:
    return (f"  {padded(one_line(name), _ROLE_CELLS)} ", "key")


def _text(begin: Line, text: str, style: str, width: int | None, *, after: str = "") -> Iterator[Line]:
    """Yield a text after its role, continued on indented lines. `after` follows the last line, or has one of its own."""
    blanks = _role("")[0]
    room = None if width is None else max(width - len(blanks), MIN_CHOP_CELLS)
    whole_lines = (line.rstrip("\r").replace("\t", "    ") for line in text.split("\n"))
    lines = [part for line in whole_lines for part in _broken(safe_text(line), room)]
    shown = lines if width is None else lines[:MAX_LINES]
    for at, part in enumerate(shown):
        end: Line = [(safe_text(after), "dim")] if after and at == len(shown) - 1 == len(lines) - 1 else []
        line: Line = [*(begin if at == 0 else [(blanks, "")]), (part.rstrip(), style), *end]
        if end and width is not None and line_cells(line) > width:
            yield line[:-1]
            yield fitted([(blanks, ""), (end[0][0].strip(), "dim")], width)
        else:
            yield line
    if len(shown) < len(lines):
        yield fitted(
            [(blanks, ""), (f"… {counted(len(lines) - len(shown), 'more line')}", "dim"), (safe_text(after), "dim")], width
        )


def _broken(text: str, room: int | None) -> list[str]:
    return [text] if room is None else broken(text, room) or [""]


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
    parts += [answer_words(answer, letters), _usage_words(answer.usage)]
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


def _usage_words(usage: Usage) -> str:
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
