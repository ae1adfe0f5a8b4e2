"""WHAT, as every verb takes it."""

import os
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.store.address import Address, resolve
from mcpspy.capture.store.catalog import entries, recordings
from mcpspy.errors import AddressError
from tests.capture.making import stored


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Three recordings: `weather`, then `time` and a newer `weather`, then one without a message. Tests run in another folder."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return {
        "old": stored("first", label="weather", begin_s=0),
        "time": stored("second", label="time", begin_s=100, lasted_s=9),
        "weather": stored("third", label="weather", begin_s=101, lasted_s=9),
        "silent": stored("fourth", label="weather", begin_s=200, messages=0),
    }


def names(address: Address, paths: dict[str, str]) -> list[str]:
    by_path = {path: name for name, path in paths.items()}
    return [by_path.get(path, path) for path in address.captures]


@pytest.mark.parametrize(
    ("what", "captures", "rows"),
    [
        ("", ["time", "weather"], None),
        ("@", ["time", "weather"], None),
        ("@0", ["time", "weather"], None),
        ("@1", ["old"], None),
        ("@:7", ["time", "weather"], (7, 7)),
        ("@1:7..20", ["old"], (7, 20)),
        (":7", ["time", "weather"], (7, 7)),
        ("weather", ["weather"], None),
        ("weather:7", ["weather"], (7, 7)),
        ("time:1..1", ["time"], (1, 1)),
        ("second", ["time"], None),
        ("second.mcpspy:3", ["time"], (3, 3)),
        ("-", ["-"], None),
        ("-:2..3", ["-"], (2, 3)),
    ],
)
def test_what_names_captures_and_rows(
    what: str, captures: list[str], rows: tuple[int, int] | None, paths: dict[str, str]
) -> None:
    address = resolve(what)
    assert (names(address, paths), address.rows) == (captures, rows)


@pytest.fixture
def played(paths: dict[str, str]) -> dict[str, str]:
    """Two more recordings: one of a mock, and the newest, of a replay."""
    mock = stored("fifth", label="time-mock", begin_s=300, tapped={"transport": "stdio", "mock": ["second"]})
    replay = stored("sixth", label="time-replay", begin_s=400, tapped={"transport": "stdio", "replay": ["second"]})
    return {**paths, "mock": mock, "replay": replay}


@pytest.mark.parametrize(("what", "captures"), [("@", ["time", "weather"]), ("@1", ["old"])])
def test_recordings_of_mocks_and_replays_are_not_counted(what: str, captures: list[str], played: dict[str, str]) -> None:
    assert names(resolve(what), played) == captures


def test_an_id_names_any_recording_and_does_not_move(played: dict[str, str]) -> None:
    by_id = {recording.id: [capture.path for capture in recording.entries] for recording in recordings(entries())}
    assert len(by_id) == len(recordings(entries()))
    for id, captures in by_id.items():
        assert list(resolve(f"@{id}").captures) == captures
    stored("seventh", begin_s=500)
    assert all(list(resolve(f"@{id}:2").captures) == captures for id, captures in by_id.items())


def test_an_error_says_that_there_are_only_mocks_and_replays() -> None:
    stored("second", tapped={"transport": "stdio", "mock": ["first"]})
    with pytest.raises(AddressError, match="the store has captures of mocks and replays only"):
        resolve("@")


def test_a_path_names_itself(paths: dict[str, str]) -> None:
    assert resolve(paths["old"]) == Address(captures=(paths["old"],))


def test_a_path_takes_rows(paths: dict[str, str]) -> None:
    assert resolve(f"{paths['old']}:2..4") == Address(captures=(paths["old"],), rows=(2, 4))


@pytest.mark.parametrize("path", ["C:\\two words\\x.mcpspy", "C:x.mcpspy", "\\\\server\\share\\x.mcpspy"])
def test_a_path_of_windows_takes_rows_after_its_drive_and_spaces(path: str, paths: dict[str, str]) -> None:
    Path(paths["old"]).rename(path)
    assert resolve(path) == Address(captures=(path,))
    assert resolve(f"{path}:7") == Address(captures=(path,), rows=(7, 7))
    assert resolve(f"{path}:7..20") == Address(captures=(path,), rows=(7, 20))


@pytest.mark.parametrize("name", ["x:7", "@", "@1", "weather", "-"])
def test_an_existing_file_wins_over_other_meanings_of_its_name(name: str, paths: dict[str, str]) -> None:
    Path(name).touch()
    assert resolve(name) == Address(captures=(name,))


def test_a_label_with_a_colon_wins_over_rows(paths: dict[str, str]) -> None:
    paths["odd"] = stored("fifth", label="weather:7")
    assert names(resolve("weather:7"), paths) == ["odd"]


def test_a_label_whose_newest_capture_has_no_message_names_the_newest_that_has(paths: dict[str, str]) -> None:
    assert names(resolve("weather"), paths) == ["weather"]


@pytest.mark.parametrize(
    ("facts", "wins"),
    [
        ({"begin_s": 1, "lasted_s": 0.02, "ended": False}, "real"),
        ({"begin_s": 1, "lasted_s": 0.02}, "real"),  # without a word of the server's
        ({"begin_s": 1, "lasted_s": 3}, "other"),
        ({"begin_s": 1, "lasted_s": 90, "ended": False}, "other"),
        ({"begin_s": 30, "lasted_s": 0.02, "ended": False}, "other"),
        ({"begin_s": 1, "lasted_s": 0.02, "ended": False, "parent": {"pid": 5, "name": "x", "start": 2}}, "other"),
    ],
)
def test_a_capture_that_its_client_dropped_at_once_does_not_hide_the_one_it_kept(facts: dict[str, Any], wins: str) -> None:
    known = {"real": stored("real", label="git", lasted_s=60), "other": stored("other", label="git", **facts)}
    assert resolve("git").captures == (known[wins],)


def test_of_many_captures_that_a_client_dropped_and_one_that_it_kept_the_label_names_that_one() -> None:
    kept = stored("kept", label="git", begin_s=0.5, lasted_s=60)
    for number in range(5):  # each later one is gone sooner
        stored(f"dropped{number}", label="git", begin_s=number / 4, lasted_s=2 - number / 3, ended=False)
    assert resolve("git").captures == (kept,)


def test_if_no_recording_has_a_message_the_newest_counts() -> None:
    path = stored("a", messages=0)
    assert resolve("@") == Address(captures=(path,))


def fails(what: str) -> str:
    with pytest.raises(AddressError) as caught:
        resolve(what)
    return str(caught.value)


def test_an_empty_store_says_where_it_looked_and_what_to_do(store: Path) -> None:
    error = fails("@")
    assert str(store / "captures") in error
    assert "mcpspy wrap" in error


def test_an_unknown_label_suggests_a_similar_one(paths: dict[str, str], store: Path) -> None:
    error = fails("whether")
    assert "is it weather?" in error
    assert str(store / "captures") in error


def test_an_unknown_label_without_a_similar_one_says_how_to_list_all(paths: dict[str, str]) -> None:
    assert "mcpspy list" in fails("xyz")


def test_a_recording_that_is_too_far_back_says_how_many_there_are(paths: dict[str, str]) -> None:
    assert "only 2 recordings" in fails("@2")


@pytest.mark.parametrize("what", ["no/such.mcpspy", "such.mcpspy", "no/such:7"])
def test_a_missing_path_is_reported(what: str, paths: dict[str, str]) -> None:
    assert "no such file" in fails(what)


@pytest.mark.parametrize("what", ["@:0", "@:7..3", ":0..4"])
def test_rows_count_from_one_upwards(what: str, paths: dict[str, str]) -> None:
    assert "count from 1" in fails(what)


def test_a_label_wins_over_a_folder_of_the_same_name(paths: dict[str, str]) -> None:
    Path("weather").mkdir()
    assert names(resolve("weather"), paths) == ["weather"]
    assert resolve("weather:7").rows == (7, 7)
    assert names(resolve("weather:7"), paths) == ["weather"]


def test_a_folder_is_no_capture(paths: dict[str, str], tmp_path: Path) -> None:
    assert "this is a folder" in fails(str(tmp_path))


@pytest.mark.parametrize("what", ["@:x", "@x", "@:7..", "a:b:c", "@:" + "9" * 5_000, "\x00", "\udc80", "a/\x00"])
def test_a_what_without_a_meaning_is_an_address_error(what: str, paths: dict[str, str]) -> None:
    assert fails(what)


def test_a_fifo_is_a_path(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert resolve(str(tmp_path / "fifo")) == Address(captures=(str(tmp_path / "fifo"),))
