"""A point in time as a calendar has it. Refuses to fail: what a capture's header says of the clock is somebody else's word."""

from datetime import UTC, datetime, tzinfo


def wall_time(wall_ns: int, zone: tzinfo | None = None) -> datetime:
    """Unix time in `zone` (None: the system's); the epoch where no calendar holds it."""
    try:
        return datetime.fromtimestamp(wall_ns / 1_000_000_000, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
