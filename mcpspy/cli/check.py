"""`mcpspy check`: what there is to find in captures, as text or in a form that other programs take; exit status 1 if it is bad."""

import sys
from collections.abc import Iterable

import click

from .. import __version__
from ..capture.file.parse import lines_of
from ..capture.file.reader import read
from ..capture.store.address import STDIN
from ..errors import CaptureError
from ..records import Header
from ..transcript.filter.result import findings_about
from ..transcript.findings.registry import rule_named, selected_rules
from ..transcript.findings.rule import Finding, Rule, Severity
from ..transcript.findings.run import all_findings, findings
from ..transcript.model import Numbered, Transcript
from ..transcript.offers.baseline import Baseline
from ..transcript.offers.definitions import offers
from ..views.check.model import Checked
from ..views.check.text import check_lines, next_lines
from ..views.text.units import counted
from ..views.timeline.timeline import rows_between
from .check_baseline import accept as write_baselines
from .check_baseline import baselines
from .filter_option import combined_filter, filter_option, filter_rows
from .screen import Screen, say
from .since import Since, recent_rows, select_captures_since, since_option
from .transcripts import CaptureSelection, WhatCommand, row_of, select_captures, transcript_of

FORMATS = ("text", "json", "junit", "sarif", "github")
SEVERITIES = [one.value for one in Severity]
FAILED = 1


@click.command("check", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="From which severity on the check fails.",
)
@click.option(
    "--select", multiple=True, metavar="RULE,…", help="Only these rules: names, globs, families (transport, cost, …)."
)
@click.option("--ignore", multiple=True, metavar="RULE,…", help="All but these.")
@click.option(
    "--format", type=click.Choice(FORMATS), default="text", show_default=True, help="Junit and sarif are files for CI."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json (docs/json.md).")
@click.option(
    "--baseline", metavar="DIR", help="Compare what servers offer with what was accepted: a folder with a file for each."
)
@click.option("--accept", is_flag=True, help="Write what servers offer now into the baseline.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules, or those selected, and nothing else.")
@click.option("--explain", metavar="RULE", help="All about one rule: what, why, whose fault, an example, what to do.")
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
    """Findings: what went wrong, whose fault it is, what to do. The exit status is 1 if there is one of --fail-on or worse.

    WHAT is as in `mcpspy show`: captures, recordings, labels, `-`; `:7..20` takes what is about rows 7 to 20. `--rules` lists what is
    looked for.

    \b
    Examples:
      mcpspy check @ --fail-on error
      mcpspy check --since 1h
      mcpspy check captures/*.mcpspy --format junit > findings.xml
      mcpspy check --explain stdout-noise
    """
    screen = Screen()
    rules = selected_rules(select, ignore)
    if explain is not None or list_rules:
        _explain(rules if explain is None else rule_named(explain), screen, as_json=as_json or format == "json")
        return 0
    if accept and baseline is None:
        raise click.UsageError("--accept wants to know where: --baseline DIR.")
    wanted = combined_filter(filters)
    asked, what = (select_captures(what), what) if since is None else select_captures_since(what, since)
    transcript, _ = transcript_of(asked.paths)
    accepted = None if baseline is None else baselines(baseline, transcript)
    if accept and baseline is not None and accepted is not None:
        accepted = _accept(baseline, transcript, accepted, screen)
    transcript = _examined(transcript, accepted, rules, asked, since)
    found = transcript.findings
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
        numbers = {row.row for row in rows_between(transcript.rows, asked.rows) if isinstance(row, Numbered)}
        found = [one for one in found if one.row in numbers]
    if wanted is not None:
        left = len(found)
        found = findings_about(filter_rows(wanted, transcript, transcript.rows), found)
        if len(found) < left:
            say(f"mcpspy: {counted(left - len(found), 'finding')} left out by the filter")
    checked = _checked(transcript, found, rules, Severity(fail_on), asked, what, since)
    _print(checked, "json" if as_json else format, screen)
    return FAILED if checked.failed else 0


def _examined(
    transcript: Transcript,
    accepted: dict[str, Baseline] | None,
    rules: dict[str, Rule],
    asked: CaptureSelection,
    since: Since | None,
) -> Transcript:
    """The transcript with all findings, or what of both is of late."""
    if since is None:
        transcript.findings = all_findings(transcript, accepted, rules)
        return transcript
    kept = recent_rows(transcript, asked.paths, since)
    transcript.findings = findings(transcript, kept.is_about)
    return Transcript(transcript.captures, kept.rows, all_findings(transcript, accepted, rules, kept.is_about))


def _explain(told: Rule | dict[str, Rule], screen: Screen, *, as_json: bool) -> None:
    """One rule whole, or several as a list; as JSON all are whole."""
    from ..views.check.rules import rule_lines, rules_lines
    from ..views.json.check import rules_json

    if as_json:
        sys.stdout.write(rules_json(told.values() if isinstance(told, dict) else [told]))
    elif isinstance(told, dict):
        screen.lines(rules_lines(told.values(), width=screen.width))
    else:
        screen.lines(rule_lines(told, width=screen.width))


def _accept(folder: str, transcript: Transcript, before: dict[str, Baseline], screen: Screen) -> dict[str, Baseline]:
    """Write the baseline, say on stderr what changed in it, and give what is accepted now."""
    from ..views.check.text import accepted_lines

    written = write_baselines(folder, offers(transcript), before)
    for line in accepted_lines(written, before):
        click.echo(screen.letters(line), err=True)
    return {label: baseline for label, (_, baseline) in written.items()}


def _print(checked: Checked, format: str, screen: Screen) -> None:
    match format:
        case "json":
            from ..views.json.check import check_json

            sys.stdout.write(check_json(checked))
        case "junit":
            from ..views.check.junit import junit_lines

            _whole(junit_lines(checked))
        case "sarif":
            from ..views.check.sarif import check_sarif

            _whole([check_sarif(checked, __version__).rstrip("\n")])
        case "github":
            from ..views.check.github import github_lines

            _whole(github_lines(checked))
        case _:
            screen.lines(check_lines(checked, width=screen.width))
            for line in next_lines(checked, screen.width):
                screen.advise(line)


def _whole(texts: Iterable[str]) -> None:
    """Print for a program, which is promised UTF-8."""
    for text in texts:
        sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _checked(
    transcript: Transcript,
    found: list[Finding],
    rules: dict[str, Rule],
    fail_on: Severity,
    asked: CaptureSelection,
    what: tuple[str, ...],
    since: Since | None,
) -> Checked:
    paths = _paths(transcript, asked.paths)
    numbers: dict[int, set[int]] = {}
    for one in found:
        if transcript.captures[one.capture].damages and paths[one.capture] != _STDIN_NAME:
            numbers.setdefault(one.capture, set()).add(one.number)
    lines = {
        (capture, number): line for capture, some in numbers.items() for number, line in lines_of(paths[capture], some).items()
    }
    pointed_at = {one.row for one in found}
    return Checked(
        transcript=transcript,
        findings=found,
        rules=rules,
        fail_on=fail_on,
        paths=paths,
        address=_address(what) if since is None or what else "",
        since="" if since is None else since.words,
        since_wall_ns=None if since is None else since.wall_ns,
        lines=lines,
        rows={row.row: row for row in transcript.rows if isinstance(row, Numbered) and row.row in pointed_at},
    )


_STDIN_NAME = "stdin"


def _paths(transcript: Transcript, paths: tuple[str, ...]) -> dict[int, str]:
    """The file of each source. They are in the order in which they began, the paths in that in which they were named."""
    if len(paths) == 1:
        return dict.fromkeys(range(len(transcript.captures)), _STDIN_NAME if paths[0] == STDIN else paths[0])
    waiting = {path: _capture_id(path) for path in paths}
    found: dict[int, str] = {}
    for source in transcript.captures:
        id = source.header.capture_id if source.header else None
        path = next((path for path, known in waiting.items() if known == id), None) or next(iter(waiting), STDIN)
        waiting.pop(path, None)
        found[source.index] = _STDIN_NAME if path == STDIN else path
    return found


def _capture_id(path: str) -> str | None:
    if path == STDIN:
        return None
    try:
        first = next(read(path), None)
    except CaptureError:
        return None
    return first.capture_id if isinstance(first, Header) else None


def _address(what: tuple[str, ...]) -> str:
    """What rows can be asked for by; empty where several WHATs were named, or rows already, or it cannot be read twice."""
    if len(what) > 1 or (what and what[0].startswith(STDIN)):
        return ""
    named = what[0] if what else "@"
    name, _, rows = named.rpartition(":")
    return name if name and rows.replace(".", "").isdecimal() else named
