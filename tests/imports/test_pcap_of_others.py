"""Packet captures that somebody cut, or whose packets are in an order that no wire has, and what they then do not prove."""

from dataclasses import replace

import pytest

from mcpspy import Exchange, transcribe
from mcpspy.records import Gap, Header, Record
from tests.imports.packet_files import ACK, Sent, dialogue, pcap, pcapng
from tests.imports.sniffing import sessions_of
from tests.imports.test_pcap import SEGMENTS, TALK, post

BLAMES = {"unanswered-request", "accepted-request", "unpaired-response", "answer-broken-off", "early-request"}


def gaps(records: list[Record]) -> list[str]:
    return [record.why for record in records if isinstance(record, Gap)]


def outcomes(records: list[Record]) -> list[str]:
    return [str(row.outcome) for row in transcribe(records).rows if isinstance(row, Exchange)]


def rules(records: list[Record]) -> set[str]:
    return {finding.rule for finding in transcribe(records).findings}


WHOLE = {"pcap": pcap(SEGMENTS), "pcapng": pcapng(SEGMENTS)}


@pytest.mark.parametrize("cut_bytes", [1, 5, 30, 60, 90])
@pytest.mark.parametrize("form", WHOLE)
def test_a_file_that_ends_within_a_packet_is_not_complete(form: str, cut_bytes: int) -> None:
    (records,) = sessions_of(WHOLE[form][:-cut_bytes])
    is_cut = form == "pcapng" or cut_bytes % 70
    assert any("ends within a packet" in why for why in gaps(records)) == bool(is_cut)
    assert transcribe(records).captures[0].complete == (not is_cut)


@pytest.mark.parametrize("form", WHOLE)
def test_a_whole_file_is_complete(form: str) -> None:
    (records,) = sessions_of(WHOLE[form])
    assert gaps(records) == []
    assert transcribe(records).captures[0].complete


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("form", WHOLE)
def test_nothing_is_unanswered_where_the_file_is_cut(form: str, kept: float) -> None:
    (records,) = sessions_of(WHOLE[form][: int(len(WHOLE[form]) * kept)])
    assert "unanswered" not in outcomes(records)
    assert not rules(records) & BLAMES


def test_a_file_with_rubbish_in_its_middle_is_not_complete() -> None:
    data = pcap(SEGMENTS)
    (records,) = sessions_of(data[: len(data) // 2] + b"\xff" * 400 + data[len(data) // 2 :])
    assert any("damaged" in why for why in gaps(records))
    assert not rules(records) & BLAMES


def _acknowledged_early(segments: list[Sent], by: int) -> list[Sent]:
    """Return the segments of a file in which each acknowledgement is `by` packets before what it acknowledges."""
    written = list(segments)
    for sent in segments:
        if sent.data:
            other = "server" if sent.sender == "client" else "client"
            acknowledgement = Sent(other, 0, b"", ACK, sent.at + len(sent.data))
            written.insert(max(3, written.index(sent) - by), acknowledgement)
    return written


@pytest.mark.parametrize("by", [0, 1, 2, 5])
def test_data_after_its_own_acknowledgement_is_not_missing(by: int) -> None:
    (records,) = sessions_of(pcap(_acknowledged_early(list(SEGMENTS), by)))
    assert gaps(records) == []
    assert outcomes(records) == ["ok"] * 4


def _swapped(step: int) -> list[Sent]:
    """Return the segments with two of the server swapped each `step` times, and the acknowledgement of both between them."""
    written = list(SEGMENTS)
    data = [index for index, sent in enumerate(written) if sent.sender == "server" and sent.data]
    for first, second in zip(data[::step], data[1::step], strict=False):
        if second == first + 1:
            written[first], written[second] = written[second], written[first]
    acknowledged: list[Sent] = []
    for sent in written:
        acknowledged.append(sent)
        if sent.sender == "server" and sent.data:
            acknowledged.append(Sent("client", 0, b"", ACK, sent.at + len(sent.data)))
    return acknowledged


@pytest.mark.parametrize("step", [2, 3, 5])
def test_swapped_data_that_is_acknowledged_between_is_not_missing(step: int) -> None:
    (records,) = sessions_of(pcap(_swapped(step)))
    assert gaps(records) == []
    assert outcomes(records) == ["ok"] * 4


@pytest.mark.parametrize("missing", [8, 12, 20])
def test_acknowledged_data_that_never_comes_is_missing(missing: int) -> None:
    acknowledged = [item for item in _swapped(1000) if item != SEGMENTS[missing]]
    times = [replace(sent, at_ns=1_745_130_721_000_000_000 + index * 40_000_000) for index, sent in enumerate(acknowledged)]
    (records,) = sessions_of(pcap(times))
    assert any("are not in the file" in why for why in gaps(records))
    assert outcomes(records).count("ok") >= 2
    assert not rules(records) & BLAMES


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_file_of_one_direction_says_so(side: str) -> None:
    for records in sessions_of(pcap([sent for sent in SEGMENTS if sent.sender == side])):
        assert any("packets of the" in why for why in gaps(records))
        assert "unanswered" not in outcomes(records)
        assert not rules(records) & BLAMES


ASKS = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
SAYS = b'{"id":"c1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ho"},"finish_reason":"stop"}]}'


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


MODEL_CALLS = {
    "/v1/chat/completions": ASKS, "/api/v1/chat/completions?x=1": ASKS, "/v1/messages": ASKS, "/proxy/7": ASKS,
    "/v1/responses": b'{"model":"m","input":"hi"}',
}  # fmt: skip
OTHERS = {
    "/inbox/messages": b'{"to":"m","text":"hi"}', "/v1/cars": b'{"model":"m","year":4}', "/log": b'{"messages":["hi"]}',
    "/v1/models": b"",
}  # fmt: skip


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
@pytest.mark.parametrize("path", MODEL_CALLS)
def test_calls_of_a_model_are_a_capture_of_a_model(path: str, accept: str) -> None:
    asks = post(MODEL_CALLS[path], path.encode()).replace(b"\r\nHost:", b"\r\nAccept: %b\r\nHost:" % accept.encode())
    (records,) = sessions_of(pcap(dialogue([("client", asks), ("server", _answer(SAYS))])))
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped["leg"] == "model"
    (call,) = transcribe(records).model_calls
    assert call.outcome == "ok" or "responses" in path or "v1/messages" in path


@pytest.mark.parametrize("path", OTHERS)
def test_other_calls_make_no_capture(path: str) -> None:
    talk = [("client", post(OTHERS[path], path.encode())), ("server", _answer(b"{}"))]
    assert sessions_of(pcap(dialogue(talk))) == []


def test_calls_of_a_model_are_beside_those_of_mcp() -> None:
    model = [
        replace(sent, port=40001)
        for sent in dialogue([("client", post(ASKS, b"/v1/chat/completions")), ("server", _answer(SAYS))])
    ]
    mixed = pcap([*dialogue(TALK), *model])
    (records,) = sessions_of(mixed)  # one address and port: a gateway of both
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped.get("leg") != "model"
    assert len(transcribe(records).exchanges) == 4


def test_what_only_looks_like_a_model_is_mcp() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    talk = [("client", post(body, b"/v1/messages")), ("server", _answer(b'{"jsonrpc":"2.0","id":1,"result":{}}'))]
    (records,) = sessions_of(pcap(dialogue(talk)))
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped.get("leg") != "model"
