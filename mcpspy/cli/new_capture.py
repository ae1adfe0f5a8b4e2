"""The start of a new capture: its file, its header, and a message to the user if none can be made.

`run` calls this on its way to a server that somebody waits for, so it imports only what it cannot do without.
"""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISCHR

from .. import __version__
from ..capture.file.format import header_line
from ..capture.file.writer import Writer
from ..capture.store.folder import boot_id, captures_folder, create
from ..platform.processes import process
from ..records import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CaptureStart:
    """Facts about a capture that are known when it begins.

    `begin_ns` (monotonic clock) and `wall_ns` (Unix time) are of the same instant. `file` is the one that the user named, if any.
    """

    __slots__ = ("begin_ns", "capture_id", "file", "label", "max_bytes", "quiet", "redact", "wall_ns")

    def __init__(
        self, *, wall_ns: int, begin_ns: int, label: str, file: str | None, redact: str, max_bytes: int, quiet: bool
    ) -> None:
        self.capture_id = os.urandom(8).hex()
        self.wall_ns = wall_ns
        self.begin_ns = begin_ns
        self.label = label
        self.file = file
        self.redact = redact
        self.max_bytes = max_bytes
        self.quiet = quiet


def open_writer(start: CaptureStart, tapped: dict[str, Any]) -> tuple[Writer | None, str]:
    """Create a capture. Returns its writer and its path, or None if it cannot be created: then stderr says so, and traffic goes on.

    `tapped` goes into the header as it is, so it must be redacted already.
    """
    try:
        if start.file and _is_a_stream_of_ours(start.file):
            raise OSError(EINVAL, "the protocol goes there; name a file", start.file)
        fd, path = create(start.file, start.label, wall_ns=start.wall_ns, complain=report)
    except OSError as error:
        from ..views.text.escape import without_logins

        where = f"{without_logins(str(error.filename))}: " if error.filename else ""
        report(f"mcpspy: not recording: {where}{error.strerror or error}; traffic goes on")
        return None, ""
    if start.file and path != start.file:
        report(f"mcpspy: {start.file} exists; recording to {path}")
    elif not start.quiet and os.isatty(2):
        report(f"mcpspy: recording to {path}")
    header = header_line(_header(start, tapped))
    return Writer(fd, header, max_bytes=start.max_bytes, complain=report, begin_ns=start.begin_ns, path=path), path


def nowhere(records: object) -> None:
    """Drop records: the sink when there is no capture."""


def with_quota_guard(
    later: Callable[[Callable[[], None]], None], writer: Writer, path: str
) -> Callable[[Callable[[], None]], None]:
    """Extend `later`, which waits for the disk in a thread, so that it then also enforces the store's quota.

    A capture at a `path` outside the store does not count towards the quota: then `later` is returned as it is.
    """
    if os.path.dirname(path) != captures_folder():
        return later
    look: Callable[[], None] | None = None

    def sync_and_look(sync: Callable[[], None]) -> None:
        nonlocal look
        sync()
        if look is None:
            from ..capture.store.quota import QuotaGuard  # a second after the start, when nobody waits for us

            look = QuotaGuard(writer).look
        look()

    return lambda sync: later(lambda: sync_and_look(sync))


def report(line: str) -> None:
    """Write one line to stderr. Drop it if nobody reads stderr: traffic does not wait for it."""
    from ..platform.descriptors import POLLOUT, poll

    stderr = poll()
    stderr.register(2, POLLOUT)
    try:
        if stderr.poll(0):
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))
    except OSError:
        pass


def _header(start: CaptureStart, tapped: dict[str, Any]) -> Header:
    own, parent_pid = process(os.getpid()), os.getppid()
    parent = process(parent_pid)
    return Header(
        capture_id=start.capture_id,
        wall_ns=start.wall_ns,
        monotonic_ns=start.begin_ns,
        boot_id=boot_id(),
        pid=os.getpid(),
        start=own.start if own else 0,
        parent={"pid": parent_pid, "name": parent.name if parent else "", "start": parent.start if parent else 0},
        cwd=_cwd(),
        tapped=tapped,
        label=start.label,
        redaction=start.redact,
        mcpspy_version=__version__,
    )


def _is_a_stream_of_ours(path: str) -> bool:
    """Return whether bytes written to `path` would be mixed with messages, as with `--capture /dev/stdout`."""
    try:
        named = os.stat(path)
    except OSError:
        return False
    ours = (own for own in range(3) if os.path.samestat(named, os.fstat(own)))
    return any(os.isatty(own) or not S_ISCHR(named.st_mode) for own in ours)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was removed
