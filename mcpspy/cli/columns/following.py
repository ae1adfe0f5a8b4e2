"""The store followed by `mcpspy otlp -f`: what is recorded is sent, from a position that is kept for each collector."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from ...capture.store.catalog import CatalogEntry, Recording, entries, entry, recordings
from ...capture.store.folder import home_folder
from ...capture.store.recent import last_heard_ns
from ...errors import CaptureError, CollectorError
from .sending import LOOK_S, OtlpNotices, SpanSender

SLACK_NS: Final = 60_000_000_000
"""A record may be older than the moment at which it can be read, and a clock may be set back a little."""


class FollowedUntil:
    """The moment until which a collector has everything that was recorded, kept in a file for each collector.

    It is a time, so that a store of any size costs one number. It may be too early: what is sent again has the same ids.
    """

    def __init__(self, endpoint: str) -> None:
        self._path = os.path.join(home_folder(), "otlp", sha256(endpoint.encode()).hexdigest()[:16], "followed.json")

    def read(self) -> int | None:
        """Return the moment as Unix time; None if the store was never followed."""
        try:
            with open(self._path, "rb") as file:
                return int(json.load(file)["until_ns"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, until_ns: int) -> None:
        """Replace it in one step. Raises: OSError."""
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        temporary = f"{self._path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"until_ns": until_ns}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)


def heard_ns(paths: Iterable[str]) -> list[int]:
    """Return when something was recorded last into each of these captures, as Unix time."""
    return [last_heard_ns(capture) for capture in map(entry, paths) if capture is not None]


class StoreFollower:
    """Sends what is recorded in the store since a moment. `feed` looks once."""

    def __init__(self, sender: SpanSender, notices: OtlpNotices, until: FollowedUntil, since_ns: int) -> None:
        self._sender = sender
        self._notices = notices
        self._until = until
        self._since_ns = since_ns - SLACK_NS
        self._states: dict[tuple[str, ...], tuple[tuple[int, bool], ...]] = {}
        self._is_noted = False

    def run(self) -> None:
        """Look again and again, until the user ends it. Trouble is told, and what could not be sent is tried again."""
        while True:
            began_ns = time.time_ns()
            try:
                if self._has_sent_all() and not self._is_noted:
                    self._until.write(began_ns)
                    self._is_noted = True
            except BrokenPipeError:  # of whoever read what we print
                raise
            except OSError as error:
                self._notices.trouble(error)
            time.sleep(LOOK_S)

    def _has_sent_all(self) -> bool:
        """Send what is new. Return whether nothing is left."""
        has_all = True
        for recording, together in recordings_with_models(entries()):
            paths = tuple(capture.path for capture in recording.entries)
            state = tuple((capture.size_bytes, capture.live) for capture in recording.entries)
            is_recent = max(map(last_heard_ns, recording.entries)) >= self._since_ns
            if self._states.get(paths) == state or not (is_recent or paths in self._states):
                continue
            self._is_noted = False
            if self._has_sent(together):
                self._states[paths] = state
            else:
                has_all = False
        return has_all

    def _has_sent(self, paths: tuple[str, ...]) -> bool:
        """Send the new spans of a recording. Return whether it need not be looked at again before it changes."""
        try:
            self._sender.send(paths)
        except CollectorError as error:  # it takes spans, and no metrics: the sums are kept for the next time
            self._notices.waits(error)
        except CaptureError:
            pass  # it is no capture; another look follows when it changes
        except FileNotFoundError:
            return False  # the capture went away
        except BrokenPipeError:
            raise
        except OSError as error:  # it cannot be read
            self._notices.trouble(error)
            return False
        return True


def recordings_of(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Divide captures of the store into those that are sent together, the oldest first: all of them may not fit in memory."""
    selected = set(paths)
    return [together for _, together in recordings_with_models(capture for capture in entries() if capture.path in selected)][
        ::-1
    ]


def recordings_with_models(captures: Iterable[CatalogEntry]) -> Iterator[tuple[Recording, tuple[str, ...]]]:
    """Yield each recording with the paths to send: its captures, and those of models that may have wanted their calls."""
    captures = list(captures)
    models: dict[str, list[str]] = {}
    for recording in recordings(captures) if any(capture.is_model for capture in captures) else ():
        for capture in recording.entries:
            if not capture.is_model:
                models.setdefault(capture.path, []).extend(other.path for other in recording.entries if other.is_model)
    for recording in recordings(captures, each_once=True):
        paths = [capture.path for capture in recording.entries]
        yield recording, tuple(dict.fromkeys((*paths, *(model for path in paths for model in models.get(path, ())))))
