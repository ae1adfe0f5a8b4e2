"""`--since` beside captures that are named, for `export parquet` and `otlp`: captures that did not grow since then are left out."""

import os
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.cli.test_since import aged
from tests.columns.reading import rows_of
from tests.telemetry.receiver import receiving


def written(*words: str, into: Path) -> tuple[set[str], str]:
    """Return the labels of the captures that an export writes, and what it says."""
    done = run("export", "parquet", *words, "-o", str(into))
    assert done.returncode == 0, done.stderr
    return {row["label"] for row in rows_of(into, "captures")}, done.stderr


@pytest.mark.parametrize("named", ["files", "folder", "label"])
def test_an_export_has_the_captures_into_which_was_recorded_since_then(named: str, tmp_path: Path) -> None:
    old, young = aged("old", 3), aged("young", 1)
    words = {"files": (old, young), "folder": (os.path.dirname(old),), "label": ("old", "young")}[named]
    assert written(*words, "--since", "2h", into=tmp_path)[0] == {"young"}
    assert written(*words, "--since", "4h", into=tmp_path)[0] == {"old", "young"}


def test_an_export_of_captures_that_are_too_old_says_so(tmp_path: Path) -> None:
    labels, said = written(aged("old", 3), "--since", "2h", into=tmp_path)
    assert (labels, "nothing was recorded since 20" in said, "in the captures that were named" in said) == (set(), True, True)


def test_spans_are_of_the_captures_into_which_was_recorded_since_then() -> None:
    old, young = aged("old", 3), aged("young", 1)
    with receiving() as receiver:
        for words, spans in (((old, "--since", "2h"), 0), ((old, young, "--since", "2h"), 1), ((old, "--since", "4h"), 2)):
            done = run("otlp", *words, "--endpoint", receiver.url)
            assert (done.returncode, len(receiver.spans)) == (0, spans), done.stderr
