"""`show` names the findings of `check`, but for rules that are left to it, and large transcripts are checked as small ones are."""

from pathlib import Path

import pytest

from mcpspy.cli.transcripts import transcript_of_file
from mcpspy.transcript.findings import finders
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import all_findings, findings

CAPTURES = sorted((Path(__file__).parents[3] / "captures").glob("*.mcpspy"))


def in_words(found: list[Finding]) -> list[tuple[str, str, int | None, int]]:
    return sorted((finding.rule, finding.what, finding.row, finding.count) for finding in found)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_show_names_what_check_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = transcript_of_file(str(path))
    checked = all_findings(transcript)
    assert in_words(transcript.findings) == in_words(
        [finding for finding in checked if finding.rule not in finders.LEFT_ALWAYS]
    )
    monkeypatch.setattr(finders, "MAX_MESSAGES", -1)
    transcript.findings = findings(transcript)
    assert not {finding.rule for finding in transcript.findings} & set(finders.LEFT_TO_CHECK)
    assert in_words(all_findings(transcript)) == in_words(checked)
