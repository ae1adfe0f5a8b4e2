"""The reader, held to what it told of captures before it was rebuilt."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.oracle.told import captures, changed
from tests.tiers import current_tier

AT_ONCE = 40
CAPTURES = captures()[:: current_tier()(sample=3, more=1, full=1)]


@pytest.mark.tiered
@pytest.mark.parametrize("first", range(0, len(CAPTURES), AT_ONCE))
def test_each_capture_tells_what_it_told(first: int) -> None:
    wrong = changed(CAPTURES[first : first + AT_ONCE])
    assert not wrong, f"see: python -m tests.oracle.told {' '.join(wrong)}"


@pytest.mark.tiered
@pytest.mark.parametrize("first", range(0, len(CAPTURES), AT_ONCE))
def test_each_capture_tells_the_same_where_its_payloads_are_left_in_the_file(first: int) -> None:
    assert not changed(CAPTURES[first : first + AT_ONCE][:: current_tier()(sample=4, more=1, full=1)], "digests_of_left")


def test_a_capture_that_tells_something_else_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = tmp_path / "digests.json"
    digests.write_text('{"captures/time.mcpspy": "0000000000000000"}')
    monkeypatch.setattr("tests.oracle.told.DIGESTS", digests)
    assert changed([ROOT / "captures" / "time.mcpspy"]) == ["captures/time.mcpspy"]
