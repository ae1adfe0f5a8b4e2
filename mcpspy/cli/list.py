"""`mcpspy list`: the newest recordings and their captures; and the overview that bare `mcpspy` prints."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..capture.store.address import addresses
from ..capture.store.catalog import CatalogEntry, Count, Recording, count, elsewhere, entries, has_failed, recordings
from ..capture.store.clients import noted_clients
from ..capture.store.folder import captures_folder
from ..capture.store.pruning import empty_files, prune_totals, remove_indexes
from ..capture.store.quota import quota_bytes, store_size
from ..views.listing import (
    CaptureLine,
    CaptureState,
    RecordingLine,
    StoreUsage,
    UnreadableFile,
    gone_line,
    keeping_line,
    listing,
    listing_json,
)
from ..views.text.escape import safe_text
from ..views.text.units import counted, wall_time
from .capture_options import Option, add_click_options
from .screen import Screen, say

if TYPE_CHECKING:
    import click

    from .since import Since

SHOWN_RECORDINGS = 10
OVERVIEW_RECORDINGS = 3


OPTIONS: Final = (
    Option("json", "", "Print JSON for programs (docs/json.md).", parameter="as_json"),
    Option("all", "", f"List all recordings, not only the newest {SHOWN_RECORDINGS}.", parameter="everything"),
)
"""Those that are read without click."""


def run(*, as_json: bool, everything: bool, since: Since | None = None) -> None:
    """List the newest recordings and their captures.

    A recording is one client with all its servers, and has a capture for each. The newest recording is @, the one before it @1.
    These move when a new one begins; the id at the end of its line, such as @3f0c92ab, always names it. Mocks and replays have
    the id alone. A capture is named by its label or its file.

    \b
      mcpspy list
      mcpspy list --all --json
      mcpspy list --since 2d
    """
    lines, unreadable, left_out = find_recordings(None if everything or since else SHOWN_RECORDINGS, since)
    if as_json:
        sys.stdout.write(listing_json(captures_folder(), lines, unreadable, _store_usage()))
    elif lines or unreadable:
        _show(lines, unreadable)
    if left_out:
        say(f"{counted(left_out, 'older recording')}: mcpspy list --all")
    elif not lines and since is not None:
        say(f"Nothing was recorded {since.words}.")
    elif not lines:
        _say_nothing_yet()
    _say_store_usage()


def _say_store_usage() -> None:
    """Say how large the store is, what limits it, and what was deleted, for users who miss an old recording."""
    with suppress(OSError):
        if indexes := remove_indexes():
            say(f"removed {counted(indexes, 'index file')} of an earlier version; captures are read without them")
    empty = len(empty_files(wall_ns=time.time_ns()))
    if empty:
        say(f"{counted(empty, 'empty file')}, left by mcpspy processes that were killed at once: mcpspy prune deletes them")
    files, size_bytes = store_size()
    if files or quota_bytes() is not None:
        say(keeping_line(files, size_bytes, quota_bytes()))
    for by_quota in (False, True):
        gone = prune_totals(by_quota=by_quota)
        if gone.captures:
            when = wall_time(gone.last_wall_ns).strftime("%Y-%m-%d %H:%M")
            say(gone_line(gone.recordings, gone.captures, gone.bytes, when=when, by_quota=by_quota))


def _store_usage() -> StoreUsage:
    files, size_bytes = store_size()
    by_hand, by_quota = prune_totals(), prune_totals(by_quota=True)
    return StoreUsage(
        captures=files,
        size_bytes=size_bytes,
        max_bytes=quota_bytes(),
        gone_captures=by_hand.captures + by_quota.captures,
        gone_bytes=by_hand.bytes + by_quota.bytes,
        gone_wall_ns=max(by_hand.last_wall_ns, by_quota.last_wall_ns) or None,
    )


def overview() -> None:
    """Print the newest recordings and the next useful commands, for bare `mcpspy`."""
    lines, unreadable, _ = find_recordings(OVERVIEW_RECORDINGS)
    if not lines:
        _say_nothing_yet()
        say("mcpspy --help lists all commands.")
        return
    _show(lines, unreadable)
    live = any(capture.state is CaptureState.LIVE for recording in lines for capture in recording.captures)
    say("")
    say("mcpspy show -f shows its calls as they happen." if live else "mcpspy show shows the calls of the newest recording.")
    say("mcpspy --help lists all commands.")


def _show(lines: list[RecordingLine], unreadable: list[UnreadableFile]) -> None:
    screen = Screen()
    screen.lines(listing(lines, unreadable, width=screen.width))


def _say_nothing_yet() -> None:
    say(f"Nothing has been recorded yet in {safe_text(captures_folder())}.")
    if other := elsewhere():
        say(f"{safe_text(other)}.")
    say("mcpspy wrap inserts mcpspy between your clients and their servers; mcpspy demo shows a small example.")


def find_recordings(limit: int | None, since: Since | None = None) -> tuple[list[RecordingLine], list[UnreadableFile], int]:
    """Find the newest recordings, and those changed since a moment. Returns them, unreadable files, and the number left out.

    Each recording keeps the address that it has among all.
    """
    now_ns = time.time_ns()
    captures = entries()
    every = recordings(captures)
    if since is not None:
        from ..capture.store.recent import has_grown_since

        selected = [
            recording for recording in every if any(has_grown_since(capture, since.wall_ns) for capture in recording.own)
        ]
        captures = [capture for capture in captures if has_grown_since(capture, since.wall_ns)]
    else:
        selected = every[:limit]
    shown = set(map(id, selected))
    with_address = every[: max((at + 1 for at, recording in enumerate(every) if id(recording) in shown), default=0)]
    names = addresses(with_address)
    counts = {capture.path: count(capture) for recording in selected for capture in recording.entries}
    lines = [
        _recording(recording, name, counts, now_ns)
        for recording, name in zip(with_address, names, strict=True)
        if id(recording) in shown
    ]
    unreadable = [
        UnreadableFile(path=capture.path, file=os.path.basename(capture.path), reason=capture.error)
        for capture in captures
        if not capture.header and (capture.size_bytes or capture.live)
    ]
    left_out = 0 if since is not None else len(every) - len(lines)
    return lines, unreadable[:limit], left_out


def _recording(recording: Recording, address: str, counts: dict[str, Count], now_ns: int) -> RecordingLine:
    return RecordingLine(
        address=address,
        id=recording.id,
        client=recording.given_name or recording.client,
        client_process=recording.client,
        client_pid=recording.client_pid,
        captures=tuple(_capture(capture, counts[capture.path], now_ns) for capture in recording.entries),
    )


def _capture(entry: CatalogEntry, counted: Count, now_ns: int) -> CaptureLine:
    ended = CaptureState.FAILED if entry.end and has_failed(entry) else CaptureState.COMPLETE
    state = ended if entry.end else CaptureState.LIVE if entry.live else CaptureState.INCOMPLETE
    return CaptureLine(
        path=entry.path,
        file=os.path.basename(entry.path),
        capture_id=entry.header.capture_id if entry.header else "",
        label=entry.label,
        begin=wall_time(entry.from_ns),
        begin_ns=entry.from_ns,
        lasted_ns=max(0, now_ns - entry.from_ns) if entry.live and entry.process is None else entry.lasted_ns,
        messages=counted.messages,
        counted=counted.whole,
        size_bytes=entry.size_bytes,
        gaps=counted.gaps,
        state=state,
        is_model=entry.is_model,
        is_part=entry.process is not None,
        is_shared=entry.process is not None and len(noted_clients(entry.path, entry.size_bytes)) > 1,
    )


def __getattr__(name: str) -> click.Command:
    """Make `command` when click asks for it."""
    if name != "command":
        raise AttributeError(name)
    import click

    from .since import since_option

    command = click.command("list")(run)
    add_click_options(command, OPTIONS)
    return since_option(command)
