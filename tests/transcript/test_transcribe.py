"""Transcripts as a whole: lanes, clocks, ends, and the same result however the records come."""

from itertools import chain, zip_longest
from typing import Any

import pytest

from mcpspy.records import Close, Damage, End, Exit, Note, Record, Spawn, Unknown
from mcpspy.transcript.model import ChannelEvent, Exchange, Log, Outcome, Row, UnpairedMessage
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import (
    MS,
    Dialogue,
    cancelled,
    make_header,
    notification,
    progress,
    request,
    result,
    spelled,
    tool_call,
)


def initialize(name: str = "claude-ai") -> dict[str, Any]:
    return request(0, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": name, "version": "1"}})


# --- Events ---


def test_what_happens_to_the_channel_is_an_event() -> None:
    dialogue = Dialogue().note("signal").closes()
    kinds = [type(row.record) for row in dialogue.transcript.rows if isinstance(row, ChannelEvent)]
    assert kinds == [Spawn, Note, Close, Close, Exit, End]


def test_a_record_of_an_unknown_kind_is_an_event() -> None:
    dialogue = Dialogue().add(Unknown(at_ns=5, kind="weather"))
    event = dialogue.transcript.rows[-1]
    assert isinstance(event, ChannelEvent)
    assert isinstance(event.record, Unknown)


def test_stderr_is_in_the_order_of_time() -> None:
    dialogue = Dialogue().client(request(1)).stderr(b"working\n").client(request(2))
    assert [type(row) for row in dialogue.transcript.rows[1:]] == [Exchange, Log, Exchange]


# --- What a feed returns ---


def fed(transcriber: Transcriber, dialogue: Dialogue, capture: int = 0) -> list[Row]:
    """Return the rows that the last record changes."""
    rows: list[Row] = []
    for record in dialogue.records:
        rows = list(transcriber.feed(record, capture))
    return rows


def test_a_request_brings_its_exchange() -> None:
    transcriber = Transcriber()
    assert fed(transcriber, Dialogue().client(request(1))) == transcriber.transcript.exchanges


def test_an_answer_brings_the_changed_exchange() -> None:
    transcriber = Transcriber()
    assert fed(transcriber, Dialogue().client(request(1)).server(result(1))) == transcriber.transcript.exchanges


def test_progress_brings_the_changed_exchange() -> None:
    transcriber = Transcriber()
    assert fed(transcriber, Dialogue().client(tool_call(1, token=1)).server(progress(1))) == transcriber.transcript.exchanges


def test_a_cancellation_brings_the_changed_exchange() -> None:
    transcriber = Transcriber()
    assert fed(transcriber, Dialogue().client(tool_call(1)).client(cancelled(1))) == transcriber.transcript.exchanges


def test_the_servers_exit_brings_what_it_left_unanswered() -> None:
    transcriber = Transcriber()
    rows = fed(transcriber, Dialogue().client(request(1)).client(request(2)).server(result(2)).exits())
    assert [row.outcome for row in rows if isinstance(row, Exchange)] == [Outcome.UNANSWERED]


def test_requests_that_share_an_id_are_all_left_unanswered() -> None:
    transcriber = Transcriber()
    rows = fed(transcriber, Dialogue().client(request(1)).client(request(1)).exits())
    assert [row.outcome for row in rows if isinstance(row, Exchange)] == [Outcome.UNANSWERED, Outcome.UNANSWERED]


def test_the_close_brings_what_is_pending() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)))
    assert transcriber.close() == transcriber.transcript.exchanges


def test_closing_twice_brings_nothing_new() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)))
    transcriber.close()
    assert transcriber.close() == []


def test_one_capture_can_be_closed_while_the_other_goes_on() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue("one").client(request(1)), capture=0)
    fed(transcriber, Dialogue("other").client(request(1)), capture=1)
    transcriber.close(capture=0)
    assert [exchange.outcome for exchange in transcriber.transcript.exchanges] == [Outcome.UNANSWERED, Outcome.PENDING]


# --- Ends ---


def test_while_a_capture_grows_a_request_is_pending() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)))
    assert transcriber.transcript.exchanges[0].outcome is Outcome.PENDING


def test_when_the_server_closes_stdout_the_client_is_not_answered() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)).server(request(1)).server_closes_stdout())
    assert [exchange.outcome for exchange in transcriber.transcript.exchanges] == [Outcome.UNANSWERED, Outcome.PENDING]


def test_when_the_client_closes_stdin_the_server_is_not_answered() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)).server(request(1)).client_leaves())
    assert [exchange.outcome for exchange in transcriber.transcript.exchanges] == [Outcome.PENDING, Outcome.UNANSWERED]


def test_a_stream_without_a_reader_may_still_bring_answers() -> None:
    dialogue = Dialogue().client(request(1)).add(Close(at_ns=9, stream=1, by="client", how="broken"))
    transcriber = Transcriber()
    fed(transcriber, dialogue)
    assert transcriber.transcript.exchanges[0].outcome is Outcome.PENDING


def test_the_end_of_stderr_ends_nothing() -> None:
    transcriber = Transcriber()
    fed(transcriber, Dialogue().client(request(1)).add(Close(at_ns=9, stream=2, by="server", how="eof")))
    assert transcriber.transcript.exchanges[0].outcome is Outcome.PENDING


def test_an_answer_drained_after_the_exit_is_an_answer() -> None:
    assert Dialogue().client(request(1)).exits().server(result(1)).exchange.outcome is Outcome.OK


def test_an_answered_exchange_is_over() -> None:
    assert Dialogue().client(request(1)).server(result(1)).exchange.over


def test_with_its_end_a_capture_is_complete() -> None:
    (source,) = Dialogue().closes().transcript.captures
    assert (source.complete, source.closed, source.exit and source.exit.code) == (True, True, 0)


@pytest.mark.parametrize(
    "dialogue", [Dialogue(), Dialogue().gap().closes(), Dialogue().damage().closes(), Dialogue().closes().damage()]
)
def test_without_its_end_or_with_a_loss_it_is_not(dialogue: Dialogue) -> None:
    assert not dialogue.transcript.captures[0].complete


def test_a_line_edited_by_hand_loses_nothing() -> None:
    (source,) = Dialogue().damage("edited").closes().transcript.captures
    assert (source.complete, source.damages) == (True, 0)


def test_a_capture_of_damage_only_is_a_capture_of_the_transcript() -> None:
    transcript = transcribe([Damage(at_ns=0, line=1, offset=0, reason="torn", text="the file is empty")])
    assert (len(transcript.captures), transcript.captures[0].header, transcript.exchanges) == (1, None, [])


def test_no_records_make_an_empty_transcript() -> None:
    assert spelled(transcribe()) == spelled(transcribe([])) == ("Transcript", [], [], [], {}, None, {})


# --- Lanes ---


def lanes(*dialogues: Dialogue) -> list[tuple[str, str]]:
    return [(lane.name, lane.role) for lane in transcribe(*(dialogue.records for dialogue in dialogues)).lanes]


def test_a_server_is_named_by_its_label() -> None:
    assert lanes(Dialogue("weather"))[1:] == [("weather", "server")]


def test_servers_with_one_label_are_told_apart() -> None:
    assert [name for name, role in lanes(Dialogue("weather"), Dialogue("weather")) if role == "server"] == [
        "weather",
        "weather 2",
    ]


def test_a_number_that_is_taken_is_not_given_again() -> None:
    dialogues = [Dialogue("a"), Dialogue("a 2"), Dialogue("a")]
    assert [name for name, role in lanes(*dialogues) if role == "server"] == ["a", "a 2", "a 3"]


def test_a_client_is_named_by_its_process() -> None:
    assert lanes(Dialogue())[0] == ("claude", "client")


def test_a_client_says_its_name_in_initialize() -> None:
    assert lanes(Dialogue().client(initialize()))[0] == ("claude-ai", "client")


def test_a_modern_client_says_its_name_with_every_request() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "modern"}}}
    assert lanes(Dialogue().client(request(1, "tools/list", meta)))[0] == ("modern", "client")


def test_what_a_server_sends_names_no_client() -> None:
    assert lanes(Dialogue().server(initialize("a liar")))[0] == ("claude", "client")


@pytest.mark.parametrize("info", [None, "x", {}, {"name": 5}, {"name": ""}, []])
def test_a_client_that_says_no_name_keeps_that_of_its_process(info: object) -> None:
    assert lanes(Dialogue().client(request(0, "initialize", {"clientInfo": info})))[0] == ("claude", "client")


def test_captures_with_one_parent_process_share_the_client() -> None:
    dialogues = [Dialogue("weather").client(initialize()), Dialogue("files")]
    assert lanes(*dialogues) == [("claude-ai", "client"), ("weather", "server"), ("files", "server")]


def test_a_process_id_used_again_is_another_client() -> None:
    dialogues = [Dialogue(header=make_header(parent={"pid": 7, "name": "claude", "start": start})) for start in (3, 4)]
    assert [name for name, role in lanes(*dialogues) if role == "client"] == ["claude", "claude 2"]


def test_without_a_parent_every_capture_has_a_client_of_its_own() -> None:
    dialogues = [Dialogue(header=make_header(parent={})) for _ in range(2)]
    assert [name for name, role in lanes(*dialogues) if role == "client"] == ["client", "client 2"]


def test_a_parent_that_is_no_process_does_no_harm() -> None:
    assert lanes(Dialogue(header=make_header(parent={"pid": [1], "name": {"a": 1}})))[0][1] == "client"


# --- Clocks ---


def test_captures_of_one_boot_are_compared_by_the_monotonic_clock() -> None:
    first = Dialogue("one", header=make_header(label="one", monotonic_ns=100 * MS, wall_ns=10**18))
    other = Dialogue("other", header=make_header(label="other", monotonic_ns=130 * MS, wall_ns=10**18 - 10**12))
    assert [source.shift_ns for source in transcribe(first.records, other.records).captures] == [0, 30 * MS]


def test_captures_of_different_boots_are_compared_by_wall_time() -> None:
    first = Dialogue(header=make_header(boot_id="x", monotonic_ns=10**15))
    other = Dialogue(header=make_header(boot_id="y", wall_ns=10**18 + 70 * MS))
    assert [source.shift_ns for source in transcribe(first.records, other.records).captures] == [0, 70 * MS]


def test_captures_that_name_no_boot_are_compared_by_wall_time() -> None:
    dialogues = [Dialogue(header=make_header(boot_id="", wall_ns=10**18 + at_ns)) for at_ns in (0, 70)]
    assert [source.shift_ns for source in transcribe(*(dialogue.records for dialogue in dialogues)).captures] == [0, 70]


def test_rows_of_several_captures_are_numbered_by_the_common_clock() -> None:
    early = Dialogue(header=make_header(label="early")).client(request(1, "a")).wait(100).client(request(2, "d"))
    late = Dialogue(header=make_header(label="late", monotonic_ns=20 * MS)).client(request(1, "b")).client(request(2, "c"))
    transcript = transcribe(late.records, early.records)
    assert [(exchange.row, exchange.method, exchange.at_ns // MS) for exchange in transcript.exchanges] == [
        (1, "a", 1),
        (2, "b", 21),
        (3, "c", 22),
        (4, "d", 102),
    ]


def test_sources_stand_in_the_order_in_which_they_began() -> None:
    dialogues = [Dialogue(header=make_header(label=label, monotonic_ns=at)) for label, at in (("late", 5), ("early", 0))]
    assert [source.server for source in transcribe(*(dialogue.records for dialogue in dialogues)).captures] == ["early", "late"]


def test_the_rows_of_one_capture_keep_their_own_order() -> None:
    dialogue = Dialogue().client(request(1, "a")).wait(-5).client(request(2, "b"))
    assert [exchange.method for exchange in dialogue.exchanges] == ["a", "b"]


# --- Live and offline ---

STORY = (
    Dialogue()
    .client(initialize())
    .server(result(0))
    .client(notification())
    .stderr(b"ready\n")
    .client(tool_call(1, token=1))
    .server(progress(1))
    .server(b"debug print\n")
    .server(request(1, "roots/list"))
    .client(result(1))
    .parts(1, b'{"jsonrpc":"2.0","id":1,', b'"result":{"isError":true}}\n')
    .client(tool_call(2))
    .client(cancelled(2))
    .server(result("3"))
    .gap()
    .client(tool_call(4))
    .closes()
)


def test_record_by_record_gives_the_same_transcript_as_all_at_once() -> None:
    transcriber = Transcriber()
    for record in STORY.records:
        transcriber.feed(record)
    transcriber.close()
    assert spelled(transcriber.transcript) == spelled(STORY.transcript)


def test_two_captures_fed_in_turns_pair_as_each_does_alone() -> None:
    transcriber = Transcriber()
    turns = zip_longest(STORY.records, STORY.records)
    for record, capture in chain.from_iterable(((first, 0), (second, 1)) for first, second in turns):
        transcriber.feed(record, capture)
    alone = [(exchange.method, exchange.outcome) for exchange in STORY.exchanges]
    for capture in (0, 1):
        assert [
            (exchange.method, exchange.outcome) for exchange in transcriber.transcript.exchanges if exchange.capture == capture
        ] == alone


def test_every_row_is_returned_by_the_feed_that_made_it() -> None:
    transcriber = Transcriber()
    returned: list[Row] = []
    for record in STORY.records:
        returned += [row for row in transcriber.feed(record) if not any(row is other for other in returned)]
    assert [id(row) for row in returned] == [id(row) for row in transcriber.transcript.rows]


def test_every_change_is_returned_by_the_feed_that_made_it() -> None:
    transcriber = Transcriber()
    seen: dict[int, Any] = {}
    for record in STORY.records:
        for row in transcriber.feed(record):
            seen[id(row)] = spelled(row)
        assert seen == {id(row): spelled(row) for row in transcriber.transcript.rows}


def test_all_messages_are_in_the_rows() -> None:
    transcript = STORY.transcript
    assert len(transcript.messages) == transcript.captures[0].messages


def test_a_row_is_found_by_its_number() -> None:
    transcript = STORY.transcript
    rows = [row for row in transcript.rows if isinstance(row, Exchange | UnpairedMessage)]
    assert [transcript.row(number) for number in range(1, len(rows) + 2)] == [*rows, None]


def test_a_header_in_the_middle_changes_nothing() -> None:
    records: list[Record] = [*STORY.records[:9], make_header(label="other", monotonic_ns=10**12), *STORY.records[9:]]
    assert spelled(transcribe(records)) == spelled(STORY.transcript)
