"""The pictures of README and docs are those that the captures make today."""

import re

import pytest

from docs.draw import DIAGRAMS, HERE, drawn
from tests.conftest import ROOT
from tests.views.overlaps import assert_no_overlap


@pytest.mark.parametrize("name", sorted(DIAGRAMS))
def test_a_picture_is_what_its_capture_makes(name: str) -> None:
    assert (HERE / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawn(name)


@pytest.mark.parametrize("name", sorted(DIAGRAMS))
def test_no_text_of_a_picture_overlaps_another(name: str) -> None:
    assert_no_overlap((HERE / "images" / f"{name}.svg").read_text(encoding="utf-8"))


def test_every_picture_is_shown_somewhere() -> None:
    pages = [ROOT / "README.md", *HERE.glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w.-]+)\)", page.read_text(encoding="utf-8"))}
    assert {path.name for path in (HERE / "images").iterdir()} == shown
