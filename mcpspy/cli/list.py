"""`mcpspy list`: the newest recordings and their captures; and what bare `mcpspy` says."""

import os
import time

import click

from ..capture.store.address import addresses
from ..capture.store.catalog import CatalogEntry, Count, Recording, count, entries, has_message, recordings
from ..capture.store.folder import captures_folder
from ..capture.store.pruning import empty_files, pruned
from ..capture.store.quota import quota_bytes, taken
from ..views.store.listing import CaptureLine, CaptureState, RecordingLine, StoreUsage, UnreadableFile, listing, listing_json
from ..views.store.usage import gone_line, keeping_line
from ..views.text.escape import safe_text
from ..views.text.units import counted, wall_time
from .screen import say, show_lines, width
from .since import Since, since_option

SHOWN_RECORDINGS = 10
OVERVIEW_RECORDINGS = 3


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (docs/json.md).")
@click.option("--all", "everything", is_flag=True, help=f"All recordings, not only the newest {SHOWN_RECORDINGS}.")
@since_option
def command(*, as_json: bool, everything: bool, since: Since | None) -> None:
    """List the newest recordings and their captures.

    A recording is what one client did with all its servers. The newest is addressed as @, the one before as @1; a capture by its
    label or its file.

    \b
      mcpspy list
      mcpspy list --all --json
      mcpspy list --since 2d
    """
    found, unusable, left_out = _listed(None if everything or since else SHOWN_RECORDINGS, since)
    if as_json:
        click.echo(listing_json(captures_folder(), found, unusable, _kept()), nl=False)
    elif found or unusable:
        show_lines(listing(found, unusable, width=width()))
    if left_out:
        say(f"{left_out} older: mcpspy list --all")
    elif not found and since is not None:
        say(f"Nothing was recorded {since.words}.")
    elif not found:
        _say_nothing_yet()
    _say_what_is_kept()


def _say_what_is_kept() -> None:
    """How much there is, what becomes of it, and what is gone: who looks for an old recording has to know."""
    empty = len(empty_files(wall_ns=time.time_ns()))
    if empty:
        say(f"{counted(empty, 'empty file')} of taps that were killed before they wrote anything: mcpspy prune removes them")
    files, size_bytes = taken()
    if files or quota_bytes() is not None:
        say(keeping_line(files, size_bytes, quota_bytes()))
    for by_quota in (False, True):
        gone = pruned(by_quota=by_quota)
        if gone.captures:
            when = wall_time(gone.last_wall_ns).strftime("%Y-%m-%d %H:%M")
            say(gone_line(gone.recordings, gone.captures, gone.bytes, when=when, by_quota=by_quota))


def _kept() -> StoreUsage:
    files, size_bytes = taken()
    asked, by_quota = pruned(), pruned(by_quota=True)
    return StoreUsage(
        captures=files,
        size_bytes=size_bytes,
        max_bytes=quota_bytes(),
        gone_captures=asked.captures + by_quota.captures,
        gone_bytes=asked.bytes + by_quota.bytes,
        gone_wall_ns=max(asked.last_wall_ns, by_quota.last_wall_ns) or None,
    )


def overview() -> None:
    """The newest recordings, and the next useful command: what bare `mcpspy` says."""
    found, unusable, _ = _listed(OVERVIEW_RECORDINGS)
    if not found:
        _say_nothing_yet()
        say("mcpspy --help lists all commands.")
        return
    show_lines(listing(found, unusable, width=width()))
    live = any(capture.state is CaptureState.LIVE for recording in found for capture in recording.captures)
    say("")
    say("mcpspy show -f follows what is being said." if live else "mcpspy show shows what was said in the newest recording.")
    say("mcpspy --help lists all commands.")


def _say_nothing_yet() -> None:
    say(f"Nothing has been recorded yet. Looked in {safe_text(captures_folder())}.")
    say("mcpspy wrap puts mcpspy before the servers of your clients; or try mcpspy demo.")


def _listed(limit: int | None, since: Since | None = None) -> tuple[list[RecordingLine], list[UnreadableFile], int]:
    """The newest recordings as the view wants them, what cannot be read, and how many recordings are left out.

    Of `since` those into which was recorded since then, by the addresses that they have among all.
    """
    now_ns = time.time_ns()
    known = entries()
    all_found = recordings(known)
    if since is not None:
        from ..capture.store.recent import is_touched

        wanted = [one for one in all_found if any(is_touched(each, since.wall_ns) for each in one.own)]
        known = [one for one in known if is_touched(one, since.wall_ns)]
    else:
        wanted = all_found[:limit]
    shown = set(map(id, wanted))
    named = all_found[: max((at + 1 for at, one in enumerate(all_found) if id(one) in shown), default=0)]
    names = addresses([any(map(has_message, one.entries)) for one in named])
    counts = {one.path: count(one) for recording in wanted for one in recording.entries}
    found = [_recording(one, name, counts, now_ns) for one, name in zip(named, names, strict=True) if id(one) in shown]
    broken = [
        UnreadableFile(path=one.path, file=os.path.basename(one.path), reason=one.error)
        for one in known
        if not one.header and (one.size_bytes or one.live)
    ]
    left_out = 0 if since is not None else len(all_found) - len(found)
    return found, broken[:limit], left_out


def _recording(recording: Recording, address: str, counts: dict[str, Count], now_ns: int) -> RecordingLine:
    header = recording.own[0].header
    pid = header.parent.get("pid") if header else None
    return RecordingLine(
        address=address,
        client=recording.client,
        client_pid=pid if isinstance(pid, int) else None,
        captures=tuple(_capture(one, counts[one.path], now_ns) for one in recording.entries),
    )


def _capture(entry: CatalogEntry, counted: Count, now_ns: int) -> CaptureLine:
    state = CaptureState.COMPLETE if entry.end else CaptureState.LIVE if entry.live else CaptureState.INCOMPLETE
    return CaptureLine(
        path=entry.path,
        file=os.path.basename(entry.path),
        capture_id=entry.header.capture_id if entry.header else "",
        label=entry.label,
        begin=wall_time(entry.begin_ns),
        begin_ns=entry.begin_ns,
        lasted_ns=max(0, now_ns - entry.begin_ns) if entry.live else entry.last_ns,
        messages=counted.messages,
        counted=counted.whole,
        size_bytes=entry.size_bytes,
        gaps=counted.gaps,
        state=state,
        is_model=entry.is_model,
    )
