"""The option `--since` of the verbs that look: a recorder that is on for weeks is asked about its last hour.

Which captures that means, and which of their rows. Where it is not given, nothing is imported that it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from datetime import time as time_of_day
from typing import TYPE_CHECKING, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from ..capture.store.folder import captures_folder
from ..views.text.escape import safe_text
from .options import UsageError
from .screen import say
from .transcripts import CaptureSelection, select_captures
from .units import age_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..records import Header
    from ..transcript.model import Transcript
    from ..transcript.recent import RecentRows

F = TypeVar("F", bound=Callable[..., object])

SECOND_NS: Final = 1_000_000_000
EVER_NS: Final = 1 << 80

OFFERED: Final = ("15m", "1h", "1d", "1w")

_WRONG = "it takes an age like 90s, 1h or 2d, or a time like 09:30, 2026-11-21 or 2026-11-21T09:30; not {}"


class Since:
    """A moment: `wall_ns` is Unix time, `text` how it was written."""

    __slots__ = ("text", "wall_ns")

    def __init__(self, text: str, wall_ns: int) -> None:
        self.text = text
        self.wall_ns = wall_ns

    @property
    def words(self) -> str:
        """`since 2026-11-21 09:30:00`, in the local zone."""
        return f"since {_local(self.wall_ns):%Y-%m-%d %H:%M:%S}"

    def on_clock_ns(self, header: Header | None, path: str, last_ns: int | None = None) -> int:
        """The moment on the clock of a capture at `path`, whose last record so far came `last_ns` after it began (None: look).

        Where the header is lost it came before all of it.
        """
        from ..capture.store.catalog import entry
        from ..capture.store.recent import slept_ns

        if header is None:
            return -EVER_NS
        if last_ns is None:
            found = entry(path)
            last_ns = 0 if found is None else found.last_ns
        return self.wall_ns - header.wall_ns - slept_ns(header, path, last_ns)


class _SinceType(click.ParamType[Since]):
    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Since:
        """Read it."""
        try:
            return value if isinstance(value, Since) else Since(str(value), moment_ns(str(value), now_ns=time.time_ns()))
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer a few ages."""
        return [CompletionItem(one) for one in OFFERED if one.startswith(incomplete)]


def since_option(command: F) -> F:
    """Give a command `--since`."""
    option = click.option(
        "--since",
        metavar="AGE|TIME",
        type=_SinceType(),
        help="Only what was alive since then: 90s, 1h, 2d, 09:30, 2026-11-21T09:30. Without WHAT of all recordings.",
    )
    return option(command)


def moment_ns(text: str, *, now_ns: int) -> int:
    """Unix time of an age before `now_ns`, or of a time as ISO 8601 has it; a time of day is the last one that was.

    It is local unless it says its zone. Raises: UsageError.
    """
    try:
        return max(0, now_ns - age_ns(text))
    except UsageError:
        pass
    try:
        found_ns = round((_day_time(text, now_ns) or datetime.fromisoformat(text)).timestamp()) * SECOND_NS
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(_WRONG.format(safe_text(text))) from error
    if found_ns > now_ns:
        raise UsageError(f"{safe_text(text)} has not come yet")
    return max(0, found_ns)


def _day_time(text: str, now_ns: int) -> datetime | None:
    """The last time at which a clock showed this; None where it is no time of day."""
    try:
        at = time_of_day.fromisoformat(text)
    except ValueError:
        return None
    if ":" not in text:
        return None
    today = datetime.combine(datetime.fromtimestamp(now_ns / SECOND_NS, at.tzinfo).date(), at)
    both = [day.replace(fold=fold) for day in (today, today - timedelta(days=1)) for fold in (0, 1)]  # clocks may be put back
    return max((one for one in both if one.timestamp() * SECOND_NS <= now_ns), key=datetime.timestamp)


def chosen_since(whats: tuple[str, ...], since: Since) -> tuple[CaptureSelection, tuple[str, ...]]:
    """The captures to be read, and what WHAT calls them: those named, else the recordings into which was recorded since then.

    These are read whole, so that their rows have the numbers that they always have. Where there are none, it says so.
    """
    if whats:
        found = select_captures(whats)
        if found.rows is not None:
            raise click.UsageError("--since goes with captures and recordings, not with rows of them.")
        return found, whats
    from ..capture.store.recent import last_heard_ns, touched

    recordings, newest = touched(since.wall_ns)
    spoken = [(name, one) for name, one in recordings if name] or recordings
    if not spoken:
        last = (
            "" if newest is None else f"; the last thing was at {_local(last_heard_ns(newest)):%Y-%m-%d %H:%M:%S} (mcpspy list)"
        )
        say(f"mcpspy: nothing was recorded {since.words}{last or f', nor before, in {safe_text(captures_folder())}'}")
    paths = dict.fromkeys(one.path for _, recording in spoken[::-1] for one in recording.entries)
    return CaptureSelection(paths=tuple(paths)), tuple(name for name, _ in spoken if name)


def of_late(transcript: Transcript, paths: Sequence[str], since: Since) -> RecentRows:
    """Which rows of the captures at `paths` were alive since then."""
    from ..capture.store.catalog import entry
    from ..transcript.recent import RecentRows

    files = {one.header.capture_id: path for path in paths if (one := entry(path)) is not None and one.header is not None}
    since_ns: dict[int, int] = {}
    for source in transcript.captures:
        path = files.get(source.header.capture_id, "") if source.header is not None else ""
        since_ns[source.index] = since.on_clock_ns(source.header, path, source.last_ns) + source.shift_ns
    return RecentRows(transcript, since_ns)


def narrowed(transcript: Transcript, paths: Sequence[str], since: Since) -> Transcript:
    """The transcript with what was alive since then, and the findings about that."""
    from ..transcript.findings.run import findings
    from ..transcript.model import Transcript as Narrowed

    found = of_late(transcript, paths, since)
    return Narrowed(transcript.captures, found.rows, findings(transcript, found.is_about))


def _local(wall_ns: int) -> datetime:
    from ..views.text.units import wall_time

    return wall_time(wall_ns // SECOND_NS * SECOND_NS)
