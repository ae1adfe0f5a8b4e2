"""The page: one HTML file that loads nothing and contains the whole transcript.

Scripts and styles are allowed by their digests alone, so that captured text cannot run; it stands in blocks of JSON and in text.
The files of the page are arguments. Secrets are not masked here.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...transcript.llm.model_call import ModelCall
from ...transcript.llm.tool_trips import tool_trips
from ..check.model import worst_first
from ..statistics import statistics_lines
from ..text.escape import safe_text, xml_text
from ..text.line import plain
from ..timeline.summary import capture_lines, summary
from ..timeline.timeline import timeline
from .diagram_data import diagram_data
from .prompts import Prompts
from .row_details import row_details
from .rows import page_rows, progress

if TYPE_CHECKING:
    from ...transcript.findings.rule import Finding
    from ...transcript.llm.tool_trips import ToolTrip
    from ...transcript.model import Row, Transcript

MAX_DRAWN: Final = 20_000
"""The most messages in the diagram; the list has all."""

MAX_PLAIN_ROWS: Final = 200
"""The most lines of the timeline on a page without scripts."""

CHUNK: Final = 100
"""How many rows share a block of JSON that is parsed when one of them is selected."""

NUMBERS_CELLS: Final = 140

_places: Final = re.compile(r"\{(\w+)\}").sub

_BLOCK_SIGNS: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(
    transcript: Transcript, rows: Sequence[Row], files: Mapping[str, str], *, title: str, addresses: Sequence[str]
) -> Iterator[str]:
    """Build the page. `files` are its parts by name: `page.html`, `page.css`, and scripts in the order of their names.

    The transcript has to keep frames. `title` is the title of the browser's tab; `addresses` name the captures on a command line,
    quoted for a shell.
    """
    yield from _head(files, title, connects=False)
    yield _body(files, **_plain_texts(transcript))
    yield from _blocks(transcript, rows, addresses)
    yield from _foot(files)


def live_page(files: Mapping[str, str], *, recording: str, follows: bool) -> Iterator[str]:
    """Build a page that asks its server: for one `recording`, or for the newest at any time (`follows`)."""
    yield from _head(files, "mcpspy", connects=True)
    yield _body(files, note="Without scripts this page shows nothing. On a terminal: mcpspy show -f")
    nothing = {"rows": [], "progress": {}, "diagram": {"lanes": [], "steps": []}, "findings": [], "numbers": ""}
    yield _block("data", {"live": True, "recording": recording, "follows": follows, "addresses": [], "chunk": CHUNK, **nothing})
    yield from _foot(files)


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


def heading(transcript: Transcript, *, live: bool = False) -> dict[str, Any]:
    """Build the summary, and a line for each capture."""
    return {
        "summary": " ".join(map(plain, summary(transcript, live=live))),
        "captures": [plain(line).strip() for line in capture_lines(transcript)],
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
    """Return the source expression of a content security policy that allows this text and no other."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _body(files: Mapping[str, str], **values: str) -> str:
    """Fill the templates of the elements."""
    return _places(lambda found: values.get(found[1], ""), files["page.html"])


def _plain_texts(transcript: Transcript) -> dict[str, str]:
    """Write the texts of the page for browsers without scripts."""
    texts = heading(transcript)
    return {
        "summary": xml_text(texts["summary"]),
        "captures": "\n".join(map(xml_text, texts["captures"])),
        "note": f"Without scripts this page shows the findings and the first {MAX_PLAIN_ROWS} lines of the timeline.",
        "findings": "\n".join(map(_plain_finding, worst_first(transcript.findings))),
        "plain": "\n".join(xml_text(plain(line)) for line in islice(timeline(transcript), MAX_PLAIN_ROWS)),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "row": finding.row,
        "count": finding.count,
        "what": safe_text(finding.what),
        "blame": safe_text(finding.blame),
        "advice": safe_text(finding.advice),
    }


def _plain_finding(finding: Finding) -> str:
    text = " ".join(map(xml_text, (finding.what, finding.blame, "→", finding.advice)))
    return f"<p><strong>{finding.severity.value} {finding.rule}</strong>: {text}</p>"


def _blocks(transcript: Transcript, rows: Sequence[Row], addresses: Sequence[str]) -> Iterator[str]:
    """Build the blocks of JSON: one for the list, and one for the details of each chunk of rows."""
    lines = list(page_rows(transcript, rows))
    joined, prompts = _tool_trips_by_row(transcript), Prompts(transcript)
    data = {
        "addresses": list(addresses),
        "isPart": len(rows) < len(transcript.rows),
        "chunk": CHUNK,
        "rows": [line for _, line in lines],
        "progress": progress(rows),
        **{name: part(name, transcript, rows) for name in PARTS},
    }
    yield _block("data", data)
    for begin in range(0, len(lines), CHUNK):
        made: dict[str, Any] = {}
        for at, (row, line) in enumerate(lines[begin : begin + CHUNK], begin):
            details = row_details(row, transcript, joined.get(line.row, ()))
            if details is not None:
                made[str(at)] = details
                if isinstance(row, ModelCall):
                    prompts.shorten(row, at, details)
        yield _block(f"rows-{begin // CHUNK}", made)


def _tool_trips_by_row(transcript: Transcript) -> dict[int, list[ToolTrip]]:
    """Group tool round trips by model call: the call that started each, and the call that returned its result."""
    by_row: dict[int, list[ToolTrip]] = {}
    for trip in tool_trips(transcript):
        for number in dict.fromkeys(call.row for call in (trip.used_in, trip.returned_in) if call is not None):
            by_row.setdefault(number, []).append(trip)
    return by_row


def _block(id: str, value: Any) -> str:
    """Build a block of JSON that no HTML parser can end early. Lone surrogates are escaped, because no encoding takes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    for sign, spelled in _BLOCK_SIGNS.items():  # one by one: str.translate takes 57 ms a megabyte, this 7
        text = text.replace(sign, spelled)
    return f'<script type="application/json" id="{id}">{text}</script>\n'
