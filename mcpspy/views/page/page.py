"""The page: one file of HTML that loads nothing, with all that a transcript holds, and what shows it.

Scripts and styles are allowed by their digests alone, so nothing that was captured can run; it stands in blocks of JSON, and in text.
The files that make the page are given: this room reads none. Refuses to mask secrets.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...transcript.llm.call import ModelCall
from ...transcript.llm.tool_trips import tool_trips
from ..check.model import worst_first
from ..statistics import statistics_lines
from ..text.escape import safe_text, xml_text
from ..text.line import plain
from ..timeline.summary import capture_lines, summary
from ..timeline.timeline import timeline
from .carried import carried
from .drawn import drawn
from .listed import listed, progress
from .prompts import Prompts

if TYPE_CHECKING:
    from ...transcript.findings.rule import Finding
    from ...transcript.llm.tool_trips import ToolTrip
    from ...transcript.model import Row, Transcript

MAX_DRAWN: Final = 20_000
"""So many messages are in the diagram; the list has all."""

MAX_PLAIN_ROWS: Final = 200
"""So many lines of the timeline are there without scripts."""

CHUNK: Final = 100
"""So many rows share a block of JSON that is read when one of them is looked at."""

NUMBERS_CELLS: Final = 140

_places: Final = re.compile(r"\{(\w+)\}").sub

_BLOCK_SIGNS: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(
    transcript: Transcript, rows: Sequence[Row], files: Mapping[str, str], *, title: str, addresses: Sequence[str]
) -> Iterator[str]:
    """The text of the page. `files` are those of the page, by name: `page.html`, `page.css`, scripts in the order of their names.

    The transcript has to keep frames. `title` is what the browser's tab says, `addresses` are what the captures are called on a
    command line, quoted for a shell.
    """
    yield from _head(files, title, connects=False)
    yield _body(files, **_told(transcript))
    yield from _blocks(transcript, rows, addresses)
    yield from _foot(files)


def live_page(files: Mapping[str, str], *, recording: str, follows: bool) -> Iterator[str]:
    """The text of a page that asks the server it came from: for a `recording`, or the newest one whichever that is (`follows`)."""
    yield from _head(files, "mcpspy", connects=True)
    yield _body(files, note="Without scripts this page shows nothing. On a terminal: mcpspy show -f")
    nothing = {"rows": [], "progress": {}, "diagram": {"lanes": [], "steps": []}, "findings": [], "numbers": ""}
    yield _block("data", {"live": True, "recording": recording, "follows": follows, "addresses": [], "chunk": CHUNK, **nothing})
    yield from _foot(files)


def script(files: Mapping[str, str]) -> str:
    """The one script of the page: its parts in the order of their names, in a room of their own."""
    parts = [files[name] for name in sorted(files) if name.endswith(".js")]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


PARTS: Final[Mapping[str, Callable[[Transcript, Sequence[Row]], Any]]] = {
    "diagram": lambda transcript, rows: drawn(transcript, rows, MAX_DRAWN),
    "findings": lambda transcript, _: [_finding(one) for one in worst_first(transcript.findings)],
    "numbers": lambda transcript, _: "\n".join(plain(line) for line in statistics_lines(transcript, width=NUMBERS_CELLS)),
}
"""What the page shows of all rows together."""


def part(name: str, transcript: Transcript, rows: Sequence[Row]) -> Any:
    """One of `PARTS`, as the page reads it."""
    return PARTS[name](transcript, rows)


def heading(transcript: Transcript, *, live: bool = False) -> dict[str, Any]:
    """The summary, and a line for each capture."""
    return {
        "summary": " ".join(map(plain, summary(transcript, live=live))),
        "sources": [plain(line).strip() for line in capture_lines(transcript)],
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


def _foot(files: Mapping[str, str]) -> Iterator[str]:
    yield f"<script>{script(files)}</script>\n</body></html>\n"


def _digest(text: str) -> str:
    """A source expression of a content security policy that allows this text and no other."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _body(files: Mapping[str, str], **values: str) -> str:
    """The elements, with a text at each place that wants one."""
    return _places(lambda found: values.get(found[1], ""), files["page.html"])


def _told(transcript: Transcript) -> dict[str, str]:
    """What stands in the page itself, for who has no scripts."""
    told = heading(transcript)
    return {
        "summary": xml_text(told["summary"]),
        "sources": "\n".join(map(xml_text, told["sources"])),
        "note": f"Without scripts this page shows the findings and the first {MAX_PLAIN_ROWS} lines of the timeline.",
        "findings": "\n".join(map(_plain_finding, worst_first(transcript.findings))),
        "plain": "\n".join(xml_text(plain(line)) for line in islice(timeline(transcript), MAX_PLAIN_ROWS)),
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "severity": one.severity.value, "rule": one.rule, "row": one.row, "count": one.count, "what": safe_text(one.what),
        "blame": safe_text(one.blame), "advice": safe_text(one.advice),
    }  # fmt: skip


def _plain_finding(one: Finding) -> str:
    said = " ".join(map(xml_text, (one.what, one.blame, "→", one.advice)))
    return f"<p><strong>{one.severity.value} {one.rule}</strong>: {said}</p>"


def _blocks(transcript: Transcript, rows: Sequence[Row], addresses: Sequence[str]) -> Iterator[str]:
    """The data: what is listed in one block, what rows carry in blocks of their own."""
    found = list(listed(transcript, rows))
    joined, prompts = _tool_trips_by_row(transcript), Prompts(transcript)
    data = {
        "addresses": list(addresses),
        "isPart": len(rows) < len(transcript.rows),
        "chunk": CHUNK,
        "rows": [line for _, line in found],
        "progress": progress(rows),
        **{name: part(name, transcript, rows) for name in PARTS},
    }
    yield _block("data", data)
    for begin in range(0, len(found), CHUNK):
        made: dict[str, Any] = {}
        for at, (row, line) in enumerate(found[begin : begin + CHUNK], begin):
            what = carried(row, transcript, joined.get(line.row, ()))
            if what is not None:
                made[str(at)] = what
                if isinstance(row, ModelCall):
                    prompts.shorten(row, at, what)
        yield _block(f"rows-{begin // CHUNK}", made)


def _tool_trips_by_row(transcript: Transcript) -> dict[int, list[ToolTrip]]:
    """Those of each model call: what it made, and what returned in it."""
    found: dict[int, list[ToolTrip]] = {}
    for one in tool_trips(transcript):
        for number in dict.fromkeys(call.row for call in (one.by, one.returned_in) if call is not None):
            found.setdefault(number, []).append(one)
    return found


def _block(id: str, value: Any) -> str:
    """A block of JSON that no parser of HTML takes for anything else. Lone surrogates are spelled, for no encoding takes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    for sign, spelled in _BLOCK_SIGNS.items():  # one by one: str.translate takes 57 ms a megabyte, this 7
        text = text.replace(sign, spelled)
    return f'<script type="application/json" id="{id}">{text}</script>\n'
