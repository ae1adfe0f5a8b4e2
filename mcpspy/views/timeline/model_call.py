"""One model call whole: what was offered and asked, what the model answered, and where each tool use went.

Turns that the call before had already are folded by role, and so is what the system says; what is new is shown. Refuses to show
the rest: `--json` has every turn.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from ...transcript.llm.call import ModelCall
from ...transcript.llm.model import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn
from ...transcript.llm.tool_names import bare_name
from ...transcript.llm.tool_trips import ToolTrip
from ...transcript.llm.tool_trips import tool_trips as tool_trips_of
from ...transcript.model import CaptureInfo, Exchange, Transcript
from ..text.cells import MIN_CHOP_CELLS, padded
from ..text.escape import one_line, safe_text
from ..text.line import Line, Piece, fitted, joined
from ..text.pretty import broken
from ..text.units import counted, duration, size
from .findings import row_finding_lines
from .model_words import first_token_words, model_phrase, usage_words
from .phrases import outcome_phrase
from .transaction import fact_lines, with_facts

_BETWEEN: Piece = (" · ", "dim")

MAX_LINES = 60
"""So many lines of a turn are shown on a screen; more are counted. A pipe gets all of them."""

MAX_OFFERS = 40
"""So many tool offers are listed on a screen."""

FOLDED_LETTERS = 300
"""So much of what the system says is shown in its line."""

SYSTEM = ("system", "developer")
_ROLE_CELLS = 11


def model_call_lines(
    transcript: Transcript, row: ModelCall, tool_trips: Iterable[ToolTrip], *, width: int | None = None
) -> Iterator[Line]:
    """Everything about a model call. `tool_trips` are those of the transcript; `width` in cells, None: nothing is cut."""
    capture = transcript.captures[row.capture]
    found = [one for one in tool_trips if row in (one.by, one.returned_in)]
    for line in _headings(row, capture, width):
        yield fitted(line, width)
    yield from row_finding_lines(transcript, row, width=width)
    prompt = row.prompt
    yield from _prompt(row, prompt, [one for one in found if one.returned_in is row], width)
    answer = row.answer
    if answer is not None:
        yield from _answer(transcript, row, answer, [one for one in found if one.by is row], width)
    yield []
    yield from (fitted(line, width) for line in fact_lines(row.transaction, width))


def _headings(row: ModelCall, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    phrase = model_phrase(row)
    outcome = (phrase.word, "good" if phrase.word == "ok" and phrase.style == "dim" else phrase.style)
    parts: list[Line] = [[(f"row {row.row}", "strong")], [(one_line(f"{row.method} {row.target}"), "strong")], [outcome]]
    if row.duration_ns is not None:
        parts.append([(duration(row.duration_ns), "")])
    yield joined(parts, _BETWEEN)
    answer = row.answer
    between: Line = [(f"{safe_text(capture.client_of(row))} → {safe_text(capture.server)}", "dim")]
    facts = [f"goes on with row {row.before}"] if row.before else []
    if answer is not None:
        facts += [
            usage_words(answer.usage),
            first_token_words(row),
            f"finish {one_line(answer.finish)}" if answer.finish else "",
        ]
        facts += [f"answered by {one_line(answer.model)}"] if answer.model not in ("", row.model) else []
        facts += [counted(answer.deltas, "delta")] if answer.deltas else []
    yield from with_facts(between, [fact for fact in facts if fact], width)
    if answer is not None and answer.error:
        yield [(one_line(answer.error), "bad")]
    if answer is not None:
        yield from ([(one_line(flaw), "warn")] for flaw in answer.flaws)


def bodies(row: ModelCall) -> list[tuple[int, bytes]]:
    """The bytes of the prompt and of the answer, each with when it began and a line end; of a transcript that keeps frames."""
    response = row.transaction.response
    found = [(row.at_ns, row.payload)]
    if response is not None and response.kept:
        found.append((response.at_ns, b"".join(frame.data for frame in response.kept)))
    return [(at_ns, raw if raw.endswith(b"\n") else raw + b"\n") for at_ns, raw in found]


# The prompt


def _prompt(row: ModelCall, prompt: Prompt, answered: list[ToolTrip], width: int | None) -> Iterator[Line]:
    yield []
    new = len(prompt.turns) - row.added
    heading = f"  {counted(len(prompt.turns), 'turn')}" + (f", {new} of them new" if row.added else "")
    yield fitted([("→ prompt", "strong"), (f"{heading} · {size(len(row.payload))}", "dim")], width)
    if prompt.flaw:
        yield fitted([("  ", ""), (one_line(prompt.flaw), "warn")], width)
    yield from _offers(prompt.offers, width)
    old = Counter(turn.role for turn in prompt.turns[: row.added])
    if old:
        words = ", ".join(f"{count:,} {one_line(role)}" for role, count in old.items())
        yield fitted([("  ", ""), (f"{counted(old.total(), 'turn')} as in row {row.before}: {words}", "dim")], width)
    left = list(answered)
    for turn in prompt.turns[row.added :]:
        if turn.role in SYSTEM:
            letters = f"{len(turn.text):,} letters: " if len(turn.text) > FOLDED_LETTERS else ""
            yield fitted([_role(turn.role), (letters, "dim"), (one_line(turn.text, FOLDED_LETTERS), "")], width)
        else:
            yield from _turn(turn, left, width)


def _offers(offers: tuple[ToolOffer, ...], width: int | None) -> Iterator[Line]:
    if not offers:
        return
    total = sum(one.bytes for one in offers)
    yield fitted([("  ", ""), (f"{counted(len(offers), 'tool')} offered", ""), (f"  {size(total)}", "dim")], width)
    shown = offers if width is None else offers[:MAX_OFFERS]
    for one in shown:
        about = one_line(one.description)
        hosted = "  run by the API itself" if one.is_hosted else ""
        yield fitted([("    ", ""), (_signature(one), "key"), (hosted, "dim"), (f"  {about}", "dim")], width)
    if len(shown) < len(offers):
        yield [("    ", ""), (f"… {counted(len(offers) - len(shown), 'more tool')}", "dim")]


def _signature(offer: ToolOffer) -> str:
    """`get_weather(city*: string)`, where the star says that it is required."""
    schema = offer.schema if isinstance(offer.schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    wanted = set(map(str, required)) if isinstance(required, list) else set()
    names = properties if isinstance(properties, dict) else {}
    parts = [f"{name}{'*' if name in wanted else ''}{_type(one)}" for name, one in names.items()]
    return one_line(f"{offer.name}({', '.join(parts)})")


def _type(schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return f": {kind}" if isinstance(kind, str) else ""


def _turn(turn: Turn, answered: list[ToolTrip], width: int | None) -> Iterator[Line]:
    """A turn that is new: its text, what it wants done, what it tells of that."""
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
            continue  # which the text has shown
        yield from _text(begin, f"→ {use.name} {use.arguments}", "", width, behind=f"  id {use.id}" if use.id else "")
        begin = [_role("")]
    for one in turn.returns:
        tool_trip = next((tool_trip for tool_trip in answered if tool_trip.returned == one), None)
        if tool_trip is not None:
            answered.remove(tool_trip)
        yield from _text(begin, one.text, "bad" if one.is_error else "", width, behind=f"  {_returned(one, tool_trip)}")
        begin = [_role("")]


def _returned(one: ToolReturn, tool_trip: ToolTrip | None) -> str:
    """What a tool return answers: `← get_weather of row 2, called in row 3`."""
    words = ["failed"] if one.is_error else []
    if tool_trip is None:
        return "  ".join([*words, f"for {one.id or one.name or 'nobody that is named'}"])
    by = f", joined by {tool_trip.returned_by}" if tool_trip.returned_by != "id" else ""
    called = f", called in row {tool_trip.call.row}" if tool_trip.call is not None else ""
    return "  ".join([*words, f"for {tool_trip.use.name} of row {tool_trip.by.row}{called}{by}"])


# The answer


def _answer(
    transcript: Transcript, row: ModelCall, answer: Answer, tool_trips: list[ToolTrip], width: int | None
) -> Iterator[Line]:
    yield []
    took = f"  {duration(row.duration_ns)}" if row.duration_ns is not None else ""
    whole = "" if answer.is_whole else " · its end did not come"
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
        tool_trip = next((one for one in tool_trips if one.use == use), None)
        if tool_trip is not None:
            tool_trips.remove(tool_trip)
        yield from (fitted([_role(""), *line], width) for line in _went(transcript, use, tool_trip))
    for other in answer.more:
        yield from _text([_role("or")], other.text or ", ".join(use.name for use in other.uses), "dim", width)


def _went(transcript: Transcript, use: ToolUse, tool_trip: ToolTrip | None) -> Iterator[Line]:
    """Where a tool use went: the call that it became, and what the model was told of it."""
    id = f" · id {one_line(use.id)}" if use.id else " · without an id"
    named: Piece = (f"{id}, in the text" if use.from_text else id, "dim")
    if tool_trip is None:
        yield [("run by the API itself" if use.is_hosted else "not followed", "dim"), named]
        return
    yield [*_called(transcript, tool_trip), named]
    if tool_trip.returned is not None and tool_trip.returned_in is not None:
        by = "" if tool_trip.returned_by == "id" else f", joined by {tool_trip.returned_by}"
        failed = " that it failed" if tool_trip.returned.is_error else ""
        yield [("← ", ""), (f"told in row {tool_trip.returned_in.row}{failed}", ""), (by, "dim")]
    elif tool_trip.next is not None:
        yield [("← ", ""), (f"not told in row {tool_trip.next.row}", "warn")]


def _called(transcript: Transcript, tool_trip: ToolTrip) -> Line:
    call = tool_trip.call
    if call is None:
        recorded = any(not one.is_model for one in transcript.captures)
        return [("no call was seen", "warn" if recorded and bare_name(tool_trip.use.name) else "dim")]
    return [("→ ", ""), *_exchange(transcript, call), (_joined(tool_trip), "dim")]


def _exchange(transcript: Transcript, call: Exchange) -> Line:
    phrase = outcome_phrase(call)
    server = safe_text(transcript.captures[call.capture].server)
    took = "" if call.duration_ns is None else f" in {duration(call.duration_ns)}"
    line: Line = [(f"row {call.row}", "strong"), (f" {one_line(call.target or '')} of {server}: ", "")]
    return [*line, (phrase.word, "good" if phrase.word == "ok" else phrase.style), (took, "")]


def _joined(tool_trip: ToolTrip) -> str:
    words = "" if tool_trip.joined_by == "name and arguments" else f", joined by {tool_trip.joined_by} alone"
    return words + (f", one of {tool_trip.candidates} that fit" if tool_trip.candidates > 1 else "")


def wanted_lines(transcript: Transcript, call: Exchange) -> Iterator[Line]:
    """Which tool use a call was made for, and where the model was told of it; nothing where that is not known."""
    for one in tool_trips_of(transcript):
        if one.call is call:
            told_in = f", told in row {one.returned_in.row}" if one.returned_in is not None else ""
            yield [
                (f"wanted by {one_line(one.by.target)} in row {one.by.row} as {one_line(one.use.name)}{told_in}", "dim"),
                (_joined(one), "dim"),
            ]


# Texts


def _role(name: str) -> Piece:
    return (f"  {padded(one_line(name), _ROLE_CELLS)} ", "key")


def _text(begin: Line, text: str, style: str, width: int | None, *, behind: str = "") -> Iterator[Line]:
    """A text that begins behind its role and goes on below itself; `behind` follows its last line where there is room."""
    blanks = _role("")[0]
    room = None if width is None else max(width - len(blanks), MIN_CHOP_CELLS)
    lines = [part for one in text.split("\n") for part in _broken(safe_text(one.rstrip("\r").replace("\t", "    ")), room)]
    shown = lines if width is None else lines[:MAX_LINES]
    for at, one in enumerate(shown):
        end: Line = [(safe_text(behind), "dim")] if behind and at == len(shown) - 1 == len(lines) - 1 else []
        line: Line = [*(begin if at == 0 else [(blanks, "")]), (one.rstrip(), style), *end]
        if end and width is not None and sum(len(piece) for piece, _ in line) > width:
            yield line[:-1]
            yield fitted([(blanks, ""), (end[0][0].strip(), "dim")], width)
        else:
            yield line
    if len(shown) < len(lines):
        yield fitted(
            [(blanks, ""), (f"… {counted(len(lines) - len(shown), 'more line')}", "dim"), (safe_text(behind), "dim")], width
        )


def _broken(text: str, room: int | None) -> list[str]:
    return [text] if room is None else broken(text, room) or [""]
