"""Packet captures made by hand: what two sides sent, as segments with faults, on any kind of link."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16
CLIENT_PORT, SERVER_PORT = 49652, 8000
BEGIN_US = 1_745_130_721_000_000

Say = tuple[str, bytes]
"""A side, and what it sends."""


@dataclass(frozen=True)
class Sent:
    """One segment: its sender, where its bytes begin in what that side sends, and its flags."""

    sender: str
    at: int
    data: bytes
    flags: int = ACK
    acknowledged: int = 0
    at_ns: int | None = None
    """Unix time; None: a millisecond after the segment before."""
    port: int = CLIENT_PORT
    """The client's."""

    def packet(self, version: int, first: dict[str, int]) -> bytes:
        """Return the IP packet. `first` are the numbers of the first byte of each side."""
        ports = (self.port, SERVER_PORT) if self.sender == "client" else (SERVER_PORT, self.port)
        other = "server" if self.sender == "client" else "client"
        sequence = (first[self.sender] + self.at) % (1 << 32)
        acknowledged = (first[other] + self.acknowledged) % (1 << 32)
        segment = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 5 << 4, self.flags, 65535, 0, 0) + self.data
        if version == 4:
            ends = [ip_address(f"10.0.0.{1 if port == self.port else 2}").packed for port in ports]
            return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0, *ends) + segment
        ends = [ip_address(f"fd00::{1 if port == self.port else 2}").packed for port in ports]
        return struct.pack(">IHBB16s16s", 6 << 28, len(segment), 6, 64, *ends) + segment


def dialogue(says: Iterable[Say], size: int = 100) -> list[Sent]:
    """Return the segments of a connection, each of `size` bytes at most: handshake, what is said in turn, and the end."""
    segments = [
        Sent("client", -1, b"", SYN),
        Sent("server", -1, b"", SYN | ACK),
        Sent("client", 0, b""),
    ]
    sent = {"client": 0, "server": 0}
    for side, data in says:
        other = "server" if side == "client" else "client"
        for begin in range(0, len(data), size):
            part = data[begin : begin + size]
            segments.append(Sent(side, sent[side], part, PUSH | ACK, sent[other]))
            sent[side] += len(part)
    segments.append(Sent("server", sent["server"], b"", FIN | ACK, sent["client"]))
    segments.append(Sent("client", sent["client"], b"", FIN | ACK, sent["server"] + 1))
    return segments


def duplicated(segment: Sent, back: int) -> Sent:
    """Return a segment as a retransmission that has only its bytes from `back` on."""
    return replace(segment, at=segment.at + back, data=segment.data[back:])


Link = Callable[[bytes], bytes]


def _ethernet(packet: bytes) -> bytes:
    return b"\2" * 12 + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet


def _vlan(packet: bytes) -> bytes:
    return b"\2" * 12 + b"\x88\xa8\0\1" + b"\x81\0\0\2" + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet


def _null(packet: bytes) -> bytes:
    return struct.pack("<I", 2 if packet[0] >> 4 == 4 else 30) + packet


def _cooked(packet: bytes) -> bytes:
    return b"\0" * 14 + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet


def _cooked_2(packet: bytes) -> bytes:
    return (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + b"\0" * 18 + packet


LINKS: dict[str, tuple[int, Link]] = {
    "ethernet": (1, _ethernet),
    "vlan": (1, _vlan),
    "null": (0, _null),
    "raw": (101, bytes),
    "cooked": (113, _cooked),
    "cooked 2": (276, _cooked_2),
}


def pcap(
    segments: Sequence[Sent],
    link: str = "ethernet",
    version: int = 4,
    order: str = "<",
    first: dict[str, int] | None = None,
    snap: int = 1 << 18,
) -> bytes:
    """Return a pcap of these segments, one a millisecond, that keeps `snap` bytes of each packet."""
    number, wrap = LINKS[link]
    pieces = [struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, number)]
    for at_ns, packet in _packets(segments, version, first):
        whole, at = wrap(packet), at_ns // 1000
        kept = whole[:snap]
        pieces += [struct.pack(order + "IIII", at // 1_000_000, at % 1_000_000, len(kept), len(whole)), kept]
    return b"".join(pieces)


def pcapng(segments: Sequence[Sent], links: Sequence[str] = ("ethernet",), order: str = "<") -> bytes:
    """Return a pcapng whose packets come from these links in turn."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))

    pieces = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    nanoseconds = struct.pack(order + "HHB3x", 9, 1, 9) + struct.pack(order + "HH", 0, 0)
    pieces += [block(1, struct.pack(order + "HHI", LINKS[link][0], 0, 0) + nanoseconds) for link in links]
    pieces.append(block(4, b"\0" * 8))
    for index, (at, packet) in enumerate(_packets(segments, 4, None)):
        interface = index % len(links)
        whole = LINKS[links[interface]][1](packet)
        head = struct.pack(order + "IIIII", interface, at >> 32, at & 0xFFFFFFFF, len(whole), len(whole))
        pieces.append(block(6, head + whole))
    return b"".join(pieces)


def _packets(segments: Sequence[Sent], version: int, first: dict[str, int] | None) -> Iterable[tuple[int, bytes]]:
    numbers = first or {"client": 1000, "server": 5000}
    for index, segment in enumerate(segments):
        at_ns = 1000 * (BEGIN_US + 1000 * index) if segment.at_ns is None else segment.at_ns
        yield at_ns, segment.packet(version, numbers)
