"""Facts about a file that is imported, and the header of a capture that is made of it.

A capture of a tap has everything that was on the wire. A file that something else recorded lacks some of it, and the header says
what: each fact of `FACTS` is `exact` (as it was on the wire), `reconstructed` (concluded from what the file has) or `missing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from ..records import Header, Record

EXACT: Final = "exact"
RECONSTRUCTED: Final = "reconstructed"
MISSING: Final = "missing"

FACTS: Final = ("bytes", "senders", "times", "ends", "noise", "process", "heads", "beginning")
"""`bytes` of messages, their `senders`, their `times`; the `ends` of streams and who ended them; `noise` between messages; the
server's `process` and its exit; the `heads` of HTTP; and the `beginning` of the session."""

SessionRecord: TypeAlias = tuple[int, Record]
"""A record, after the number of its session in the file, from 0. The first record of a session is its header, the last its `end`."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The file that is imported. `wall_ns` is when it was last changed, as Unix time; `sha256` is empty for one that still grows."""

    name: str
    format: str
    wall_ns: int = 0
    size_bytes: int = 0
    sha256: str = ""

    @property
    def label(self) -> str:
        """The name of its server, as far as the name of the file tells: `weather` for `mcp-server-weather.log`."""
        stem = self.name.rpartition("/")[2].rpartition("\\")[2]
        stem = stem.rpartition(".")[0] or stem
        return stem.removeprefix("mcp-server-") if stem != "-" else ""


def header(
    source: Source,
    session: int,
    *,
    label: str,
    wall_ns: int,
    facts: Mapping[str, str],
    tapped: Mapping[str, object] | None = None,
    address: str = "",
) -> Header:
    """Make the header of the capture of one session. Its id depends on the file alone: one file always makes the same captures.

    `address` is where the server was, for one that goes by another name.
    """
    file = source.sha256 or f"{source.name} {source.wall_ns}"
    origin = f"{file} {session}".encode("utf-8", "surrogatepass")
    imported: dict[str, object] = {"format": source.format, "file": source.name.rpartition("/")[2]}
    if source.sha256:
        imported |= {"bytes": source.size_bytes, "sha256": source.sha256}
    if address:
        imported["address"] = address
    imported["facts"] = {name: facts.get(name, MISSING) for name in FACTS}
    return Header(
        capture_id=sha256(origin).hexdigest()[:16],
        label=label or source.label,
        monotonic_ns=0,
        pid=0,
        tapped={"transport": "stdio", **(tapped or {}), "imported": imported},
        wall_ns=wall_ns,
    )
