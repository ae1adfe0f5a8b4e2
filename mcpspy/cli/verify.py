"""`mcpspy verify`: whether a capture is intact, and what is lost and where; `--repair` copies what can be read."""

from dataclasses import asdict

import click

from ..capture.file.repair import RepairResult, repair
from ..capture.file.verify import Status, Summary, verify, verify_file
from ..capture.store.address import STDIN, resolve
from ..errors import AddressError, RepairError
from ..views.verification import CaptureProblem, VerifiedCapture, verification, verification_json
from .fifo import announced, named_file, opened_stdin
from .progress import ReadingProgress, reading
from .screen import Screen, say

EXIT_STATUS = {Status.INTACT: 0, Status.INCOMPLETE: 1, Status.DAMAGED: 3}


@click.command("verify")
@click.argument("capture", default="@")
@click.option("--repair", "out", metavar="OUT", help="Copy what can be read to the new file OUT; CAPTURE is not changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
def command(*, capture: str, out: str | None, as_json: bool) -> int:
    """Check whether a capture is intact, and if not, show what is lost and where.

    CAPTURE is a file, a label, @ for the newest recording (the default), or - for standard input.

    Exit status: 0 intact, 1 incomplete (cut off, still being recorded, or not recorded for a while), 3 damaged.

    \b
      mcpspy verify weather
      mcpspy verify broken.mcpspy --repair sound.mcpspy
    """
    paths = _paths(capture)
    if out is not None and (len(paths) > 1 or paths == (STDIN,)):
        raise RepairError(f"{capture} is not one file; name the capture to repair")
    with reading(paths) as progress:
        summaries = [_summary(path, progress) for path in paths]
    repaired = _repaired(summaries[0], out) if out is not None else None
    verified = [_verified(summary, repaired) for summary in summaries]
    if as_json:
        click.echo(verification_json(verified), nl=False)
    else:
        screen = Screen()
        screen.lines(line for capture in verified for line in verification(capture, width=screen.width))
    worst = max(EXIT_STATUS[summary.status] for summary in summaries)
    if worst == EXIT_STATUS[Status.DAMAGED] and repaired is None and STDIN not in paths and not as_json:
        say("mcpspy verify CAPTURE --repair OUT copies what can be read to a new file.")
    return worst


def _paths(what: str) -> tuple[str, ...]:
    address = resolve(what)
    if address.rows is not None:
        raise AddressError(what, "single rows cannot be verified; name a capture")
    return announced(address.captures)


def _summary(path: str, progress: ReadingProgress) -> Summary:
    return verify(path, progress.add) if path != STDIN else _standard_input()


def _standard_input() -> Summary:
    with opened_stdin() as file:
        return verify_file(file, "standard input")


def _repaired(summary: Summary, out: str) -> RepairResult:
    if summary.live:
        raise RepairError(f"{summary.path} is still being recorded; wait until its server has ended")
    return repair(summary.path, out)


def _verified(summary: Summary, repaired: RepairResult | None) -> VerifiedCapture:
    return VerifiedCapture(
        path=named_file(summary.path),
        status=summary.status,
        live=summary.live,
        complete=summary.end is not None,
        format=summary.header.format if summary.header else None,
        size_bytes=summary.size_bytes,
        records=summary.records,
        frames=summary.frames,
        unusable_lines=summary.left_out_lines,
        unusable_bytes=summary.left_out_bytes,
        problems=tuple(CaptureProblem(**asdict(problem)) for problem in summary.problems),
        more_problems=summary.more_problems,
        repaired=repaired.path if repaired else None,
        marked_missing=repaired.missing if repaired else 0,
    )
