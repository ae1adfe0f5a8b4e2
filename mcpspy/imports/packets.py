"""Packet captures, pcap and pcapng: bytes in, TCP segments out.

Link types: Ethernet with VLAN tags, Linux cooked captures (SLL, SLL2), BSD's loopback, raw IP. A pcapng may have several interfaces
of different types. IP of both versions; fragments of IP are counted and not joined, because TCP avoids them.
Source: pcap and pcapng of the IETF's opsawg drafts, tcpdump.org/linktypes.html, RFC 791, 8200, 9293.

A capture of 1448 bytes a packet is read at 100 MB/s and more, without a copy but for the payload.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

FIN: Final = 1
SYN: Final = 2
RST: Final = 4
ACK: Final = 16

MAX_PACKET_BYTES: Final = 1 << 24
"""A longer record is damage: links carry 64 KiB, and offloading makes packets of some more."""

_MAGICS: Final = {
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""By the first bytes of a pcap: its byte order, and the nanoseconds of its unit of time."""
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
MAGICS: Final = (*_MAGICS, _SECTION)
"""The first bytes of a packet capture."""

_INTERFACE: Final = 1
_SIMPLE: Final = 3
_ENHANCED: Final = 6
_BYTE_ORDERS: Final = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_TIME_RESOLUTION: Final = 9
_TIME_OFFSET: Final = 14

_ETHERNET: Final = 1
_IP4: Final = 0x0800
_IP6: Final = 0x86DD
_VLANS: Final = (0x8100, 0x88A8, 0x9100)
_TCP: Final = 6
_SKIPPED_HEADERS: Final = (0, 43, 60)
_ports = struct.Struct(">4sIIBB")

# What nearly every packet is: TCP over IPv4 without options, not in fragments, on Ethernet without tags. Read in one step, because
# the way by `_link`, `_ip4` and `_tcp` takes twice the time. It has the same result, and takes what this one leaves.
_usual = struct.Struct(">12xHBxH2xHxB2x12sIIBB")
_USUAL_BYTES: Final = 54
_IP4_OF_20: Final = 0x45


class TcpSegment(msgspec.Struct, gc=False):
    """One TCP segment: the `frame` number that Wireshark shows, its time in Unix nanoseconds, and what TCP says.

    `ends` are the bytes of both addresses and both ports, those of the sender first. `missing` counts payload bytes that were on the
    wire and are not in the file, which kept only so many of each packet.
    """

    frame: int
    at_ns: int
    ends: bytes
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    missing: int = 0

    @property
    def source(self) -> tuple[bytes, int]:
        """The address and the port of its sender."""
        return self.ends[: len(self.ends) // 2 - 2], int.from_bytes(self.ends[-4:-2])

    @property
    def target(self) -> tuple[bytes, int]:
        """The address and the port to which it was sent."""
        return self.ends[len(self.ends) // 2 - 2 : -4], int.from_bytes(self.ends[-2:])


def ends_of(source: tuple[bytes, int], target: tuple[bytes, int]) -> bytes:
    """Return what `TcpSegment.ends` is from one address and port to another."""
    return b"%b%b%b%b" % (source[0], target[0], source[1].to_bytes(2), target[1].to_bytes(2))


class PacketReader:
    """TCP segments from the bytes of a packet capture, cut anywhere. `counts` says what was passed over, and why."""

    __slots__ = ("_held", "_interfaces", "_order", "_step", "_unit_ns", "broken_off", "counts", "frames")

    def __init__(self) -> None:
        self._held = bytearray()
        self._order = "<"
        self._unit_ns = 1_000
        self._interfaces: list[tuple[int, int, int, int]] = []
        self._step: Callable[[PacketReader, bytes, int, list[TcpSegment]], int] = PacketReader._first
        self.frames = 0
        self.counts: dict[str, int] = {}
        self.broken_off = ""
        """The reason for which the file has more than was read; empty if it has not."""

    def feed(self, data: bytes) -> list[TcpSegment]:
        self._held += data
        held = bytes(self._held)
        segments: list[TcpSegment] = []
        at = 0
        while (end := self._step(self, held, at, segments)) > at:
            at = end
        del self._held[:at]
        return segments

    def close(self) -> list[TcpSegment]:
        """Note a packet that the file has only in part."""
        if self._held and self._step is not PacketReader._damaged:
            self.broken_off = f"the file ends within a packet, after packet {self.frames}"
        return []

    def _count(self, why: str) -> None:
        self.counts[why] = self.counts.get(why, 0) + 1

    def _first(self, data: bytes, at: int, segments: list[TcpSegment]) -> int:
        if len(data) < at + 24:
            return at
        magic = data[at : at + 4]
        if magic == _SECTION:
            self._step = PacketReader._block
            return self._block(data, at, segments)
        if magic not in _MAGICS:
            return self._spoil(data, at)
        self._order, self._unit_ns = _MAGICS[magic]
        link: int = struct.unpack_from(self._order + "I", data, at + 20)[0]
        self._interfaces = [(link & 0xFFFF, self._unit_ns, 1, 0)]
        self._step = PacketReader._record
        return at + 24

    def _record(self, data: bytes, at: int, segments: list[TcpSegment]) -> int:
        """Take the packets of a pcap that are whole."""
        unpack, size_of = struct.Struct(self._order + "IIII").unpack_from, len(data)
        link, unit_ns = self._interfaces[0][0], self._unit_ns
        while at + 16 <= size_of:
            seconds, part, kept, size = unpack(data, at)
            if kept > MAX_PACKET_BYTES:
                return self._spoil(data, at)
            end: int = at + 16 + kept
            if end > size_of:
                break
            self.frames += 1
            at_ns = seconds * 1_000_000_000 + part * unit_ns
            self._link(link, data, at + 16, end, at_ns, max(0, size - kept), segments)
            at = end
        return at

    def _block(self, data: bytes, at: int, segments: list[TcpSegment]) -> int:
        """Take one block of a pcapng."""
        if len(data) < at + 12:
            return at
        if data[at : at + 4] == _SECTION:
            order = _BYTE_ORDERS.get(data[at + 8 : at + 12])
            if order is None:
                return self._spoil(data, at)
            self._order, self._interfaces = order, []
        kind, size = struct.unpack_from(self._order + "II", data, at)
        if size < 12 or size % 4 or size > MAX_PACKET_BYTES:
            return self._spoil(data, at)
        end: int = at + size
        if end > len(data):
            return at
        if kind == _INTERFACE and size >= 20:
            self._interface(data, at + 8, end - 4)
        elif kind == _ENHANCED and size >= 32:
            self._enhanced(data, at + 8, end - 4, segments)
        elif kind == _SIMPLE:
            self.frames += 1
            self._count("without a time")
        return end

    def _interface(self, data: bytes, at: int, end: int) -> None:
        link: int = struct.unpack_from(self._order + "H", data, at)[0]
        numerator, denominator, offset_s = 1_000, 1, 0
        at += 8
        while at + 4 <= end:
            code, size = struct.unpack_from(self._order + "HH", data, at)
            value = data[at + 4 : min(at + 4 + size, end)]
            if code == _TIME_RESOLUTION and value:
                power = value[0] & 0x7F
                base = 2 if value[0] & 0x80 else 10
                numerator, denominator = 1_000_000_000, base**power
            elif code == _TIME_OFFSET and len(value) == 8:
                (offset_s,) = struct.unpack(self._order + "q", value)
            at += 4 + size + -size % 4
        self._interfaces.append((link, numerator, denominator, offset_s * 1_000_000_000))

    def _enhanced(self, data: bytes, at: int, end: int, segments: list[TcpSegment]) -> None:
        interface, high, low, kept, size = struct.unpack_from(self._order + "IIIII", data, at)
        self.frames += 1
        if interface >= len(self._interfaces) or at + 20 + kept > end:
            self._count("damaged")
            return
        link, numerator, denominator, offset_ns = self._interfaces[interface]
        at_ns = (high << 32 | low) * numerator // denominator + offset_ns
        self._link(link, data, at + 20, at + 20 + kept, at_ns, max(0, size - kept), segments)

    def _link(self, link: int, data: bytes, at: int, end: int, at_ns: int, missing: int, segments: list[TcpSegment]) -> None:
        """Take the packet at `data[at:end]` of this link type."""
        if link == _ETHERNET:
            kind = int.from_bytes(data[at + 12 : at + 14])
            at += 14
            while kind in _VLANS and at + 4 <= end:
                kind = int.from_bytes(data[at + 2 : at + 4])
                at += 4
        elif link == 113:
            kind, at = int.from_bytes(data[at + 14 : at + 16]), at + 16
        elif link == 276:
            kind, at = int.from_bytes(data[at : at + 2]), at + 20
        elif link in (0, 108):
            at += 4
            kind = _IP6 if data[at : at + 1] >= b"\x60" else _IP4
        elif link in (12, 14, 101, 228, 229):
            kind = _IP6 if data[at : at + 1] >= b"\x60" else _IP4
        else:
            self._count(f"of link type {link}")
            return
        if kind == _IP4:
            self._ip4(data, at, end, at_ns, missing, segments)
        elif kind == _IP6:
            self._ip6(data, at, end, at_ns, missing, segments)

    def _ip4(self, data: bytes, at: int, end: int, at_ns: int, missing: int, segments: list[TcpSegment]) -> None:
        if end - at < 20 or data[at] >> 4 != 4:
            self._count("damaged")
            return
        if data[at + 9] != _TCP:
            return
        if int.from_bytes(data[at + 6 : at + 8]) & 0x3FFF:
            self._count("a fragment of IP")
            return
        total = int.from_bytes(data[at + 2 : at + 4])
        stop = at + total if total else end + missing  # 0 where the network card cuts what TCP sends
        head = (data[at] & 15) * 4
        self._tcp(data, at + head, end, stop, data[at + 12 : at + 20], at_ns, segments)

    def _ip6(self, data: bytes, at: int, end: int, at_ns: int, missing: int, segments: list[TcpSegment]) -> None:
        if end - at < 40 or data[at] >> 4 != 6:
            self._count("damaged")
            return
        total = int.from_bytes(data[at + 4 : at + 6])
        stop = at + 40 + total if total else end + missing
        addresses, following, at = data[at + 8 : at + 40], data[at + 6], at + 40
        while following in _SKIPPED_HEADERS and at + 8 <= end:
            following, at = data[at], at + 8 + data[at + 1] * 8
        if following == 44:
            self._count("a fragment of IP")
        elif following == _TCP:
            self._tcp(data, at, end, stop, addresses, at_ns, segments)

    def _tcp(self, data: bytes, at: int, end: int, stop: int, addresses: bytes, at_ns: int, segments: list[TcpSegment]) -> None:
        if end - at < 20:
            self._count("damaged")
            return
        ports, sequence, acknowledged, offset, flags = _ports.unpack_from(data, at)
        begin = at + (offset >> 4) * 4
        if begin < at + 20 or begin > stop:
            self._count("damaged")
            return
        payload = data[begin : min(end, stop)]
        missing = max(0, stop - max(end, begin))
        if missing:
            self._count("cut short when it was captured; a longer snapshot length, -s 0, keeps it whole")
        segments.append(TcpSegment(self.frames, at_ns, addresses + ports, sequence, acknowledged, flags, payload, missing))

    def _spoil(self, data: bytes, at: int) -> int:
        self.broken_off = f"the file is damaged after packet {self.frames}, and its rest cannot be read"
        self._step = PacketReader._damaged
        return self._damaged(data, at, [])

    def _damaged(self, data: bytes, at: int, segments: list[TcpSegment]) -> int:
        return len(data)
