"""Files of tests' captures: names that people can guess, and a file of its own for each test."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.testing.servers import capture_path, keep, server_runs, written_captures

TEST_FILE = Path("/project/tests/test_weather.py")
CAPTURES = "/project/tests/captures"
LETTERS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("weather", f"{CAPTURES}/weather.mcpspy"),
        ("weather.mcpspy", f"{CAPTURES}/weather.mcpspy"),
        ("v1.2", f"{CAPTURES}/v1.2.mcpspy"),
        ("cities/ulm", f"{CAPTURES}/cities/ulm.mcpspy"),
        (Path("weather"), f"{CAPTURES}/weather.mcpspy"),
        ("/elsewhere/weather.mcpspy", "/elsewhere/weather.mcpspy"),
    ],
)
def test_a_name_means_a_file_beside_the_test(name: str | Path, path: str) -> None:
    assert str(capture_path(name, test_file=TEST_FILE, test="tests/test_weather.py::test_it", number=0)) == path


def unnamed(test: str, number: int = 1) -> str:
    path = capture_path(None, test_file=TEST_FILE, test=f"tests/test_weather.py::{test}", number=number)
    return str(path.relative_to(CAPTURES))


@pytest.mark.parametrize(
    ("test", "path"),
    [
        ("test_it", "test_weather/test_it.mcpspy"),
        ("TestCity::test_it", "test_weather/TestCity.test_it.mcpspy"),
        ("test_it[ulm-1]", "test_weather/test_it-ulm-1.mcpspy"),
    ],
)
def test_without_a_name_the_capture_is_named_for_the_test(test: str, path: str) -> None:
    assert unnamed(test) == path


def test_the_second_without_a_name_has_a_number() -> None:
    assert unnamed("test_it", 2) == "test_weather/test_it+2.mcpspy"


@given(LETTERS)
def test_whatever_a_test_is_called_its_capture_is_a_file_that_any_disk_takes(parameter: str) -> None:
    folder, _, name = unnamed(f"test_it[{parameter}]").partition("/")
    assert folder == "test_weather"
    assert "/" not in name
    assert "\0" not in name
    assert len(name.encode()) <= 130


@given(LETTERS, LETTERS)
@example("a", "a]")
@example("a.b", "a::b")
def test_tests_with_other_parameters_have_other_captures(first: str, second: str) -> None:
    assert (unnamed(f"test_it[{first}]") == unnamed(f"test_it[{second}]")) == (first == second)


def test_server_runs_are_kept_in_their_order_and_found_again(tmp_path: Path) -> None:
    meanwhile, path = tmp_path / "meanwhile", tmp_path / "captures" / "x.mcpspy"
    meanwhile.mkdir()
    for name in ("x", "x-2", "x-10"):
        (meanwhile / f"{name}.mcpspy").write_text(name)
    keep(written_captures(meanwhile / "x.mcpspy"), path)
    assert [capture.read_text() for capture in server_runs(path)] == ["x", "x-2", "x-10"]


def test_keeping_captures_leaves_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "x.mcpspy").write_text("x")
    keep([tmp_path / "x.mcpspy", tmp_path / "x.mcpspy"], tmp_path / "captures" / "y.mcpspy")
    keep([tmp_path / "x.mcpspy"], tmp_path / "captures" / "y.mcpspy")
    assert [path.name for path in (tmp_path / "captures").iterdir()] == ["y.mcpspy"]


def test_a_capture_that_cannot_be_copied_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "captures" / "y.mcpspy"
    path.parent.mkdir()
    path.write_text("before")
    with pytest.raises(FileNotFoundError):
        keep([tmp_path / "gone.mcpspy"], path)
    assert [kept.name for kept in path.parent.iterdir()] == ["y.mcpspy"]
    assert path.read_text() == "before"
