"""The page: one HTML file that loads nothing and contains the whole transcript.

Scripts and styles are allowed by their digests alone, so that captured text cannot run; it stands in blocks of JSON and in text.
The files of the page are arguments. Secrets are not masked here.
"""

import json
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from ...lazy_pattern import lazy_pattern
from ...transcript.findings.rule import Finding
from ...transcript.llm.tool_trips import ToolTrip, tool_trips
from ...transcript.model import ModelCall, Row, Transcript
from ..check.model import worst_first
from ..sequence.diagram import Arrow, Aside, Fragment, FragmentKind, OmittedMessages, Step
from ..sequence.layout import Drawing, diagram
from ..statistics import statistics_lines
from ..text.columns import Lanes
from ..text.escape import safe_text, xml_text
from ..text.line import plain
from ..text.units import counted
from ..timeline.findings import rule_title
from ..timeline.summary import capture_lines, last_of, summary
from ..timeline.timeline import timeline
from .filter_facts import FilterFacts, filter_keys
from .rows import PageRow, curl_text, page_rows, progress, prompt_of_call, row_details
from .text_runs import text_runs

MIN_LETTERS: Final = 2_000
"""A shorter prompt is stored whole."""

MAX_HELD: Final = 16
"""The most prompts whose text is kept in memory; others are built again."""

MAX_DRAWN: Final = 20_000
"""The most messages in the diagram; the list has all."""

MAX_PLAIN_ROWS: Final = 200
"""The most lines of the timeline on a page without scripts."""

FIRST_ROWS: Final = 1_000
"""The number of rows that the page shows before it has read the others."""

CHUNK: Final = 100
"""Rows that share a block of JSON, which is parsed when one of them is selected."""

NUMBERS_CELLS: Final = 140

_places: Final = lazy_pattern(r"\{(\w+)\}")

_BLOCK_SIGNS: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(
    transcript: Transcript, rows: Sequence[Row], files: Mapping[str, str], *, title: str, addresses: Sequence[str]
) -> Iterator[str]:
    """Build the page. `files` are its parts by name: `page.html`, `page.css`, and scripts in the order of their names.

    The transcript has to keep frames. `title` is the title of the browser's tab; `addresses` name the captures on a command line,
    quoted for a shell.
    """
    words = heading(transcript)
    yield from _head(files, title, connects=False)
    yield _body(files, **_plain_texts(transcript, words))
    yield from _blocks(transcript, rows, files, {"addresses": list(addresses), "end": words["end"], "lanes": words["lanes"]})
    yield _FOOT


def live_page(files: Mapping[str, str], *, recording: str, follows: bool) -> Iterator[str]:
    """Build a page that asks its server: for one `recording`, or for the newest at any time (`follows`)."""
    yield from _head(files, "mcpspy", connects=True)
    yield _body(files, note="Without scripts this page shows nothing. On a terminal: mcpspy show -f")
    nothing = {
        "rows": [], "progress": {}, "diagram": {"lanes": [], "steps": []}, "findings": [], "numbers": "", "end": 0, "lanes": "",
    }  # fmt: skip
    begin = {"live": True, "recording": recording, "follows": follows, "addresses": [], "chunk": CHUNK, "filter": filter_keys()}
    yield _block("data", {**begin, **nothing})
    yield _script_element(files)
    yield _FOOT


def script(files: Mapping[str, str]) -> str:
    """Join the scripts in the order of their names, in a scope of their own."""
    parts = [files[name] for name in sorted(files) if name.endswith(".js")]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


PARTS: Final[Mapping[str, Callable[[Transcript, Sequence[Row]], Any]]] = {
    "diagram": lambda transcript, rows: diagram_data(transcript, rows, MAX_DRAWN),
    "findings": lambda transcript, _: [_finding(finding) for finding in worst_first(transcript.findings)],
    "numbers": lambda transcript, _: "\n".join(plain(line) for line in statistics_lines(transcript, width=NUMBERS_CELLS)),
}
"""Data about all rows together, by name."""


def part(name: str, transcript: Transcript, rows: Sequence[Row]) -> Any:
    """Build one of `PARTS`, as the page reads it."""
    return PARTS[name](transcript, rows)


def heading(transcript: Transcript, *, live: bool = False, checked: bool = True) -> dict[str, Any]:
    """Build the summary, a line for each capture, the end of the axis, and the title of the column of lanes, if there is one.

    `live` and `checked` are as for `summary`.
    """
    return {
        "summary": " ".join(map(plain, summary(transcript, live=live, checked=checked))),
        "captures": [plain(line).strip() for line in capture_lines(transcript)],
        "end": last_of(transcript),
        "lanes": Lanes(transcript.captures).role,
        "checked": checked,
    }


def _head(files: Mapping[str, str], title: str, *, connects: bool) -> Iterator[str]:
    style = files["page.css"]
    allowed = {
        "default-src": "'none'",
        "style-src": _digest(style),
        "script-src": _digest(script(files)),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    } | ({"connect-src": "'self'"} if connects else {})
    policy = "; ".join(f"{name} {value}" for name, value in allowed.items())
    yield "<!doctype html>\n"
    yield '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{xml_text(title)}</title>\n<style>{style}</style></head>\n<body>\n"


def _script_element(files: Mapping[str, str]) -> str:
    return f"<script>{script(files)}</script>\n"


_FOOT: Final = "</body></html>\n"


def _digest(text: str) -> str:
    """Return the source expression of a content security policy that allows this text and no other."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _body(files: Mapping[str, str], **values: str) -> str:
    """Fill the templates of the elements."""
    return _places.sub(lambda match: values.get(match[1], ""), files["page.html"])


def _plain_texts(transcript: Transcript, words: dict[str, Any]) -> dict[str, str]:
    """Write the texts of the page for browsers without scripts. `words` are those of `heading`."""
    return {
        "summary": xml_text(words["summary"]),
        "captures": "\n".join(map(xml_text, words["captures"])),
        "note": f"Without scripts this page shows the findings and the first {MAX_PLAIN_ROWS} lines of the timeline.",
        "findings": "\n".join(map(_plain_finding, worst_first(transcript.findings))),
        "plain": "\n".join(xml_text(plain(line)) for line in islice(timeline(transcript), MAX_PLAIN_ROWS)),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "title": rule_title(finding.rule),
        "row": finding.row,
        "count": finding.count,
        "what": safe_text(finding.what),
        "blame": safe_text(finding.blame),
        "advice": safe_text(finding.advice),
    }


def _plain_finding(finding: Finding) -> str:
    text = " ".join(map(xml_text, (finding.what, finding.blame, "→", finding.advice)))
    return f"<p><strong>{finding.severity.value} · {rule_title(finding.rule)} · {finding.rule}</strong>: {text}</p>"


def _blocks(transcript: Transcript, rows: Sequence[Row], files: Mapping[str, str], heads: dict[str, Any]) -> Iterator[str]:
    """Build the blocks of JSON: one for the list, with `heads`, and one for the details of each chunk of rows.

    The script follows the first rows, so that they are on the screen while the browser reads the rest, which can be 100 MB.
    """
    lines = list(page_rows(transcript, rows))
    data = {
        **heads,
        "filter": filter_keys(),
        "isPart": len(rows) < len(transcript.rows),
        "chunk": CHUNK,
        "total": len(lines),
        "rows": [line for _, line in lines[:FIRST_ROWS]],
        "progress": progress(rows),
        **{name: part(name, transcript, rows) for name in PARTS if name != "diagram"},
    }
    yield _block("data", data)
    yield _script_element(files)
    yield from _further_blocks(transcript, rows, lines)


def _further_blocks(transcript: Transcript, rows: Sequence[Row], lines: Sequence[tuple[Row, PageRow]]) -> Iterator[str]:
    """Build the blocks that the script reads later."""
    joined, prompts = _tool_trips_by_row(transcript), Prompts(transcript)
    yield _block("rest", [line for _, line in lines[FIRST_ROWS:]])
    yield _block("diagram", part("diagram", transcript, rows))
    for begin in range(0, len(lines), CHUNK):
        made: dict[str, Any] = {}
        for at, (row, line) in enumerate(lines[begin : begin + CHUNK], begin):
            details = row_details(row, transcript, joined.get(line.row, ()))
            if details is not None:
                made[str(at)] = details
                if isinstance(row, ModelCall):
                    prompts.shorten(row, at, details)
        yield _block(f"rows-{begin // CHUNK}", made)
    yield _block("facts", FilterFacts(transcript).data(row for row, _ in lines))


def _tool_trips_by_row(transcript: Transcript) -> dict[int, list[ToolTrip]]:
    """Group tool round trips by model call: the call that started each, and the call that returned its result."""
    by_row: dict[int, list[ToolTrip]] = {}
    for trip in tool_trips(transcript):
        for number in dict.fromkeys(call.row for call in (trip.used_in, trip.returned_in) if call is not None):
            by_row.setdefault(number, []).append(trip)
    return by_row


def _block(id: str, value: Any) -> str:
    """Build a block of JSON that no HTML parser can end early. Lone surrogates are escaped, because no encoding takes them.

    msgspec, which refuses them, takes 0.03 s for 10,000 calls, `json` 0.18 s.
    """
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    for sign, spelled in _BLOCK_SIGNS.items():  # one by one: str.translate takes 57 ms a megabyte, this 7
        text = text.replace(sign, spelled)
    return f'<script type="application/json" id="{id}">{text}</script>\n'


def diagram_data(transcript: Transcript, rows: Sequence[Row], max_messages: int) -> dict[str, Any]:
    """Build the diagram: names of lanes, steps in order, and fragments laid flat. Read by `09-layout.js` and `10-diagram.js`."""
    layout = diagram(transcript, rows, Drawing(max_messages=max_messages, folds=False))
    lanes = {participant.id: at for at, participant in enumerate(layout.participants)}
    return {
        "lanes": [safe_text(participant.name) for participant in layout.participants],
        "steps": _steps(layout.steps, lanes, 0),
    }


def _steps(steps: Sequence[Step], lanes: dict[str, int], depth: int) -> list[dict[str, Any]]:
    """Build the steps, with lanes by number. A fragment's title is followed by its steps; `size` counts them."""
    made: list[dict[str, Any]] = []
    for step in steps:
        match step:
            case Arrow():
                made.append(_step(step, lanes) | {"kind": step.kind.value, "start": lanes[step.start], "end": lanes[step.end]})
            case Aside():
                made.append(_step(step, lanes) | {"start": lanes[step.at]})
            case OmittedMessages():
                made.append({"title": f"… {counted(step.count, 'more message')}", "depth": depth})
            case Fragment():
                inner = _steps(step.steps, lanes, depth + 1)
                title = f"loop {step.title}" if step.kind is FragmentKind.LOOP else step.title
                made += [{"fragment": step.kind.value, "title": title, "depth": depth, "size": len(inner)}, *inner]
    return made


def _step(step: Arrow | Aside, lanes: dict[str, int]) -> dict[str, Any]:
    activations = {"opens": step.opens if isinstance(step, Arrow) else "", "closes": step.closes}
    fields = {"at": step.at_ns, "text": step.text, "style": step.style, "row": step.row}
    return fields | {name: lanes[lane] for name, lane in activations.items() if lane in lanes}


class _Texts(NamedTuple):
    """A prompt, and the command that sends it."""

    prompt: str
    curl: str


class Prompts:
    """Prompts of a page, each as its difference from an earlier prompt, and the commands that send them likewise.

    The script `01-data.js` restores them; change the two together. Nothing is left out.
    """

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
        """Store the prompt of `call`, which has this place in the list, as a difference from an earlier call, if that is shorter."""
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
