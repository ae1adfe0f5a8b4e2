"""Conditions of `--until`, and the captures that meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import ReplayError
from mcpspy.records import Note
from mcpspy.replay.client.player import Report
from mcpspy.replay.condition import condition_of
from tests.transcript.dialogue import Dialogue, error, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, modern

if TYPE_CHECKING:
    from mcpspy.replay.condition import Occurrence


def held(written: str, live: Dialogue | Traffic, report: Report | None = None) -> Occurrence | None:
    return condition_of(written).occurrence(live.transcript, report or Report())


def half_answered() -> Dialogue:
    """Return a dialogue in which row 1 is answered, and row 2 is not."""
    return Dialogue().client(request(1)).server(result(1)).client(tool_call(2))


@pytest.mark.parametrize(
    ("live", "row", "what"),
    [
        (half_answered().exits(None, "SIGSEGV"), 2, "the server was killed by SIGSEGV"),
        (half_answered().exits(0), 2, "the server exited with 0"),
        (half_answered().client_leaves().exits(3), 2, "the server exited with 3 after its input had ended"),
        (Dialogue().client(notification("x")).exits(1), None, "the server exited with 1"),
    ],
    ids=["killed", "gone", "failed at its end", "between calls"],
)
def test_a_server_that_ends_by_itself_crashes(live: Dialogue, row: int | None, what: str) -> None:
    assert held("crash", live) == (what, row)


@pytest.mark.parametrize(
    "live",
    [
        half_answered().client_leaves().exits(0),
        half_answered().client_leaves().add(Note(at_ns=9_000_000, topic="escalation", text="")).exits(None, "SIGTERM"),
        half_answered(),
        Dialogue().exits(None, error="command not found"),
    ],
    ids=["left", "was ended", "lives", "never began"],
)
def test_a_server_that_was_left_does_not(live: Dialogue) -> None:
    assert held("crash", live) is None


def test_what_http_refused_is_not_what_a_server_died_of() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).answer(status=500)
    traffic.post(modern(2))
    assert held("crash", traffic, Report(lost="connection refused")) == ("the server is gone: connection refused", 2)


def test_a_url_where_nobody_listens_any_more_is_a_crash() -> None:
    traffic = Traffic()
    traffic.post(modern(1))
    assert held("crash", traffic, Report(lost="connection refused")) == ("the server is gone: connection refused", 1)
    assert held("crash", traffic) is None


def test_a_request_that_is_late_is_a_timeout() -> None:
    assert held("timeout", half_answered(), Report(sent={7: "1", 9: "2"}, late=[9])) == (
        "a request was not answered in time",
        2,
    )
    assert held("timeout", half_answered(), Report(sent={7: "1", 9: "2"})) is None


@pytest.mark.parametrize(("written", "happens"), [("error", True), ("error:-32602", True), ("error:-32603", False)])
def test_an_error_is_meant_by_its_code(written: str, *, happens: bool) -> None:
    live = Dialogue().client(request(1)).server(result(1)).client(request(2)).server(error(2, -32602))
    assert held(written, live) == (("error -32602: no", 2) if happens else None)


def test_an_error_that_answers_nothing_counts_and_the_client_s_own_does_not() -> None:
    assert held("error", Dialogue().server(error(None, -32700))) is not None
    assert held("error", Dialogue().server(request(1, "roots/list")).client(error(1))) is None


def test_a_failed_probe_is_no_error() -> None:
    probes = Dialogue().client(
        request(1, "server/discover", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
    )
    live = probes.server(error(1)).client(request(2, "initialize", {"protocolVersion": "2025-11-25"})).server(result(2))
    assert held("error", live) is None


def test_a_rule_is_meant_by_name_glob_and_family() -> None:
    live = half_answered().exits(None, "SIGSEGV")
    for written in ("rule:server-died", "rule:server-*", "rule:transport", "rule:stdout-noise,server-died"):
        occurrence = held(written, live)
        assert occurrence is not None
        assert occurrence.what.startswith("server-died: ")
    assert held("rule:stdout-noise", live) is None


def test_a_rule_that_only_check_follows_counts_too() -> None:
    live = (
        Dialogue().client(request(1)).server(result(1, {"tools": []})).client(tool_call(2, "forecast")).server(error(2, -32602))
    )
    assert held("rule:unknown-tool", live) is not None


@pytest.mark.parametrize(("written", "happens"), [("status:500", True), ("status:5xx", True), ("status:404", False)])
def test_a_status_is_that_of_http(written: str, *, happens: bool) -> None:
    traffic = Traffic()
    traffic.post(modern(1)).answer(status=500)
    assert (held(written, traffic) is not None) is happens


def test_a_text_is_looked_for_in_what_the_server_says() -> None:
    live = Dialogue().client(request(1, params={"q": "boom"})).server(result(1, {"text": "bang"}))
    assert held('"bang"', live) is not None
    assert held('"boom"', live) is None


def test_any_other_filter_is_held_against_rows() -> None:
    live = Dialogue().client(tool_call(1, "a")).server(result(1)).client(tool_call(2, "b")).server(error(2))
    occurrence = held("tool:b status:failed", live)
    assert occurrence is not None
    assert occurrence.row == 2
    assert held("tool:a status:failed", live) is None


def test_a_filter_may_ask_for_findings() -> None:
    assert held("rule:server-died or rule:unanswered-request", half_answered().wait(9000).closes()) is not None


@pytest.mark.parametrize("written", ["crahs", "", "error:x", "rule:", "rule:no-such", "status:", "(", "error:-32602 crash"])
def test_what_says_nothing_is_refused_and_told_what_there_is(written: str) -> None:
    with pytest.raises(ReplayError) as caught:
        condition_of(written)
    assert str(caught.value).startswith(f"--until {written}: ")


@pytest.mark.parametrize("written", ["crahs", "error:x"])
def test_a_word_that_is_none_lists_those_that_are(written: str) -> None:
    with pytest.raises(ReplayError, match="It takes error, error:CODE, crash, timeout, rule:NAME"):
        condition_of(written)
