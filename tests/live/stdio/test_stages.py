"""The stages of a server's end: what is sent, when, and that everything is over within the 2 s that clients give."""

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live.stdio.shutdown import GRACE_NS, LAST_NS, TERM_NS, Shutdown

CLIENT_LIMIT_NS = 2_000_000_000
BEGIN_NS = 10**9


def course(shutdown: Shutdown) -> list[tuple[int, str]]:
    """Return what a stubborn server is sent from now on, with the time of each, until it is given up."""
    sent = []
    while shutdown.due_ns:
        at_ns = shutdown.due_ns
        sent.append((at_ns, shutdown.due(at_ns)))
    return sent


def test_nothing_is_due_while_all_is_calm() -> None:
    shutdown = Shutdown()
    assert (shutdown.due_ns, shutdown.under_way, shutdown.due(10**18)) == (0, False, "")


def test_a_server_whose_client_is_gone_gets_time_then_term_then_kill() -> None:
    shutdown = Shutdown()
    shutdown.on_client_gone(BEGIN_NS)
    term_ns, kill_ns = BEGIN_NS + GRACE_NS, BEGIN_NS + GRACE_NS + TERM_NS
    assert course(shutdown) == [(term_ns, "SIGTERM"), (kill_ns, "SIGKILL"), (kill_ns + LAST_NS, "")]


def test_a_server_that_was_signalled_gets_time_then_kill() -> None:
    shutdown = Shutdown()
    shutdown.on_signal(BEGIN_NS, "SIGTERM", again=False)
    assert course(shutdown)[0] == (BEGIN_NS + TERM_NS, "SIGKILL")


def test_the_same_signal_again_kills_at_once() -> None:
    shutdown = Shutdown()
    shutdown.on_signal(BEGIN_NS, "SIGINT", again=False)
    shutdown.on_signal(BEGIN_NS + 5, "SIGINT", again=True)
    assert course(shutdown)[0] == (BEGIN_NS + 5, "SIGKILL")


def test_another_signal_gives_no_more_time() -> None:
    shutdown = Shutdown()
    shutdown.on_signal(BEGIN_NS, "SIGINT", again=False)
    shutdown.on_signal(BEGIN_NS + 5, "SIGTERM", again=False)
    assert course(shutdown)[0] == (BEGIN_NS + TERM_NS, "SIGKILL")


def test_what_a_server_leaves_behind_has_half_a_second_to_end_by_itself() -> None:
    shutdown = Shutdown()
    shutdown.on_leftovers(BEGIN_NS)
    shutdown.on_leftovers(BEGIN_NS + 5)
    assert course(shutdown)[0] == (BEGIN_NS + GRACE_NS, "SIGTERM")


def test_what_outlives_a_server_whose_client_is_gone_has_the_rest_of_its_time() -> None:
    shutdown = Shutdown()
    shutdown.on_client_gone(BEGIN_NS)
    shutdown.on_leftovers(BEGIN_NS + 5)
    assert course(shutdown)[0] == (BEGIN_NS + GRACE_NS, "SIGTERM")


def test_what_outlives_a_server_that_was_signalled_gets_term_too_and_no_more_time() -> None:
    shutdown = Shutdown()
    shutdown.on_signal(BEGIN_NS, "SIGTERM", again=False)
    shutdown.on_leftovers(BEGIN_NS + 5)
    shutdown.on_leftovers(BEGIN_NS + 6)
    assert course(shutdown)[:2] == [(BEGIN_NS + 5, "SIGTERM"), (BEGIN_NS + TERM_NS, "SIGKILL")]


def test_what_got_term_gets_it_once() -> None:
    shutdown = Shutdown()
    shutdown.on_client_gone(BEGIN_NS)
    shutdown.due(shutdown.due_ns)
    shutdown.on_leftovers(BEGIN_NS + GRACE_NS + 5)
    assert course(shutdown)[0] == (BEGIN_NS + GRACE_NS + TERM_NS, "SIGKILL")


def test_nothing_comes_before_it_is_due() -> None:
    shutdown = Shutdown()
    shutdown.on_client_gone(BEGIN_NS)
    assert shutdown.due(shutdown.due_ns - 1) == ""


def test_the_first_reason_is_the_reason() -> None:
    shutdown = Shutdown()
    shutdown.on_client_gone(BEGIN_NS)
    shutdown.on_signal(BEGIN_NS + 1, "SIGTERM", again=False)
    assert shutdown.why == "client gone"


EVENTS = st.lists(st.tuples(st.integers(0, CLIENT_LIMIT_NS), st.sampled_from(["gone", "TERM", "INT", "left"])), min_size=1)


@given(EVENTS)
def test_whatever_happens_in_whatever_order_all_is_over_before_the_client_kills_us(events: list[tuple[int, str]]) -> None:
    shutdown = Shutdown()
    first_ns = min(at_ns for at_ns, _ in events) + BEGIN_NS
    for at_ns, event in sorted((at_ns + BEGIN_NS, event) for at_ns, event in events):
        while shutdown.due_ns and shutdown.due_ns <= at_ns:
            shutdown.due(shutdown.due_ns)
        if event == "gone":
            shutdown.on_client_gone(at_ns)
        elif event == "left":
            shutdown.on_leftovers(at_ns)
        else:
            shutdown.on_signal(at_ns, event, again=False)
    end_ns = max((at_ns for at_ns, _ in course(shutdown)), default=first_ns)
    assert shutdown.stage == "given up"
    assert end_ns - first_ns < CLIENT_LIMIT_NS
