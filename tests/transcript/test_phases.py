"""The phases of a server that a tap started, and its start."""

import pytest

from mcpspy.transcript.phases import Lifecycle, PhaseName, lifecycles
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import MS, Dialogue, error, make_header, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, opened_session


def scene() -> Dialogue:
    """Return a dialogue with a server that is silent for 3 s, and a client that asks at once; each line takes 1 ms."""
    made = Dialogue().client(request(0, "initialize")).wait(2998)
    made.stderr(b"=== MCP Demo Server ===\n").wait(199).server(result(0)).client(notification())
    made.client(request(1, "tools/list")).server(result(1)).client(tool_call(2)).wait(10).server(result(2))
    return made


def course(made: Dialogue) -> Lifecycle:
    (lifecycle,) = lifecycles(made.transcript)
    return lifecycle


def milliseconds(made: Dialogue) -> dict[str, float | None]:
    """Return the duration of each phase."""
    return {str(phase.name): None if phase.duration_ns is None else phase.duration_ns / MS for phase in course(made).phases}


def test_there_are_five_phases() -> None:
    assert list(milliseconds(scene().closes())) == ["start", "handshake", "discovery", "calls", "shutdown"]


def test_each_phase_lasts_as_long_as_it_took() -> None:
    made = scene().client_leaves().wait(80).exits().ends()
    assert milliseconds(made) == {"start": 3000, "handshake": 201, "discovery": 1, "calls": 11, "shutdown": 81}


def test_the_start_up_lasts_from_the_spawn_to_the_first_answer() -> None:
    start_up = course(scene()).start_up
    assert start_up is not None
    assert (start_up.first_request_ns, start_up.first_log_ns, start_up.duration_ns) == (MS, 3000 * MS, 3200 * MS)


def test_a_server_that_logs_nothing_starts_until_it_answers() -> None:
    made = Dialogue().client(request(0, "initialize")).wait(40).server(result(0)).client(notification())
    assert milliseconds(made) == {"start": 42, "handshake": 1}


def test_a_server_starts_until_its_first_message_whatever_that_is() -> None:
    assert milliseconds(Dialogue().wait(7).server(b"Listening\n").client(request(0, "initialize")))["start"] == 8


def test_a_server_that_is_up_before_it_is_asked_has_started_by_then() -> None:
    made = Dialogue().stderr(b"ready\n").wait(40).client(request(0, "initialize")).wait(2).server(result(0))
    assert milliseconds(made) == {"start": 1, "handshake": 3}


def test_a_server_that_is_still_silent_is_starting() -> None:
    assert milliseconds(Dialogue().client(request(0, "initialize"))) == {"start": None, "handshake": None}


def test_what_has_not_ended_has_no_duration() -> None:
    assert milliseconds(scene().client_leaves())["shutdown"] is None


def test_a_phase_counts_the_requests_in_it() -> None:
    counts = {phase.name: phase.exchanges for phase in course(scene().closes()).phases}
    assert counts == {
        PhaseName.START: 0, PhaseName.HANDSHAKE: 1, PhaseName.DISCOVERY: 1, PhaseName.CALLS: 1, PhaseName.SHUTDOWN: 0,
    }  # fmt: skip


def test_a_client_that_says_all_at_once_has_a_handshake_until_it_is_answered() -> None:
    made = Dialogue().client(request(0, "initialize")).client(notification()).wait(500).stderr(b"up\n").server(result(0))
    assert milliseconds(made)["handshake"] == 1


def test_a_probe_that_fails_belongs_to_the_handshake() -> None:
    made = Dialogue().client(request(0, "server/discover")).server(error(0)).client(request(1, "initialize")).server(result(1))
    assert course(made).phases[1].exchanges == 2


def test_a_list_that_is_asked_for_after_calls_belongs_to_the_calls() -> None:
    made = scene().client(request(3, "tools/list")).server(result(3))
    assert {phase.name: phase.exchanges for phase in course(made).phases}[PhaseName.CALLS] == 2


def test_a_server_that_dies_has_no_shutdown() -> None:
    assert "shutdown" not in milliseconds(scene().server_closes_stdout().exits(1).ends())


def test_a_server_that_dies_at_once_has_but_a_start() -> None:
    assert milliseconds(Dialogue().wait(20).exits(1)) == {"start": 21}


@pytest.mark.parametrize("signal", ["SIGUSR1", "SIGUSR2"])
def test_a_signal_that_is_passed_on_ends_nothing(signal: str) -> None:
    assert "shutdown" not in milliseconds(scene().note("signal", signal))


def test_a_signal_that_ends_the_server_begins_the_shutdown() -> None:
    assert milliseconds(scene().note("signal").exits())["shutdown"] == 1


def test_over_http_there_are_the_phases_of_the_session() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    for id, method in enumerate(("tools/list", "tools/call", "ping", "ping"), 1):
        traffic.post(request(id, method), session="s").answer(200, result(id))
    (lifecycle,) = lifecycles(traffic.transcript)
    phases = [(str(phase.name), phase.exchanges) for phase in lifecycle.phases]
    assert phases == [("handshake", 1), ("discovery", 1), ("calls", 1), ("heartbeat", 2)]
    assert lifecycle.start_up is None


def test_pings_before_a_call_are_no_heartbeat() -> None:
    made = scene().client(request(3, "ping")).server(result(3)).client(tool_call(4)).server(result(4))
    assert list(milliseconds(made)) == ["start", "handshake", "discovery", "calls"]


def test_pings_of_either_side_after_the_last_call_are_a_heartbeat() -> None:
    made = (
        scene()
        .server(request("s", "ping"))
        .client(result("s"))
        .wait(8)
        .client(notification("ping"))
        .server(notification("pong"))
    )
    assert milliseconds(made)["heartbeat"] == 11


def test_servers_have_phases_of_their_own() -> None:
    records = [Dialogue(header=make_header(label=name)).client(request(0, "initialize")).records for name in "ab"]
    assert [len(lifecycle.phases) for lifecycle in lifecycles(transcribe(*records))] == [2, 2]
