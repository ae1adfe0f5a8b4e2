"""The page: one file of HTML that loads nothing, with all that a transcript holds, and what shows it.

Scripts and styles are allowed by their digests alone, so nothing that was captured can run; it stands in blocks of JSON, and in text.
The files that make the page are given: this room reads none. Refuses to mask secrets.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...transcript.model import Exchange, Row, Transcript
from ..checked import worst_first
from ..escape import xml_text
from ..line import plain
from ..numbers import numbers_lines
from ..timeline import timeline
from ..units import counted
from ..verdict import source_lines, verdict
from .rows import CHUNK, carried, drawn, listed, progress

if TYPE_CHECKING:
    from ...transcript.finding import Finding

MAX_DRAWN: Final = 20_000
"""So many messages are in the diagram; the list has all."""

MAX_PLAIN_ROWS: Final = 200
"""So many lines of the timeline are there without scripts."""

NUMBERS_CELLS: Final = 140

_BLOCK_SIGNS: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def page(transcript: Transcript, rows: Sequence[Row], files: Mapping[str, str], *, title: str, address: str) -> Iterator[str]:
    """The text of the page. `files` are those of the page, by name: `page.html`, `page.css`, scripts in the order of their names.

    The transcript has to keep frames. `title` is what the browser's tab says, `address` how the user calls what is shown.
    """
    style = files["page.css"]
    script = _script(files)
    yield "<!doctype html>\n"
    yield '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\n'
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; base-uri 'none'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{xml_text(title)}</title>\n<style>{style}</style></head>\n<body>\n"
    yield _body(transcript, rows, files["page.html"])
    yield from _blocks(transcript, rows, address)
    yield f"<script>{script}</script>\n</body></html>\n"


def _script(files: Mapping[str, str]) -> str:
    parts = [files[name] for name in sorted(files) if name.endswith(".js")]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def _digest(text: str) -> str:
    """A source expression of a content security policy that allows this text and no other."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _body(transcript: Transcript, rows: Sequence[Row], template: str) -> str:
    findings = worst_first(transcript.findings)
    whole = islice(timeline(transcript), MAX_PLAIN_ROWS)
    values = {
        "verdict": xml_text(" ".join(map(plain, verdict(transcript)))),
        "sources": "<br>".join(xml_text(plain(line).strip()) for line in source_lines(transcript)),
        "finding_count": f" ({len(findings)})" if findings else "",
        "findings": "\n".join(map(_finding, findings)) or "<p>Nothing was found.</p>",
        "numbers": "\n".join(xml_text(plain(line)) for line in numbers_lines(transcript, width=NUMBERS_CELLS)),
        "diagram_note": _note(rows),
        "plain": "\n".join(xml_text(plain(line)) for line in whole),
        "plain_count": str(MAX_PLAIN_ROWS),
    }
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template


def _note(rows: Sequence[Row]) -> str:
    calls = sum(isinstance(row, Exchange) for row in rows)
    return f"the first {counted(MAX_DRAWN, 'message')}" if 2 * calls > MAX_DRAWN else ""


def _finding(one: Finding) -> str:
    where = f' · <a href="#row={one.row}" data-row="{one.row}">row {one.row}</a>' if one.row is not None else ""
    times = f" ×{one.count:,}" if one.count > 1 else ""
    return (
        f'<article class="finding {one.severity.value}"><h3>{one.severity.value} · {xml_text(one.rule)}{times}{where}</h3>'
        f"<p>{xml_text(one.what)}</p><p>{xml_text(one.blame)}</p><p>→ {xml_text(one.advice)}</p></article>"
    )


def _blocks(transcript: Transcript, rows: Sequence[Row], address: str) -> Iterator[str]:
    """The data: what is listed in one block, what rows carry in blocks of their own."""
    found = list(listed(transcript, rows))
    data = {
        "address": address,
        "chunk": CHUNK,
        "rows": [line for _, line in found],
        "progress": progress(rows),
        "diagram": drawn(transcript, rows, MAX_DRAWN),
    }
    yield _block("data", data)
    for begin in range(0, len(found), CHUNK):
        made = {
            str(at): what
            for at, (row, _) in enumerate(found[begin : begin + CHUNK], begin)
            if (what := carried(row, transcript.sources[row.capture])) is not None
        }
        yield _block(f"rows-{begin // CHUNK}", made)


def _block(id: str, value: Any) -> str:
    """A block of JSON that no parser of HTML takes for anything else. Lone surrogates are spelled, for no encoding takes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()
    return f'<script type="application/json" id="{id}">{text.translate(_BLOCK_SIGNS)}</script>\n'
