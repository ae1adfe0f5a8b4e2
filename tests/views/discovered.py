"""The views of mcpspy, found by their signatures: a new view is held to the same tests without being listed.

A view is a public function of `mcpspy.views` whose first parameter is made of whole captures (`SUBJECTS`) and that returns lines or
text. Its other arguments are plain values by their names, and parts of the subject by their types.
"""

import ast
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache, cached_property
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any, Final, get_type_hints

import mcpspy.views
from mcpspy.cli.export.formats import page_files
from mcpspy.replay.compare.compare import ComparedSide, Comparison, compare
from mcpspy.replay.compare.gateway import GatewayComparison, PassedRow
from mcpspy.transcript.exchange import Exchange
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.http.transaction import Transaction
from mcpspy.transcript.llm.model_call import ModelCall
from mcpspy.transcript.llm.tool_trips import ToolTrip, tool_trips
from mcpspy.transcript.model import Numbered, Row, Transcript, UnpairedMessage
from mcpspy.views.check.model import CheckResult
from mcpspy.views.pytest.made_up import MadeUpValues
from mcpspy.views.pytest.sdk import DIALECTS, Dialect
from mcpspy.views.sequence.diagram import Diagram
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.text.line import Line, plain
from mcpspy.views.timeline.exchange import carrying_transactions

SUBJECTS: Final = (Transcript, CheckResult, Diagram, Comparison, GatewayComparison)

OUTPUTS: Final = (str, list[str], Iterator[str], Iterable[str], Line, list[Line], Iterator[Line], Iterable[Line])

NO_VIEWS: Final = {"check.model.culprit_name", "sequence.ladder.names"}
"""Functions that give parts of a line, for views to escape and to place."""

FOR_BROWSERS: Final = {"page.page.page"}
"""Views for which a control character is harmless: they must not raise."""

PLAIN_VALUES: Final[dict[str, Any]] = {
    "zone": UTC,
    "version": "0.1.0",
    "title": "title",
    "indent": "    ",
    "since": "",
    "addresses": ["@"],
    "whats": ["@"],
    "before": "@1",
    "after": "@",
    "files": page_files(),
    "names": {0: "test"},
}
"""Arguments by the name of the parameter. A width is given by the test; flags are all off, then all on."""


@dataclass(frozen=True)
class View:
    """A view, with the types of its parameters."""

    name: str
    function: Callable[..., Any]
    types: Mapping[str, Any]


@cache
def views() -> list[View]:
    """Find all views."""
    views = []
    for info in pkgutil.walk_packages(mcpspy.views.__path__, "mcpspy.views."):
        module = import_module(info.name)
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                types = get_type_hints(function, _names(module))
                output = types.pop("return", None)
                full_name = f"{info.name.removeprefix('mcpspy.views.')}.{name}"
                if types and next(iter(types.values())) in SUBJECTS and output in OUTPUTS and full_name not in NO_VIEWS:
                    views.append(View(full_name, function, types))
    return views


def _names(module: ModuleType) -> dict[str, Any]:
    """Give all names that annotations of a module use; those that it imports for type checking too."""
    names = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            source = import_module("." * node.level + (node.module or ""), module.__package__)
            names |= {
                alias.asname or alias.name: getattr(source, alias.name) for alias in node.names if hasattr(source, alias.name)
            }
    return names


class Subject:
    """A transcript, with everything that views take that is made of it."""

    def __init__(self, transcript: Transcript, width: int | None) -> None:
        self.transcript = transcript
        self.width = width

    @cached_property
    def values(self) -> list[tuple[Any, list[Any]]]:
        """Arguments by type: each view is called with each value."""
        transcript, rows = self.transcript, self.transcript.rows
        findings = all_findings(transcript)
        check = CheckResult(
            transcript=transcript,
            findings=findings,
            rules={finding.rule: RULES[finding.rule] for finding in findings},
            fail_on=Severity.WARNING,
            paths={capture.index: "captures/hostile.mcpspy" for capture in transcript.captures},
            address="@",
            rows={row.row: row for row in rows if isinstance(row, Numbered)},
        )
        side = ComparedSide(transcript=transcript)
        transactions = [known for capture in transcript.captures for known in capture.transactions.values()]
        return [
            (Transcript, [transcript]),
            (CheckResult, [check]),
            (Diagram, [diagram(transcript, rows)]),
            (Comparison, [compare(side, ComparedSide(transcript=Transcript())), compare(side, side)]),
            (GatewayComparison, [_gateway(transcript)] if transcript.captures else []),
            (list[Row], [rows]),
            (Sequence[Row], [rows]),
            (Iterable[Row], [rows]),
            (Iterable[tuple[Transaction, list[int]]], [carrying_transactions(transcript, rows)]),
            (Iterable[Transaction], [transactions]),
            (Iterable[ToolTrip], [tool_trips(transcript)]),
            (Sequence[ToolTrip], [tool_trips(transcript)]),
            (Exchange, [row for row in rows if isinstance(row, Exchange)]),
            (ModelCall, transcript.model_calls),
            (Dialect, list(DIALECTS.values())),
            (MadeUpValues, [MadeUpValues(transcript, dialect) for dialect in DIALECTS.values()]),
            (Numbered, [row for row in rows if isinstance(row, Numbered)]),
        ]

    def printed(self) -> Iterator[str]:
        """Print every view of the transcript, line by line, with all flags off and with all flags on."""
        for view in views():
            for flag in (False, True):
                for arguments, options in self._calls(view, flag=flag):
                    texts = list(_texts(view.function(*arguments, **options)))
                    yield from [] if view.name in FOR_BROWSERS else texts

    def _calls(self, view: View, *, flag: bool) -> Iterator[tuple[list[Any], dict[str, Any]]]:
        """Give the arguments of each call of a view: one for each combination of values."""
        parameters = inspect.signature(view.function).parameters
        choices = {name: self._choices(view, parameter, flag=flag) for name, parameter in parameters.items()}
        chosen = {name: values for name, values in choices.items() if values is not None}
        for values in product(*chosen.values()):
            options = dict(zip(chosen, values, strict=True))
            variadic = [name for name in chosen if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL]
            yield [options.pop(name) for name in variadic], options

    def _choices(self, view: View, parameter: inspect.Parameter, *, flag: bool) -> list[Any] | None:
        """Give the values of a parameter; None where its default will do."""
        kind = view.types[parameter.name]
        if kind is bool:
            return [flag]
        if parameter.name == "width":
            return [self.width or 100] if kind is int else [self.width]
        if parameter.name in PLAIN_VALUES:
            return [PLAIN_VALUES[parameter.name]]
        for known, values in self.values:
            if kind == known:
                return values
        if parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            raise LookupError(
                f"{view.name} takes {parameter.name}: {kind}: say in tests/views/discovered.py what it is called with"
            )
        return None


def _gateway(transcript: Transcript) -> GatewayComparison:
    """Compare a transcript as if a gateway had lost or changed all its rows."""
    rows = [row for row in transcript.rows if isinstance(row, Exchange | UnpairedMessage | Transaction)]
    lost = [PassedRow(sender=(row,), receiver=()) for row in rows]
    target = [str(row.target) for row in rows if isinstance(row, Exchange)]
    changed = [PassedRow(sender=(row,), receiver=(row,), reason="; ".join(target), fields=tuple(target)) for row in rows]
    capture = transcript.captures[0]
    return GatewayComparison(transcript=transcript, outer=capture, inner=capture, rows=[*lost, *changed])


def _texts(output: Any) -> Iterator[str]:
    """Split what a view returns into lines: a string, a line of pieces, or several of either."""
    if isinstance(output, str):
        yield from output.split("\n")
    elif isinstance(output, list) and output and isinstance(output[0], tuple):
        yield plain(output)
    else:
        for part in output:
            yield from _texts(part)
