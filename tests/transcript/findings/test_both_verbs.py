"""`show` names the findings of `check`, and large transcripts are checked as small ones are."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from mcpspy.cli.check import command as check
from mcpspy.cli.show.command import command as show
from mcpspy.cli.transcripts import transcript_of_file
from mcpspy.transcript.findings import finders
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import all_findings, findings

ROOT = Path(__file__).parents[3]
CAPTURES = sorted((ROOT / "captures").glob("*.mcpspy"))
EXAMPLES = [*CAPTURES, *sorted((ROOT / "tests" / "findings").glob("*.mcpspy"))]
AT_ONCE = 25
"""Captures of a test: it takes as long for itself as for one."""

Capsys = pytest.CaptureFixture[str]


def in_words(found: list[Finding]) -> list[tuple[str, str, int | None, int]]:
    return sorted((finding.rule, finding.what, finding.row, finding.count) for finding in found)


def found_by(verb: click.Command, path: Path, capsys: Capsys) -> list[dict[str, Any]]:
    verb.main([str(path), "--json"], standalone_mode=False)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


@pytest.mark.grid(6)
@pytest.mark.parametrize("first", range(0, len(EXAMPLES), AT_ONCE))
def test_both_verbs_say_the_same(first: int, capsys: Capsys) -> None:
    for path in EXAMPLES[first : first + AT_ONCE]:
        shown = found_by(show, path, capsys)
        # check says more of each, such as the line in the file
        more = {"title", "family", "culprit_name", "path", "line"}
        checked = [{name: finding[name] for name in finding.keys() - more} for finding in found_by(check, path, capsys)]
        assert shown == checked, path


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_large_transcript_is_checked_as_a_small_one_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = transcript_of_file(str(path))
    checked = in_words(all_findings(transcript))
    assert in_words(transcript.findings) == checked
    monkeypatch.setattr(finders, "MAX_MESSAGES", -1)
    transcript.findings = findings(transcript)
    assert not {finding.rule for finding in transcript.findings} & set(finders.LEFT_TO_CHECK)
    assert in_words(all_findings(transcript)) == checked
