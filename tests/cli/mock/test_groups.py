"""Which captures a mock that listens serves together, which live server goes on for which, and who is shown the login."""

from pathlib import Path

import pytest

from mcpspy.cli.mock.groups import Group, check, grouped, with_urls
from mcpspy.cli.run.options import SEVERAL, UsageError
from tests.conftest import ROOT

CAPTURES = ROOT / "captures"
MODEL, WEATHER, TIME = (str(CAPTURES / f"{name}.mcpspy") for name in ("agent-model", "agent-weather", "time"))
SERVERS = [Group("weather", is_model=False, paths=("a",)), Group("time", is_model=False, paths=("b",))]
RUN = [Group("model", is_model=True, paths=("c",)), *SERVERS]


def urls(groups: list[Group], *given: str) -> list[tuple[str, bool]]:
    """The live URL of each, and whether it is shown a login."""
    return [(one.url, one.gets_fields) for one in with_urls(groups, {"url": SEVERAL.join(given)})]


def test_captures_of_one_server_are_together_and_models_come_first(tmp_path: Path) -> None:
    again = tmp_path / "again.mcpspy"
    again.write_bytes(Path(TIME).read_bytes())
    assert grouped([TIME, WEATHER, MODEL, str(again)]) == [
        Group("model", is_model=True, paths=(MODEL,)),
        Group("time", is_model=False, paths=(TIME, str(again))),
        Group("weather", is_model=False, paths=(WEATHER,)),
    ]


def test_a_url_alone_is_that_of_the_model_or_of_the_only_server() -> None:
    assert urls(RUN, "http://live") == [("http://live", True), ("", True), ("", True)]
    assert urls(SERVERS[:1], "http://live") == [("http://live", True)]
    assert urls(SERVERS[:1], "weather=http://live") == [("http://live", True)]


def test_a_server_that_is_named_is_not_shown_the_login_of_another() -> None:
    assert urls(RUN, "http://live", "time=http://other") == [("http://live", True), ("", True), ("http://other", False)]


def test_a_url_with_a_query_is_no_label() -> None:
    assert urls(RUN, "http://live/?key=1")[0] == ("http://live/?key=1", True)


def test_of_several_servers_a_url_says_which() -> None:
    with pytest.raises(UsageError, match="of which server"):
        urls(SERVERS, "http://live")


@pytest.mark.parametrize(
    ("groups", "values", "command", "port"),
    [(RUN, {"label": "x"}, (), 0), (RUN, {}, ("server",), 0), (RUN[:1], {}, ("server",), 0), (RUN, {}, (), 65_534)],
)
def test_what_is_for_one_mock_is_refused_for_several(
    groups: list[Group], values: dict[str, str], command: tuple[str, ...], port: int
) -> None:
    with pytest.raises(UsageError):
        check(groups, values, command, port)
    check(SERVERS[:1], values, command, port)
