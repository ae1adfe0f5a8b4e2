"""A session of one of the captures' stories, recorded by a tap, and by tcpdump beside it."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from captures.make import record
from mcpspy import Transcript, transcribe
from mcpspy import read as read_capture
from mcpspy.imports.pcap import PacketImporter
from mcpspy.imports.source import Source
from mcpspy.live.http.recorder import StreamRecorder
from mcpspy.records import Header, Record
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S
from tests.imports.logging_clients import rows_in_any_order


@dataclass(frozen=True, slots=True)
class Sniffed:
    """A transcript of the tap, and the packets between it and its client: the file with them, and the session made of it."""

    tapped: Transcript
    port: str
    packets: Path
    session: list[Record]


def sniff(story: str, tmp_path: Path, debian_program: DebianProgram) -> Sniffed:
    """Record a story while tcpdump watches."""
    packets = tmp_path / "dump.pcap"
    folder = tmp_path / "story"
    folder.mkdir()
    sniffer = subprocess.Popen(
        [debian_program("tcpdump"), "-i", "lo", "-B", "32768", "--immediate-mode", "-U", "-w", str(packets), "tcp"],
        stderr=subprocess.PIPE,
    )
    try:
        assert sniffer.stderr is not None
        if b"listening on" not in sniffer.stderr.readline():
            pytest.skip("this user may not capture packets")
        tapped = transcribe(read_capture(record(story, folder)))
        header = tapped.captures[0].header
        assert header is not None
        port = header.tapped["listen"].split("/")[2].rpartition(":")[2]
        until = time.monotonic() + DEADLINE_S
        while True:  # the last packets come when the kernel is ready
            session = next((records for records in sessions_of(packets.read_bytes()) if _port(records) == port), [])
            if rows_in_any_order(transcribe(session)) == rows_in_any_order(tapped) or time.monotonic() > until:
                return Sniffed(tapped, port, packets, session)
    finally:
        sniffer.terminate()
        sniffer.communicate()


def sessions_of(data: bytes, step: int = 0) -> list[list[Record]]:
    """Return the records of each session of a packet capture, read `step` bytes at a time."""
    importer = PacketImporter(Source(name="dump.pcap", format="pcap", sha256="ab"), StreamRecorder)
    sessions: dict[int, list[Record]] = {}
    steps = [data] if not step else [data[at : at + step] for at in range(0, len(data), step)]
    for number, item in [item for part in steps for item in importer.feed(part)] + importer.close():
        item.number = len(sessions.setdefault(number, []))
        sessions[number].append(item)
    return list(sessions.values())


def _port(records: list[Record]) -> str:
    header = records[0]
    assert isinstance(header, Header)
    return str(header.tapped["url"]).split("/")[2].rpartition(":")[2]
