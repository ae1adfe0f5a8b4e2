"""Durations that were counted for a collector: each call and session once, whoever was killed meanwhile.

    durations.json   the sums, and the ids of the last batch      replaced in one step: only then the batch is counted
    <capture>        the ids of everything that was sent          gets the ids of the batch after that; if it could not, later

The sums are sent as they are, as often as it takes, until the collector has taken them.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from ...platform.files import lock
from ...telemetry.durations import DurationSums, Timed
from .sent import SentItem, SentSpans, keys_by_capture


class TimedItem(SentItem, Timed, Protocol):
    """A span or a session that took time."""


class KeptSums(NamedTuple):
    """The content of the file: the sums, the id of their sender, whether the collector has them, and ids of a batch by capture."""

    sums: DurationSums
    instance: str
    were_sent: bool
    batch: dict[str, list[str]]


class CountedDurations:
    """The sums for the collector to which these spans were sent. Several processes may use them at a time."""

    def __init__(self, sent: SentSpans) -> None:
        self._sent = sent
        self._path = os.path.join(sent.folder, "durations.json")

    def count(self, kind: str, items: Iterable[SentItem], timed: Iterable[TimedItem]) -> None:
        """Note that items were sent, and count those of them that took time and were not counted before. Raises: OSError."""
        with self._locked():
            kept = self._read()
            self._sent.add(kept.batch)
            batch = keys_by_capture(item for item in items if item.key not in self._sent.of(item.capture_id))
            new = {key for keys in batch.values() for key in keys}
            kept.sums.add(kind, (item for item in timed if item.key in new), time.time_ns())
            self._write(kept._replace(were_sent=False, batch=batch))
            self._sent.add(batch)

    def unsent(self) -> KeptSums | None:
        """Return the sums if the collector may not have them."""
        kept = self._read()
        return None if kept.were_sent else kept

    def were_sent(self, kept: KeptSums) -> None:
        """Note that the collector has taken these sums. Raises: OSError."""
        with self._locked():
            now = self._read()
            if now.sums.until_ns == kept.sums.until_ns:
                self._write(now._replace(were_sent=True))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with suppress(OSError):  # of a file system without locks: then one process at a time has to do
                lock(fd)
            yield
        finally:
            os.close(fd)

    def _read(self) -> KeptSums:
        """Read the file. One that cannot be read is begun anew, as another sender: sums that shrink would count for nothing."""
        try:
            with open(self._path, "rb") as file:
                data = json.load(file)
            batch = {str(capture): [str(key) for key in keys] for capture, keys in data["batch"].items()}
            return KeptSums(DurationSums.of_json(data), str(data["instance"]), bool(data["were_sent"]), batch)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return KeptSums(DurationSums(time.time_ns()), str(uuid.uuid4()), were_sent=True, batch={})

    def _write(self, kept: KeptSums) -> None:
        """Replace the file in one step. Raises: OSError."""
        data = {
            **kept.sums.as_json(),
            "instance": kept.instance,
            "were_sent": kept.were_sent,
            "batch": kept.batch,
        }
        temporary = f"{self._path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
