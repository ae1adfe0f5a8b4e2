"""Tests of which captures, live servers and logins `mcpspy mock --listen` puts together."""

from pathlib import Path

import pytest

from mcpspy.cli.capture_options import UsageError
from mcpspy.cli.mock.http import CaptureGroup, check, grouped, with_urls
from mcpspy.cli.mock.options import MockOptions
from tests.conftest import ROOT

CAPTURES = ROOT / "captures"
MODEL, WEATHER, TIME = (str(CAPTURES / f"{name}.mcpspy") for name in ("agent-model", "agent-weather", "time"))
SERVERS = [CaptureGroup("weather", is_model=False, paths=("a",)), CaptureGroup("time", is_model=False, paths=("b",))]
RUN = [CaptureGroup("model", is_model=True, paths=("c",)), *SERVERS]


def urls(groups: list[CaptureGroup], *urls: str) -> list[tuple[str, bool]]:
    """Return the live URL of each, and whether it receives a login."""
    return [(group.url, group.shows_login) for group in with_urls(groups, urls)]


def test_captures_of_one_server_are_together_and_models_come_first(tmp_path: Path) -> None:
    again = tmp_path / "again.mcpspy"
    again.write_bytes(Path(TIME).read_bytes())
    assert grouped([TIME, WEATHER, MODEL, str(again)]) == [
        CaptureGroup("model", is_model=True, paths=(MODEL,)),
        CaptureGroup("time", is_model=False, paths=(TIME, str(again))),
        CaptureGroup("weather", is_model=False, paths=(WEATHER,)),
    ]


def test_a_url_alone_is_that_of_the_model_or_of_the_only_server() -> None:
    assert urls(RUN, "http://live") == [("http://live", True), ("", True), ("", True)]
    assert urls(SERVERS[:1], "http://live") == [("http://live", True)]
    assert urls(SERVERS[:1], "weather=http://live") == [("http://live", True)]


def test_a_server_that_is_named_is_not_shown_the_login_of_another() -> None:
    assert urls(RUN, "http://live", "time=http://other") == [("http://live", True), ("", True), ("http://other", False)]


def test_a_url_with_a_query_is_no_label() -> None:
    assert urls(RUN, "http://live/?key=1")[0] == ("http://live/?key=1", True)


def test_with_several_servers_a_url_needs_a_label() -> None:
    with pytest.raises(UsageError, match="for which server"):
        urls(SERVERS, "http://live")


LABEL, COMMAND, NONE = MockOptions((), label="x"), MockOptions((), command=("server",)), MockOptions(())


@pytest.mark.parametrize(
    ("groups", "options", "port"), [(RUN, LABEL, 0), (RUN, COMMAND, 0), (RUN[:1], COMMAND, 0), (RUN, NONE, 65_534)]
)
def test_options_for_one_mock_are_refused_for_several(groups: list[CaptureGroup], options: MockOptions, port: int) -> None:
    with pytest.raises(UsageError):
        check(groups, options, port)
    check(SERVERS[:1], options, port)
