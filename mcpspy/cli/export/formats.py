"""The table of formats of `mcpspy export`: each one's help, view and options.

A format of text is one row here, and a view that takes a transcript and rows, and returns lines. A view is imported when it is used.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import click

from ... import __version__
from ...errors import AddressError
from ...transcript.http.transaction import Transaction
from ...transcript.model import Transcript
from ...views.sequence.diagram import Diagram, messages
from ...views.text.escape import safe_text
from ...views.text.line import fitted, plain
from ...views.text.units import counted
from ...views.timeline.details import Detail
from ..screen import Screen, say
from .selection import ExportRequest, select_rows, shell_names, transactions_of, write

LADDER_CELLS = 100
"""The width of a ladder in a file or on a pipe, unless COLUMNS has another."""

DIAGRAM_OPTIONS = (
    click.Option(["--title"], metavar="TEXT", default="", help="A title above the diagram."),
    click.Option(
        ["--lane", "lanes"], metavar="NAME=TEXT", multiple=True, help="Rename a lane, as in --lane weather='the server'."
    ),
    click.Option(
        ["--detail"],
        type=click.Choice([detail.value for detail in Detail]),
        default=Detail.NAMES.value,
        help="What to show of each message: its name (the default), its params on one line, or its payload too.",
    ),
    click.Option(
        ["--max-messages"],
        metavar="N",
        type=click.IntRange(min=1),
        help="Draw at most N messages, and say how many are left out.",
    ),
    click.Option(
        ["--fold/--unfold", "folds"],
        default=None,
        help="Draw runs of like calls as loops, or each call; loops are the default above 60 messages.",
    ),
    click.Option(["--show-proxy"], is_flag=True, help="Draw mcpspy as a lane between client and server."),
    click.Option(["--http"], is_flag=True, help="Draw long HTTP streams as lanes, and the 202 answers to POSTs."),
    click.Option(
        ["--flat"],
        is_flag=True,
        help="For a design document: no phases and rounds, no row numbers, times, process ids, ports and folders.",
    ),
)

View: TypeAlias = Callable[..., Iterable[Any]]
"""A view; it returns texts, the one of ladders styled lines."""


def lines_of_rows(view: View, request: ExportRequest) -> Iterable[str]:
    """Call a view with a transcript and rows."""
    selection = select_rows(request)
    return view(selection.transcript, selection.rows)


def lines_of_diagram(view: View, request: ExportRequest) -> Iterable[str]:
    """Call a view with a diagram."""
    return view(diagram_of(request))


def _mermaid(view: View, request: ExportRequest) -> Iterable[str]:
    """Call the view of Mermaid with the messages that Mermaid draws; with all that were asked for, and a warning."""
    from ...views.sequence.mermaid import MAX_TEXT_LETTERS, fitting, letters

    layout = diagram_of(request)
    limit = f"because Mermaid draws at most {MAX_TEXT_LETTERS:,} characters unless its maxTextSize is raised"
    if request.options["max_messages"] is not None:
        if letters(layout) > MAX_TEXT_LETTERS:
            say(f"mcpspy: this diagram is too long, {limit}. Use a smaller --max-messages, or select fewer rows, as in @:1..40")
        return view(layout)
    part = fitting(layout)
    if part is not layout:
        count = messages(layout.steps) - messages(part.steps)
        say(f"mcpspy: {counted(count, 'message')} left out, {limit}. Select fewer rows, as in @:1..40, or use --max-messages")
    return view(part)


def _plantuml(view: View, request: ExportRequest) -> Iterable[str]:
    """Call the view of PlantUML, and say how to draw what is higher than its limit."""
    from ...views.sequence.plantuml import size_advice

    layout = diagram_of(request)
    if advice := size_advice(layout):
        say(f"mcpspy: {advice}")
    return view(layout)


def _ladder(view: View, request: ExportRequest) -> Iterable[str]:
    """Call the view of ladders with the width of the screen; in colour on a terminal."""
    screen = Screen()
    width = (screen.width if request.output is None else None) or LADDER_CELLS
    text = screen.text if request.output is None else plain
    return (text(fitted(line, width)) for line in view(diagram_of(request), width=width))


def _page(view: View, request: ExportRequest) -> Iterable[str]:
    selection = select_rows(request, keeps_frames=True)
    title = f"mcpspy {' '.join(request.what) or '@'}"
    return view(selection.transcript, selection.rows, page_files(), title=title, addresses=shell_names(selection.paths))


def diagram_of(request: ExportRequest) -> Diagram:
    """Lay out the diagram that was asked for. Raises: click.UsageError; AddressError, CaptureError, FilterError; OSError."""
    return _layout(request, **request.options)


def _layout(
    request: ExportRequest, *, lanes: tuple[str, ...], title: str, detail: str, max_messages: int | None, show_proxy: bool,
    http: bool, flat: bool, folds: bool | None,
) -> Diagram:  # fmt: skip
    from ...views.sequence.layout import Drawing, diagram

    names = dict(map(_name, lanes))
    transcript, rows, _ = select_rows(request)
    _refuse_unknown(names, transcript, http=http)
    drawing = Drawing(
        title=title, names=names, detail=Detail(detail), max_messages=max_messages, with_proxy=show_proxy, with_http=http,
        with_fragments=not flat, folds=folds, with_particulars=not flat,
    )  # fmt: skip
    layout = diagram(transcript, rows, drawing)
    folded = layout.folded
    if folded and folds is None:
        say(f"mcpspy: {counted(folded, 'message')} folded into loops; --unfold draws each")
    return layout


def _name(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not text:
        raise click.UsageError(f"--lane takes NAME=TEXT, as in --lane weather='the server'; not {safe_text(word)}")
    return name, text


def _refuse_unknown(names: dict[str, str], transcript: Transcript, *, http: bool) -> None:
    """Refuse a name for a lane that the diagram does not have. Raises: click.UsageError."""
    known = [lane.name for lane in transcript.lanes] + ["mcpspy"]
    known += ["user"] if any(capture.is_model for capture in transcript.captures) else []
    for name in names:
        if name not in known and not (http and name.startswith("GET ")):
            lanes = ", ".join(map(safe_text, known))
            raise click.UsageError(f"there is no lane {safe_text(name)}; the lanes are {lanes}")


def page_files() -> dict[str, str]:
    """Read the scripts, styles and the frame of the page, by their names."""
    folder = files("mcpspy") / "page"
    return {
        file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith((".js", ".css", ".html"))
    }


def _report(view: View, request: ExportRequest) -> Iterable[str]:
    """Call the view of reports with captures in which secrets are masked."""
    from .masked import select_masked_rows

    selection, is_part = select_masked_rows(request)
    return view(selection.transcript, selection.rows, version=__version__, is_part=is_part)


def _har(view: View, request: ExportRequest) -> Iterable[str]:
    selection = select_rows(request, keeps_frames=True)
    transactions = transactions_of(selection)
    if not transactions:
        reason = "it has no HTTP: it was recorded on stdio, or no row matches. mcpspy export jsonl writes messages"
        raise AddressError(" ".join(request.what), reason)
    return view(selection.transcript, transactions, version=__version__)


def _curl(view: View, request: ExportRequest) -> Iterable[str]:
    selection = select_rows(request, keeps_frames=True)
    selected = {(row.capture, row.number) for row in selection.rows if isinstance(row, Transaction)}
    transactions = [
        transaction
        for transaction in transactions_of(selection)
        if transaction.request is not None
        # a GET is sent for itself, not for the messages that its stream carried
        and (transaction.method != "GET" or (transaction.capture, transaction.number) in selected)
    ]
    if not transactions:
        reason = "it has no HTTP; to repeat what was recorded on stdio: mcpspy replay WHAT -- COMMAND"
        raise AddressError(" ".join(request.what), reason)
    captures = selection.transcript.captures
    return (line for transaction in transactions for line in view(transaction, captures[transaction.capture]))


def _test(view: View, request: ExportRequest) -> Iterable[str]:
    from .pytest import lines_of_test

    return lines_of_test(view, request)


class Format(NamedTuple):
    """A format: its line in `mcpspy export --help`, its own help, its view, the function that calls the view, its own options."""

    summary: str
    help: str
    view: str
    """A function of a module of views/, as `module:function`."""
    call: Callable[[View, ExportRequest], Iterable[str]] = lines_of_rows
    options: tuple[click.Option, ...] = ()
    has_line_ends: bool = False
    """True if the texts of the view have their line ends."""

    def write(self, request: ExportRequest) -> None:
        """Write the format to where the request says. Raises: McpspyError, click.UsageError; OSError."""
        module, _, function = self.view.partition(":")
        view: View = getattr(import_module(f"mcpspy.views.{module}"), function)
        texts = self.call(view, request)
        write(texts if self.has_line_ends else (f"{text}\n" for text in texts), request.output)


class OwnCommand(NamedTuple):
    """A format whose command is a module of its own within cli/."""

    summary: str
    module: str


FORMATS: Final[dict[str, Format | OwnCommand]] = {
    "mermaid": Format(
        "a sequence diagram for Mermaid: in Markdown, on a page, at mermaid.live",
        """Write a sequence diagram for Mermaid: in Markdown, on a page, at mermaid.live.

        \b
        Examples:
          mcpspy export mermaid @:7..20 > story.mmd
          mcpspy export mermaid weather --title "A rainy day" --detail params
          mcpspy export mermaid weather --flat > docs/protocol.mmd
        """,
        "sequence.mermaid:mermaid",
        _mermaid,
        DIAGRAM_OPTIONS,
    ),
    "plantuml": Format(
        "the same for PlantUML",
        """Write a sequence diagram for PlantUML.

        \b
        Example:
          mcpspy export plantuml @ -o story.puml && plantuml story.puml
        """,
        "sequence.plantuml:plantuml",
        _plantuml,
        DIAGRAM_OPTIONS,
    ),
    "svg": Format(
        "the same as a picture, in one file",
        """Write a sequence diagram as a picture: one SVG file that loads nothing, light or dark like the screen.

        \b
        Examples:
          mcpspy export svg weather --show-proxy -o weather.svg
          mcpspy export svg @ --unfold -o every-call.svg
        """,
        "sequence.svg:svg",
        lines_of_diagram,
        DIAGRAM_OPTIONS,
    ),
    "text": Format(
        "the same in characters, for the terminal",
        """Draw a sequence diagram with characters, as wide as the screen.

        \b
        Example:
          mcpspy export text @:7..20
        """,
        "sequence.ladder:ladder",
        _ladder,
        DIAGRAM_OPTIONS,
    ),
    "html": Format(
        "one page for the browser: timeline, waterfall, diagram, findings, statistics",
        """Write one page: timeline with search, waterfall, sequence diagram, findings, statistics, each call in full.

        The page loads nothing, so it works offline. It holds all payloads: share it as carefully as the capture. For a page without
        secrets, first run mcpspy export share WHAT -o copy.mcpspy, and export the copy.

        \b
        Example:
          mcpspy export html @ -o session.html
        """,
        "page.page:page",
        _page,
        has_line_ends=True,
    ),
    "markdown": Format(
        "a report to paste into an issue, with secrets masked",
        """Write a report in Markdown to paste into an issue: summary, findings, the calls in question, a diagram, versions.

        Secrets are replaced by pseudonyms, and so are user names, home folders and addresses, as with `mcpspy export share
        --personal`. Rows that you select are all shown in full; without a selection, the calls that failed or have a warning.

        \b
        Example:
          mcpspy export markdown @:5..9 | gh issue create --title "search hangs" --body-file -
        """,
        "markdown:report",
        _report,
    ),
    "har": Format(
        "the HTTP transactions, for browsers and mitmproxy",
        """Write the HTTP transactions as a HAR 1.2 file, with the events of streams as browsers write them.

        \b
        Example:
          mcpspy export har @ -o session.har
        """,
        "har:har",
        _har,
    ),
    "curl": Format(
        "the HTTP requests as curl commands",
        """Write the HTTP requests of rows as curl commands. Secrets that were redacted are read from the environment.

        \b
        Example:
          mcpspy export curl @:7
        """,
        "curl:curl",
        _curl,
    ),
    "jsonl": Format(
        "the decoded messages, one JSON object per line (docs/json.md)",
        """Write the decoded messages, one JSON object per line (docs/json.md).

        \b
        Example:
          mcpspy export jsonl @ | jq -c 'select(.method == "tools/call") | .params.arguments'
        """,
        "json.rows:message_lines",
    ),
    "pytest": Format(
        "a test that sends the recorded requests to a mock of the capture (docs/pytest.md)",
        """Write a test that sends the recorded requests to a mock of the capture (docs/pytest.md).

        Secrets are replaced, in the test and in its capture, as `mcpspy export share` does. With -o, that copy of the capture is put
        into the folder `captures` beside the test.

        \b
        Example:
          mcpspy export pytest weather -o tests/test_weather.py
        """,
        "pytest.module:pytest_module",
        _test,
        (
            click.Option(
                ["--sdk"],
                type=click.Choice(["1", "2"]),
                help="Which version of the official SDK the test uses: 1.x or 2.x. The default is the one that is installed.",
            ),
        ),
    ),
    "parquet": OwnCommand(
        "columns for DuckDB, Spark and the like: a folder of Parquet files (docs/columns.md)", "columns.export"
    ),
    "share": OwnCommand("a capture without secrets that can still be replayed (docs/share.md)", "share"),
}
"""In the order that `mcpspy export --help` shows."""
