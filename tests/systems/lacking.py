"""The tests that cannot pass on Windows or macOS, by what these have not; and what tests do otherwise there.

`LACKING` and `LACKING_ON_MAC` give a reason for a file, or for parts of the names of its tests. tests/conftest.py skips them where
the system is played.
"""

import os
import signal
import sys

TESTED_SYSTEM = os.environ.get("MCPSPY_TESTED_SYSTEM") or sys.platform
WINDOWS = TESTED_SYSTEM == "win32"

END_SIGNAL = signal.SIGINT if WINDOWS else signal.SIGTERM
"""The signal by which a user ends mcpspy and lets it end what it began: Ctrl-C where others ask nobody."""

UNIX_SOCKETS = "Python has no UNIX sockets on Windows"
SIGNALS = "Windows has no signals for other processes: what ends one does not ask it, and leaves no signal's name"
NO_HANG_UP = "nothing shows on Windows that a pipe has lost its reader before somebody writes to it, nor that a client is gone"
NO_TREE = "Windows lists processes for programs alone: what a server left is not known once it has ended"
BY_HAND = "this drives a pump by hand, and not the threads that read and write pipes on Windows"
TERMINAL = "terminals of this kind are not on Windows"
DESCRIPTORS = "FIFOs, shared or non-blocking descriptors, and those above 2 that are inherited, are not on Windows"
INSIDE = "this looks inside at poll, which is not on Windows"
TCP_INFO = "only Linux tells what a peer has acknowledged"
TLS = "Python's TLS reports a reset as an end, and nothing else tells of it on Windows"
RLIMIT = "there is no limit of descriptors on Windows but that of select"

NO_QUESTION = "Windows is not asked whether a process exists, since os.kill would end it: what a killed mcpspy left stays there"
HTTP_SERVERS = "mcpspy wrap changes no HTTP servers on Windows"
UNPLAYED = "this starts mcpspy without what plays Windows"

LACKING: dict[str, dict[str, str] | str] = {
    "live/stdio/test_control.py": UNIX_SOCKETS,
    "live/stdio/test_pump.py": BY_HAND,
    "live/http/test_controllers.py": UNIX_SOCKETS,
    "live/http/test_intercepts.py": {"held_message_is_let_go": UNIX_SOCKETS, "controller_takes_hold": UNIX_SOCKETS},
    "live/http/test_duplicates.py": {"controller": UNIX_SOCKETS},
    "live/stdio/test_restarts.py": UNIX_SOCKETS,
    "live/stdio/test_intercepts.py": {
        "test_the_capture_has_what_was_received_and_what_was_sent": BY_HAND,
        "test_what_is_delayed_is_sent_before_the_end": BY_HAND,
        "test_a_cancellation_does_not_overtake_its_request": BY_HAND,
        "test_nothing_more_is_read_while_much_is_delayed": BY_HAND,
        "test_a_message_that_is_too_long_passes_and_a_note_says_so": BY_HAND,
        "test_a_server_is_killed": SIGNALS,
    },
    "live/stdio/test_kills.py": {
        "test_a_signal_at_any_moment_of_the_start": SIGNALS,
        "test_when_the_server_is_killed": SIGNALS,
        "test_a_server_that_was_killed_before_it_ran": SIGNALS,
        "test_when_the_client_is_killed_nothing_stays": NO_HANG_UP,
    },
    "live/stdio/test_shutdown.py": {
        "signal": SIGNALS,
        "test_a_stubborn_server_and_its_grandchild": SIGNALS,
        "test_what_was_sent_to_whom_is_noted": SIGNALS,
        "test_a_client_that_dies_while": NO_HANG_UP,
        "test_a_client_that_dies_after": NO_HANG_UP,
        "test_a_grandchild_that_the_server_leaves": NO_TREE,
        "left_behind": NO_TREE,
        "test_a_watchdog": NO_TREE,
        "test_a_daemon": NO_TREE,
    },
    "live/stdio/test_terminal.py": TERMINAL,
    "platform/test_descriptors.py": {
        "fifo": DESCRIPTORS,
        "shared": DESCRIPTORS,
        "test_one_socket": UNIX_SOCKETS,
        "holders": DESCRIPTORS,
        "test_the_server_gets_pipes_and_nothing_else": DESCRIPTORS,
        "test_a_descriptor_that_the_client_means": DESCRIPTORS,
        "test_an_output_that_was_never_read": NO_HANG_UP,
    },
    "platform/test_watch.py": {
        "test_a_reader_that_goes_away": NO_HANG_UP,
        "test_a_pipe_that_has_something": INSIDE,
        "inotify": "inotify is on Linux alone",
        "test_waiting_costs_no_time": "without inotify, files are looked at ten times a second",
    },
    "live/http/test_half_closed.py": {
        "test_a_client_that_closes_its_half_gets_its_answer": TCP_INFO,
        "test_a_client_that_takes_its_answer": TCP_INFO,
        "test_a_client_that_left_before_its_answer": TCP_INFO,
        "test_a_server_that_does_not_see_the_end_of_its_client": "select shows no hang-up of a connection that nobody reads",
        "test_a_client_behind_a_relay_that_leaves": "this counts sockets, and what wakes a tap is two of them on Windows",
    },
    "live/stdio/test_disk.py": {"a_fifo": DESCRIPTORS},
    "live/http/test_disconnects.py": {"test_a_signal_ends": SIGNALS},
    "live/http/test_kills.py": {"test_a_signal_in_any_phase": SIGNALS, "test_a_tap_that_is_to_outlive_its_terminal": SIGNALS},
    "live/http/test_pressure.py": {"test_a_tap_takes_more_connections_than_its_user": RLIMIT},
    "live/http/test_tls.py": {"test_an_upstream_that_dies_within_an_event_is_seen_by_the_client[reset]": TLS},
    "live/http/test_cost.py": {"descriptor": RLIMIT, "test_a_client_is_let_in_only_if": RLIMIT},
    "live/mock/test_stdio.py": {"test_a_signal_ends": SIGNALS, "test_it_ends_when_nobody_reads_it": NO_HANG_UP},
    "cli/show/test_follow.py": {"test_a_reader_that_goes_away": NO_HANG_UP},
    "cli/replay/test_replay.py": {"test_a_replay_that_is_stopped": SIGNALS},
    "cli/test_wrap.py": {
        "test_all_servers_of_all_clients": HTTP_SERVERS,
        "test_a_file_of_every_client": HTTP_SERVERS,
        "test_a_dry_run_changes_nothing": HTTP_SERVERS,
        "test_reserved_ports_that_cannot": HTTP_SERVERS,
        "test_the_reserved_ports_are_private": HTTP_SERVERS,
        "test_the_ports_that_are_shown": HTTP_SERVERS,
        "test_a_server_that_is_logged_in_to": HTTP_SERVERS,
        "test_secrets_in_arguments_and_urls": HTTP_SERVERS,
        "test_several_that_wrap_at_once": HTTP_SERVERS,
        "test_several_files_are_one_list": HTTP_SERVERS,
        "test_some_servers_are_chosen": HTTP_SERVERS,
        "test_ended_at_a_question": HTTP_SERVERS,
        "a_fifo": DESCRIPTORS,
        "test_what_a_killed_one_left": NO_QUESTION,
        "test_the_own_server_is_added": UNPLAYED,
        "test_the_own_server_whose_mcpspy_is_gone": UNPLAYED,
    },
    "live/upstream/test_stdio.py": {
        "gets_sigterm": SIGNALS,
        "test_what_a_server_leaves": NO_TREE,
        "test_it_is_in_a_session": "Windows has no sessions of processes",
    },
    "live/mock/test_pass_through.py": {
        "test_a_signal_ends": SIGNALS,
        "test_what_a_server_writes_to_its_stderr_at_its_end": SIGNALS,
    },
}


MYPY = "mypy ends with an error in a process that plays another system"
SYSTEMD = "the service of mcpspy is one of systemd, which macOS does not have"

LACKING_ON_MAC: dict[str, dict[str, str] | str] = {
    "cli/test_service.py": SYSTEMD,
    "test_api.py": {"test_the_python_of_every_page_passes_mypy_strict": MYPY},
    "cli/test_screens.py": {
        "test_the_status_of_servers_looks_as_it_did": SYSTEMD,
    },
    "cli/test_wrap.py": {
        "test_a_dry_run_changes_nothing_and_says_what_would_change": SYSTEMD,
        "test_a_file_of_every_client_is_wrapped_shown_and_unwrapped": SYSTEMD,
        "test_a_server_that_is_logged_in_to_is_wrapped_if_that_is_meant": SYSTEMD,
        "test_all_servers_of_all_clients_are_wrapped_and_unwrapped": SYSTEMD,
        "test_ended_at_a_question_nothing_is_changed": SYSTEMD,
        "test_reserved_ports_that_cannot_be_understood_hide_no_change": SYSTEMD,
        "test_secrets_in_arguments_and_urls_are_not_printed": SYSTEMD,
        "test_several_files_are_one_list_and_one_question": SYSTEMD,
        "test_several_that_wrap_at_once_wrap_everything_once": SYSTEMD,
        "test_some_servers_are_chosen_one_by_one": SYSTEMD,
        "test_the_ports_that_are_shown_are_those_that_the_servers_get": SYSTEMD,
        "test_the_reserved_ports_are_private": SYSTEMD,
    },
    "cli/test_wrapped_before.py": {
        "test_ports_that_change_move_to_the_file_of_now_and_the_others_stay": SYSTEMD,
        "test_the_status_knows_each_server_and_its_port": SYSTEMD,
        "test_unwrap_gives_every_byte_back": SYSTEMD,
    },
}


def reason(path: str, name: str) -> str:
    """Return the reason why a test cannot pass on this system, Windows or macOS; empty if it can. `path` is relative to tests/."""
    if WINDOWS and "sockets" in name.partition("[")[2]:
        return UNIX_SOCKETS
    row = (LACKING if WINDOWS else LACKING_ON_MAC).get(path, "")
    if isinstance(row, str):
        return row
    return next((why for part, why in row.items() if part in name), "")
