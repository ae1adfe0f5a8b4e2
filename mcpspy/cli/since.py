"""The option `--since`: the captures that changed since a moment, and the rows of them that were active since then.

What it needs is imported when it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from .capture_options import UsageError
from .screen import say

if TYPE_CHECKING:
    from datetime import datetime

    from ..records import Header
    from ..transcript.model import Transcript
    from ..transcript.recent import RecentRows
    from .transcripts import CaptureSelection

F = TypeVar("F", bound=Callable[..., object])

SECOND_NS: Final = 1_000_000_000
EVER_NS: Final = 1 << 80

OFFERED: Final = ("15m", "1h", "1d", "1w")

_WRONG = "it takes an age like 90s, 1h or 2d, or a time like 09:30, 2026-11-21 or 2026-11-21T09:30; not {}"


class Since:
    """A moment: `wall_ns` is Unix time, `text` its spelling on the command line."""

    __slots__ = ("text", "wall_ns")

    def __init__(self, text: str, wall_ns: int) -> None:
        self.text = text
        self.wall_ns = wall_ns

    @property
    def words(self) -> str:
        """The words `since 2026-11-21 09:30:00`, in local time."""
        return f"since {_local(self.wall_ns):%Y-%m-%d %H:%M:%S}"

    def on_clock_ns(self, header: Header | None, path: str, last_ns: int | None = None) -> int:
        """Convert the moment to the clock of a capture at `path`, whose last record is at `last_ns` (None: read it).

        Without a header the moment is before all records.
        """
        from ..capture.store.catalog import entry
        from ..capture.store.recent import slept_ns

        if header is None:
            return -EVER_NS
        if last_ns is None:
            capture = entry(path)
            last_ns = 0 if capture is None else capture.last_ns
        return self.wall_ns - header.wall_ns - slept_ns(header, path, last_ns)


def _since(text: str) -> Since:
    return Since(text, moment_ns(text, now_ns=time.time_ns()))


def since_option(command: F) -> F:
    """Give a command `--since`."""
    import click

    from .click_types import Word

    option = click.option(
        "--since",
        metavar="AGE|TIME",
        type=Word("moment", _since, OFFERED),
        help="Only what was active since then: 90s, 1h, 2d, 09:30, 2026-11-21T09:30.",
    )
    return option(command)


def moment_ns(text: str, *, now_ns: int) -> int:
    """Read an age before `now_ns`, or a time in ISO 8601, as Unix time. A time of day is its last occurrence.

    Times are local unless they have a zone. Raises: UsageError.
    """
    from datetime import datetime

    from ..views.text.escape import safe_text
    from .units import age_ns

    try:
        return max(0, now_ns - age_ns(text))
    except UsageError:
        pass
    try:
        time_ns = round((_day_time(text, now_ns) or datetime.fromisoformat(text)).timestamp()) * SECOND_NS
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(_WRONG.format(safe_text(text))) from error
    if time_ns > now_ns:
        raise UsageError(f"{safe_text(text)} is in the future; name a time that has passed")
    return max(0, time_ns)


def _day_time(text: str, now_ns: int) -> datetime | None:
    """Find the last moment when clocks showed this time of day; None if it is not one."""
    from datetime import datetime, timedelta
    from datetime import time as time_of_day

    try:
        at = time_of_day.fromisoformat(text)
    except ValueError:
        return None
    if ":" not in text:
        return None
    today = datetime.combine(datetime.fromtimestamp(now_ns / SECOND_NS, at.tzinfo).date(), at)
    both = [day.replace(fold=fold) for day in (today, today - timedelta(days=1)) for fold in (0, 1)]  # clocks may be put back
    return max((moment for moment in both if moment.timestamp() * SECOND_NS <= now_ns), key=datetime.timestamp)


def select_captures_since(whats: tuple[str, ...], since: Since) -> tuple[CaptureSelection, tuple[str, ...]]:
    """Select the captures that WHATs name, else the recordings that changed since then. Returns them and WHATs for them.

    They are read whole, so that rows keep their numbers. If there are none, stderr says so.
    """
    from ..capture.store.folder import captures_folder
    from ..views.text.escape import safe_text
    from .transcripts import CaptureSelection, select_captures

    if whats:
        selection = select_captures(whats)
        if selection.rows is not None:
            import click

            raise click.UsageError("--since cannot be combined with rows; name a capture or a recording.")
        return selection, whats
    from ..capture.store.catalog import elsewhere
    from ..capture.store.recent import last_heard_ns, recordings_since

    recordings, newest = recordings_since(since.wall_ns)
    named = [(name, recording) for name, recording in recordings if name] or recordings
    if not named:
        last = (
            "" if newest is None else f"; the last record is of {_local(last_heard_ns(newest)):%Y-%m-%d %H:%M:%S} (mcpspy list)"
        )
        nowhere = f", nor before, in {safe_text(captures_folder())}"
        say(f"mcpspy: nothing was recorded {since.words}{last or nowhere}")
        if not last and (other := elsewhere()):
            say(f"mcpspy: {safe_text(other)}")
    paths = dict.fromkeys(capture.path for _, recording in named[::-1] for capture in recording.entries)
    return CaptureSelection(paths=tuple(paths)), tuple(name for name, _ in named if name)


def captures_since(paths: Sequence[str], since: Since) -> list[str]:
    """Leave out the captures that did not grow since then; a pipe may. If none is left, stderr says so.

    Raises: OSError: if a file cannot be looked at.
    """
    from ..capture.store.catalog import entry
    from ..capture.store.recent import has_grown_since

    captures = {path: entry(path) for path in paths}
    grown = [path for path, capture in captures.items() if capture is None or has_grown_since(capture, since.wall_ns)]
    if not grown:
        say(f"mcpspy: nothing was recorded {since.words} in the captures that were named")
    return grown


def recent_rows(transcript: Transcript, paths: Sequence[str], since: Since) -> RecentRows:
    """Find the rows of the captures at `paths` that were active since then."""
    from ..capture.store.catalog import entry
    from ..transcript.recent import RecentRows

    by_id: dict[str, str] = {}
    for path in paths:
        stored = entry(path)
        if stored is not None and stored.header is not None:
            by_id[stored.header.capture_id] = path
    since_ns: dict[int, int] = {}
    for capture in transcript.captures:
        path = by_id.get(capture.header.capture_id, "") if capture.header is not None else ""
        since_ns[capture.index] = since.on_clock_ns(capture.header, path, capture.last_ns) + capture.shift_ns
    return RecentRows(transcript, since_ns)


def transcript_since(transcript: Transcript, paths: Sequence[str], since: Since) -> Transcript:
    """Make a transcript of the rows that were active since then, with the findings about them."""
    from ..transcript.findings.run import findings
    from ..transcript.model import Transcript as ShorterTranscript
    from .credential_search import CredentialSearch

    recent = recent_rows(transcript, paths, since)
    found = findings(transcript, recent.is_about)
    return ShorterTranscript(transcript.captures, recent.rows, found, {}, CredentialSearch(), transcript.limits)


def _local(wall_ns: int) -> datetime:
    from ..views.text.units import wall_time

    return wall_time(wall_ns // SECOND_NS * SECOND_NS)
