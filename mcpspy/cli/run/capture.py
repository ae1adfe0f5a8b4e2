"""How a tap's capture begins, whatever is tapped: the file, its header, and the word to the user if there can be none.

`run` comes through here on its way to a server that somebody waits for, so nothing is imported that it can do without.
"""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISCHR

from ... import __version__
from ...capture.file.format import header_line
from ...capture.file.writer import Writer
from ...capture.store.folder import create
from ...live.stdio.process import process
from ...records import Header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Beginning:
    """What is known when a tap begins: `begin_ns` is the monotonic clock, `wall_ns` Unix time, at one instant."""

    __slots__ = ("begin_ns", "label", "max_bytes", "named", "quiet", "redact", "wall_ns")

    def __init__(
        self, *, wall_ns: int, begin_ns: int, label: str, named: str | None, redact: str, max_bytes: int, quiet: bool
    ) -> None:
        self.wall_ns = wall_ns
        self.begin_ns = begin_ns
        self.label = label
        self.named = named
        self.redact = redact
        self.max_bytes = max_bytes
        self.quiet = quiet


def open_writer(beginning: Beginning, tapped: dict[str, Any]) -> tuple[Writer | None, str]:
    """The writer of a new capture and its path. Where none can be made, which stderr is told, None: traffic comes first.

    `tapped` goes into the header as it is: redacted.
    """
    named = beginning.named
    try:
        if named and _is_a_stream_of_ours(named):
            raise OSError(EINVAL, "the protocol goes there", named)
        fd, path = create(named, beginning.label, wall_ns=beginning.wall_ns)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"mcpspy: not recording: {where}{error.strerror or error}; traffic goes on")
        return None, ""
    if named and path != named:
        say(f"mcpspy: {named} exists; recording to {path}")
    elif not beginning.quiet and os.isatty(2):
        say(f"mcpspy: recording to {path}")
    return Writer(fd, header_line(_header(beginning, tapped)), max_bytes=beginning.max_bytes, complain=say), path


def nowhere(records: object) -> None:
    """The sink where there is no capture."""


def say(line: str) -> None:
    """One line for a person. stdout is the protocol's; and if nobody reads stderr, so be it: the traffic does not wait for it."""
    from select import POLLOUT, poll

    asked = poll()
    asked.register(2, POLLOUT)
    try:
        if asked.poll(0):
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))
    except OSError:
        pass


def _header(beginning: Beginning, tapped: dict[str, Any]) -> Header:
    own, parent_pid = process(os.getpid()), os.getppid()
    parent = process(parent_pid)
    return Header(
        capture_id=os.urandom(8).hex(),
        wall_ns=beginning.wall_ns,
        monotonic_ns=beginning.begin_ns,
        boot_id=_boot_id(),
        pid=os.getpid(),
        start=own.start if own else 0,
        parent={"pid": parent_pid, "name": parent.name if parent else "", "start": parent.start if parent else 0},
        cwd=_cwd(),
        tapped=tapped,
        label=beginning.label,
        redaction=beginning.redact,
        mcpspy_version=__version__,
    )


def _is_a_stream_of_ours(path: str) -> bool:
    """Whether what is written to `path` would get between the messages, as with `--capture /dev/stdout`."""
    try:
        named = os.stat(path)
    except OSError:
        return False
    ours = (own for own in range(3) if os.path.samestat(named, os.fstat(own)))
    return any(os.isatty(own) or not S_ISCHR(named.st_mode) for own in ours)


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was removed
