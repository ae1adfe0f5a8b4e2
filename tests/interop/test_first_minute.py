"""The first minute, typed: from a configuration file with five servers to a call on the screen, in the steps that the docs count."""

import re
from pathlib import Path

from benchmarks.first_minute import first_minute
from tests.conftest import ROOT, DebianProgram

SERVERS = ["git", "lab", "remote", "time", "weather"]
WORDS = ["no", "one", "two", "three"]


def test_the_first_call_is_on_the_screen_after_as_many_steps_as_the_page_says(
    debian_program: DebianProgram, tmp_path: Path
) -> None:
    assert debian_program("git")
    counts = first_minute(tmp_path)
    steps = (len(counts["commands"]), counts["choices"], counts["restarts"])  # type: ignore[arg-type]
    match = re.search(
        r"(\w+) commands, (\w+) choice and (\w+) restart",
        (ROOT / "docs" / "start.md").read_text(encoding="utf-8").replace("\n", " "),
    )
    assert match
    assert tuple(WORDS.index(word) for word in match.groups()) == steps
    assert (counts["answered"], counts["recorded"]) == (SERVERS, SERVERS)
    assert counts["restored"] is True
