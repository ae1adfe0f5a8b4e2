"""Messages that rules did not look at: beyond a limit, not recorded, or not decompressed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ...wire.encodings import PACKAGES
from ..absent_facts import unchecked_facts
from ..message import SEALED
from ..model import Exchange, Kind, UnpairedMessage
from .facts import SAMPLED
from .protocol import json_traps
from .rule import Unchecked

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ..model import Transcript


def unchecked_messages(transcript: Transcript, rules: Container[str]) -> Iterator[Unchecked]:
    """Yield what the rules that need not be asked for did not look at."""
    sampled = tuple(rule.name for rule in json_traps.RULES if rule.name in rules)
    if sampled and any(info.messages > SAMPLED for info in transcript.captures):
        yield Unchecked(rules=sampled, reason=f"only the first {SAMPLED:,} messages of a capture are read")
    elif sampled and _sampled_bytes(transcript) > json_traps.MAX_READ_BYTES:
        yield Unchecked(rules=sampled, reason=f"only the first {json_traps.MAX_READ_BYTES >> 20} MiB of messages are read")
    unkept = sum(info.unkept for info in transcript.captures)
    if unkept:
        yield Unchecked(rules=(), reason=f"the payloads of {unkept:,} frame{'s' * (unkept > 1)} were not recorded")
    yield from unchecked_facts(transcript.captures, rules)
    if any(info.transactions for info in transcript.captures):
        yield from _sealed(transcript)


def _sampled_bytes(transcript: Transcript) -> int:
    """Add the sizes of the first messages; with several captures this is more than what was read of each."""
    if len(transcript.captures) > 1:
        return 0
    exchanges = (row for row in islice(transcript.rows, SAMPLED) if isinstance(row, Exchange))
    return sum(row.request.size + (row.response.size if row.response else 0) for row in exchanges)


def _sealed(transcript: Transcript) -> Iterator[Unchecked]:
    """Find bodies that were not decompressed."""
    codings: dict[str, int] = {}
    for row in transcript.rows:
        if isinstance(row, UnpairedMessage) and row.message.kind is Kind.MALFORMED and row.message.reason.startswith(SEALED):
            codings[row.message.reason] = codings.get(row.message.reason, 0) + 1
    for reason, count in codings.items():
        bodies = f"{count:,} {'body is' if count == 1 else 'bodies are'}"
        package = PACKAGES.get(reason.removeprefix(SEALED).strip(), "a decoder")
        yield Unchecked(rules=(), reason=f"{bodies} {reason}, which needs pip install {package}")
