"""`mcpspy check`: the findings in captures, as text or for other programs; exit status 1 if one is bad."""

import os
import sys
from collections.abc import Container, Iterable

import click

from .. import __version__
from ..capture.file.reader import lines_of, read
from ..capture.store.address import STDIN
from ..errors import CaptureError
from ..records import Header
from ..transcript.absent_facts import imported_facts
from ..transcript.definitions import Baseline, offers
from ..transcript.filter.grammar import Filter
from ..transcript.filter.result import findings_about
from ..transcript.findings.registry import rule_named, selected_rules
from ..transcript.findings.rule import Finding, Rule, Severity, Unchecked, counted_together
from ..transcript.findings.run import all_findings, findings, unrecorded
from ..transcript.findings.trust import NOT_ACCEPTED, NOT_COMPARED
from ..transcript.model import Numbered, Transcript
from ..views.check.model import CheckResult
from ..views.check.text import check_lines, next_lines
from ..views.text.units import counted
from .baseline import accept as write_baselines
from .baseline import baselines
from .click_types import WhatCommand
from .fifo import named_file
from .filter_option import combined_filter, filter_option, filter_rows
from .screen import Screen, say
from .since import Since, recent_rows, select_captures_since, since_option
from .transcripts import CaptureSelection, select_captures, transcript_of

FORMATS = ("text", "json", "junit", "sarif", "github")
SEVERITIES = [severity.value for severity in Severity]
FAILED = 1
UNCOMPARED = (NOT_ACCEPTED.name, NOT_COMPARED.name)
"""Findings that only --ignore drops from a check with a baseline: else a check that compared nothing would pass."""


@click.command("check", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="Fail if there is a finding of this severity or worse.",
)
@click.option(
    "--select", multiple=True, metavar="RULE,…", help="Only these rules: names, globs, families (transport, cost, …)."
)
@click.option("--ignore", multiple=True, metavar="RULE,…", help="Leave out these rules.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The output's format; junit and sarif are for CI.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json (docs/json.md).")
@click.option(
    "--baseline", metavar="DIR", help="Compare what servers offer with what was accepted: a folder with a file for each server."
)
@click.option("--accept", is_flag=True, help="Write what servers offer now to the baseline.")
@click.option("--rules", "list_rules", is_flag=True, help="Only list the rules, or the selected ones.")
@click.option("--explain", metavar="RULE", help="Explain one rule, with an example.")
@filter_option
@since_option
def command(
    what: tuple[str, ...],
    fail_on: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    format: str,
    as_json: bool,
    baseline: str | None,
    accept: bool,
    list_rules: bool,
    explain: str | None,
    filters: tuple[str, ...],
    since: Since | None,
) -> int:
    """Find what went wrong, who is to blame and what to do. The exit status is 1 if there is a finding of --fail-on or worse.

    WHAT is as in `mcpspy show`: captures, recordings, labels, `-`; append `:7..20` for findings about rows 7 to 20.

    \b
    Examples:
      mcpspy check @ --fail-on error
      mcpspy check --since 1h
      mcpspy check captures/*.mcpspy --format junit > findings.xml
      mcpspy check --explain stdout-noise
    """
    screen = Screen()
    if baseline is not None and select:
        select = (*select, *UNCOMPARED)
    rules = selected_rules(select, ignore)
    if explain is not None or list_rules:
        _explain(rules if explain is None else rule_named(explain), screen, as_json=as_json or format == "json")
        return 0
    _check_baseline(baseline, accept=accept)
    wanted = combined_filter(filters)
    selection, what = (select_captures(what), what) if since is None else select_captures_since(what, since)
    transcript, _ = transcript_of(selection, keeps_noise=False)
    accepted = None if baseline is None else baselines(baseline, transcript)
    if accept and baseline is not None and accepted is not None:
        accepted = _accept(baseline, transcript, accepted, screen)
    limits: dict[Unchecked, None] = {}
    transcript = _with_findings(transcript, accepted, rules, selection, since, limits)
    found = _selected_findings(transcript, selection, wanted)
    check = _result(transcript, found, rules, Severity(fail_on), selection, what, since, limits)
    _print(check, "json" if as_json else format, screen)
    return FAILED if check.failed else 0


def _check_baseline(baseline: str | None, *, accept: bool) -> None:
    """Check that the options about a baseline go together. Raises: click.UsageError."""
    if accept and baseline is None:
        raise click.UsageError("--accept needs a folder: --baseline DIR.")
    if baseline is not None and not accept and not os.path.isdir(baseline):
        raise click.UsageError(f"There is no folder {baseline}. Add --accept to write a baseline there.")


def _with_findings(
    transcript: Transcript,
    accepted: dict[str, Baseline] | None,
    rules: dict[str, Rule],
    selection: CaptureSelection,
    since: Since | None,
    limits: dict[Unchecked, None],
) -> Transcript:
    """Give the transcript all findings, or reduce both to what was alive `since` a moment. `limits` takes those that were reached."""
    if since is None:
        transcript.findings = all_findings(transcript, accepted, rules, limits=limits)
        return transcript
    kept = recent_rows(transcript, selection.paths, since)
    transcript.findings = findings(transcript, kept.is_about)
    recent = all_findings(
        transcript, accepted, rules, lambda finding: finding.rule in UNCOMPARED or kept.is_about(finding), limits
    )
    return Transcript(transcript.captures, kept.rows, recent)


def _selected_findings(transcript: Transcript, selection: CaptureSelection, wanted: Filter | None) -> list[Finding]:
    """Keep the findings about the rows that were asked for, and say how many a filter leaves out."""
    uncompared = [finding for finding in transcript.findings if finding.rule in UNCOMPARED]
    selected = [finding for finding in transcript.findings if finding.rule not in UNCOMPARED]
    if selection.rows is not None:
        numbers = {row.row for row in selection.rows_in(transcript) if isinstance(row, Numbered)}
        selected = [finding for finding in selected if not numbers.isdisjoint(finding.rows)]
    if wanted is not None:
        count = len(selected)
        selected = findings_about(filter_rows(wanted, transcript, transcript.rows), selected)
        if len(selected) < count:
            say(f"mcpspy: {counted(count - len(selected), 'finding')} left out by the filter")
    return [*uncompared, *selected]


def _explain(rules: Rule | dict[str, Rule], screen: Screen, *, as_json: bool) -> None:
    """Explain one rule, or list several; JSON has all of each rule."""
    from ..views.check.rules import rule_lines, rules_lines
    from ..views.json.checks import rules_json

    if as_json:
        sys.stdout.write(rules_json(rules.values() if isinstance(rules, dict) else [rules]))
    elif isinstance(rules, dict):
        screen.lines(rules_lines(rules.values(), width=screen.width))
    else:
        screen.lines(rule_lines(rules, width=screen.width))


def _accept(folder: str, transcript: Transcript, before: dict[str, Baseline], screen: Screen) -> dict[str, Baseline]:
    """Write the baseline, report its changes on stderr, and give what is accepted now."""
    from ..views.check.text import accepted_lines

    written = write_baselines(folder, offers(transcript), before)
    for line in accepted_lines(written, before):
        click.echo(screen.letters(line), err=True)
    return {label: baseline for label, (_, baseline) in written.items()}


def _print(check: CheckResult, format: str, screen: Screen) -> None:
    match format:
        case "json":
            from ..views.json.checks import check_json

            sys.stdout.write(check_json(check))
        case "junit":
            from ..views.check.formats import junit_lines

            _print_utf8(junit_lines(check))
        case "sarif":
            from ..views.check.formats import check_sarif

            _print_utf8([check_sarif(check, __version__).rstrip("\n")])
        case "github":
            from ..views.check.formats import github_lines

            _print_utf8(github_lines(check))
        case _:
            screen.lines(check_lines(check, width=screen.width))
            for line in next_lines(check, screen.width):
                screen.advise(line)


def _print_utf8(texts: Iterable[str]) -> None:
    """Print lines in UTF-8, whatever the terminal's encoding: programs read them."""
    for text in texts:
        sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _result(
    transcript: Transcript,
    selected: list[Finding],
    rules: dict[str, Rule],
    fail_on: Severity,
    selection: CaptureSelection,
    what: tuple[str, ...],
    since: Since | None,
    limits: Iterable[Unchecked],
) -> CheckResult:
    paths = _paths(transcript, selection.paths)
    numbers: dict[int, set[int]] = {}
    for finding in selected:
        if transcript.captures[finding.capture].damages and paths[finding.capture] != _STDIN_NAME:
            numbers.setdefault(finding.capture, set()).add(finding.number)
    lines = {
        (capture, number): line
        for capture, records in numbers.items()
        for number, line in lines_of(paths[capture], records).items()
    }
    row_numbers = {finding.row for finding in selected}
    captured = {path for path in selection.paths if path == named_file(path) != STDIN}
    imported = frozenset(
        info.index for info in transcript.captures if imported_facts(info.header) and paths[info.index] not in captured
    )
    return CheckResult(
        transcript=transcript,
        findings=_merged(selected, paths, imported),
        rules=rules,
        fail_on=fail_on,
        paths=paths,
        address=_address(what) if since is None or what else "",
        since="" if since is None else since.words,
        since_wall_ns=None if since is None else since.wall_ns,
        lines=lines,
        imported=imported,
        unchecked=[*limits, *unrecorded(transcript, rules)],
        rows={row.row: row for row in transcript.rows if isinstance(row, Numbered) and row.row in row_numbers}
        if selected
        else {},
    )


def _merged(found: list[Finding], paths: dict[int, str], imported: Container[int]) -> list[Finding]:
    """Make one finding of those that say the same of the whole of several sessions of one imported file."""
    merged: dict[object, Finding] = {}
    for finding in found:
        is_whole = finding.row is None and finding.capture in imported
        key = (paths[finding.capture], finding.rule, finding.what, finding.culprit) if is_whole else id(finding)
        first = merged.get(key)
        merged[key] = finding if first is None else counted_together(first, finding)
    return list(merged.values())


_STDIN_NAME = "stdin"


def _paths(transcript: Transcript, paths: tuple[str, ...]) -> dict[int, str]:
    """Give the file of each capture: captures are in the order in which they began, paths in that in which they were named."""
    if len(paths) == 1:
        return dict.fromkeys(range(len(transcript.captures)), _STDIN_NAME if paths[0] == STDIN else named_file(paths[0]))
    waiting = {path: _capture_id(path) for path in paths}
    by_capture: dict[int, str] = {}
    for capture in transcript.captures:
        id = capture.header.capture_id if capture.header else None
        path = next((path for path, known in waiting.items() if known == id), None) or next(iter(waiting), STDIN)
        waiting.pop(path, None)
        by_capture[capture.index] = _STDIN_NAME if path == STDIN else named_file(path)
    return by_capture


def _capture_id(path: str) -> str | None:
    if path == STDIN:
        return None
    try:
        first = next(read(path), None)
    except CaptureError:
        return None
    return first.capture_id if isinstance(first, Header) else None


def _address(what: tuple[str, ...]) -> str:
    """Give the WHAT that rows can be appended to; empty if there are several WHATs, or if it cannot be read twice."""
    if len(what) > 1 or (what and what[0].startswith(STDIN)):
        return ""
    named = what[0] if what else "@"
    name, _, rows = named.rpartition(":")
    return name if name and rows.replace(".", "").isdecimal() else named
