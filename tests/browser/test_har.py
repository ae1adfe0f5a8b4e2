"""HARs of a real browser, recorded now, are those of the tests of imports."""

from pathlib import Path

import pytest

from tests.browser.har_recording import PATHS, record
from tests.conftest import DebianProgram
from tests.imports.test_har_of_browsers import same_as_the_taps


@pytest.mark.parametrize("kind", PATHS)
def test_a_har_recorded_now_makes_the_rows_of_the_taps_capture(
    kind: str, tmp_path: Path, debian_program: DebianProgram
) -> None:
    same_as_the_taps(kind, record(kind, tmp_path, debian_program("chromium")))
