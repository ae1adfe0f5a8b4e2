"""The referee of the HTTP scenes (wires.py) sees whatever is lost, doubled or changed on the way, and forgives only who left."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import CLIENT, SERVER, Close, Frame, Note, Open, Record
from tests.interop.wires import disagreements

if TYPE_CHECKING:
    from mcpspy.records import Side

POST = b"POST /mcp HTTP/1.1\r\nContent-Length: 8\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CALM = b"server eof\nclient eof\n"
LEFT = b"client eof\nserver eof\n"


@dataclass(slots=True)
class Wire:
    """Bytes that a TCP logger keeps of one connection."""

    client: bytes
    server: bytes
    ends: bytes = CALM


@dataclass(slots=True)
class Scene:
    """Logs of two loggers and the capture between them. `calls` adds connections without a fault; a test spoils them."""

    outer: list[Wire] = field(default_factory=list)
    inner: list[Wire] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def calls(self, connection: int, *numbers: int) -> Scene:
        """Add a connection on which calls with these numbers are sent and answered."""
        sent = b"".join(POST + b"ask %04d" % number for number in numbers)
        got = b"".join(RESPONSE + b"say %04d" % number for number in numbers)
        self.outer.append(Wire(sent, got))
        self.inner.append(Wire(sent, got))
        for number in numbers:
            self.record(connection, number, CLIENT, POST, b"ask %04d" % number)
            self.record(connection, number, SERVER, RESPONSE, b"say %04d" % number)
        return self

    def record(self, connection: int, number: int, sender: Side, head: bytes, *frames: bytes, by: str = "") -> None:
        """Add the records of one message; `by` is the side that ended it, if not its sender."""
        stream = len(self.records)
        name = "request" if sender == CLIENT else "response"
        self.records.append(
            Open(at_ns=0, stream=stream, sender=sender, name=name, head=head, connection=connection, transaction=number)
        )
        self.records += [Frame(stream, 0, 0, data) for data in frames]
        self.records.append(Close(at_ns=0, stream=stream, by=by or sender, how="broken" if by else "eof"))

    def left(self, connection: int, number: int, by: str = "client") -> None:
        """Record which side left before the response to this call."""
        extra = {"connection": connection, "transaction": number, "by": by}
        self.records.append(Note(at_ns=0, topic="left", text="", extra=extra))

    def forget(self, number: int, sender: Side) -> None:
        """Take a call's request or response out of the capture."""
        (at,) = (
            place
            for place, record in enumerate(self.records)
            if isinstance(record, Open) and (record.transaction, record.sender) == (number, sender)
        )
        del self.records[at : at + 3]

    def disagreements(self, folder: Path) -> list[str]:
        for name, wires in (("outer", self.outer), ("inner", self.inner)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            for number, wire in enumerate(wires, 1):
                for kind in ("client", "server", "ends"):
                    (folder / name / f"{number}.{kind}").write_bytes(getattr(wire, kind))
        return disagreements(folder, self.records)


def test_all_agree_where_all_went_well(tmp_path: Path) -> None:
    assert Scene().calls(1, 1, 2).calls(2, 3).disagreements(tmp_path) == []


def test_connections_may_be_numbered_differently_at_each_place(tmp_path: Path) -> None:
    scene = Scene().calls(1, 1).calls(2, 2).calls(3, 3)
    scene.inner.reverse()
    assert scene.disagreements(tmp_path) == []


def test_a_connection_that_is_nowhere_else_is_seen(tmp_path: Path) -> None:
    scene = Scene().calls(1, 1).calls(2, 2)
    lost = scene.outer.pop()
    assert len(scene.disagreements(tmp_path / "lost")) == 1
    scene.outer += [lost, lost]
    assert len(scene.disagreements(tmp_path / "doubled")) == 1


# --- Who left is forgiven, and who did not is not ---


def gone_before_the_answer() -> Scene:
    """Make the case that the client of connection 1 left before its last response reached mcpspy."""
    scene = Scene().calls(1, 1, 2).calls(2, 3)
    scene.forget(2, SERVER)
    scene.left(1, 2)
    scene.outer[0].server = RESPONSE + b"say 0001"
    scene.outer[0].ends = LEFT
    return scene


def test_the_last_response_may_be_missing_where_the_client_left(tmp_path: Path) -> None:
    assert gone_before_the_answer().disagreements(tmp_path) == []


def test_a_response_that_mcpspy_sent_to_a_client_that_was_gone_may_be_missing_there(tmp_path: Path) -> None:
    scene = Scene().calls(1, 1)
    scene.outer[0] = Wire(scene.outer[0].client, b"", b"client reset\n")
    assert scene.disagreements(tmp_path) == []


def test_a_response_is_lost_if_nobody_left(tmp_path: Path) -> None:
    scene = Scene().calls(1, 1, 2)
    scene.outer[0].server = RESPONSE + b"say 0001"
    assert len(scene.disagreements(tmp_path)) == 2


def test_a_response_is_lost_if_the_capture_does_not_say_who_left(tmp_path: Path) -> None:
    scene = gone_before_the_answer()
    del scene.records[-1]
    assert len(scene.disagreements(tmp_path / "nobody")) == 2
    scene.left(1, 2, by="server")
    assert len(scene.disagreements(tmp_path / "another")) == 2


def test_a_capture_that_says_wrongly_that_the_client_left_is_not_believed(tmp_path: Path) -> None:
    scene = gone_before_the_answer()
    scene.outer[0].ends = CALM
    assert len(scene.disagreements(tmp_path)) == 2


def test_a_client_that_left_takes_no_response_with_it_but_the_last(tmp_path: Path) -> None:
    scene = gone_before_the_answer()
    scene.forget(1, SERVER)
    assert len(scene.disagreements(tmp_path / "first in the capture")) == 4
    scene = gone_before_the_answer()
    scene.outer[0].server = RESPONSE + b"say 0002"
    assert len(scene.disagreements(tmp_path / "first at the client")) == 2


def test_a_client_that_left_takes_no_request_with_it(tmp_path: Path) -> None:
    scene = gone_before_the_answer()
    scene.inner[0].client = POST + b"ask 0001"
    assert len(scene.disagreements(tmp_path)) == 2


# --- Streams that were cut short ---


def cut_short(at_the_client: bytes, in_the_capture: bytes) -> Scene:
    """Make a stream of two events that the client broke off after it had received so much."""
    sent = POST + b"ask 0001"
    scene = Scene(
        outer=[Wire(sent, EVENTS + at_the_client, LEFT)],
        inner=[Wire(sent, EVENTS + b"4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n")],
    )
    scene.record(1, 1, CLIENT, POST, b"ask 0001")
    scene.record(1, 1, SERVER, EVENTS, in_the_capture, by="client")
    return scene


@pytest.mark.parametrize(
    ("at_the_client", "in_the_capture"),
    [(b"4\r\none\n\r\n", b"one\n"), (b"4\r\non", b"one\ntw"), (b"", b"one\ntwo\n")],
)
def test_a_stream_may_be_cut_where_the_client_left(at_the_client: bytes, in_the_capture: bytes, tmp_path: Path) -> None:
    assert cut_short(at_the_client, in_the_capture).disagreements(tmp_path) == []


@pytest.mark.parametrize(
    ("at_the_client", "in_the_capture"),
    [(b"4\r\none\n\r\n4\r\ntwo\n\r\n", b"one\n"), (b"4\r\none\n\r\n", b"onE\ntwo\n"), (b"4\r\ntwo\n\r\n", b"one\ntwo\n")],
    ids=["more at the client", "changed in the capture", "the beginning is missing at the client"],
)
def test_what_is_left_of_a_stream_is_what_was_sent(at_the_client: bytes, in_the_capture: bytes, tmp_path: Path) -> None:
    assert cut_short(at_the_client, in_the_capture).disagreements(tmp_path) != []


def test_a_stream_that_nobody_broke_off_is_whole(tmp_path: Path) -> None:
    scene = cut_short(b"4\r\none\n\r\n", b"one\n")
    scene.outer[0].ends = CALM
    assert scene.disagreements(tmp_path) != []


# --- One spoilt byte, one spoilt message ---


@given(
    place=st.sampled_from(["outer", "inner"]),
    side=st.sampled_from(["client", "server"]),
    at=st.integers(0, 10_000),
    ends=st.sampled_from([CALM, LEFT]),
)
def test_a_changed_byte_is_seen(place: str, side: str, at: int, ends: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    scene = Scene().calls(1, 1, 2).calls(2, 3)
    for wire in scene.outer:
        wire.ends = ends
    wire = getattr(scene, place)[at % 2]
    data = bytearray(getattr(wire, side))
    spot = [at_byte for at_byte, byte in enumerate(data) if chr(byte).isalpha()][at % 20]
    data[spot] ^= 0x20
    setattr(wire, side, bytes(data))
    assert scene.disagreements(tmp_path_factory.mktemp("wires")) != []


@pytest.mark.parametrize("sender", [CLIENT, SERVER])
@pytest.mark.parametrize("place", ["outer", "inner", "capture"])
@pytest.mark.parametrize("ends", [CALM, LEFT], ids=["nobody left", "the client left"])
def test_a_doubled_message_is_seen(ends: bytes, place: str, sender: Side, tmp_path: Path) -> None:
    scene = Scene().calls(1, 1)
    scene.outer[0].ends = ends
    if place == "capture":
        scene.record(1, 2, sender, POST if sender == CLIENT else RESPONSE, b"ask 0001" if sender == CLIENT else b"say 0001")
    else:
        wire = getattr(scene, place)[0]
        setattr(wire, sender, getattr(wire, sender) * 2)
    assert scene.disagreements(tmp_path) != []
