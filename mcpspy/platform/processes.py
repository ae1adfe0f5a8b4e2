"""Processes: a server's, started exactly as asked, and the list of what it started, which has to end with it.

There is no shell, no changed environment and no new process group: a client that signals our group reaches the server too.
`subprocess` and `ctypes` are avoided because of what they cost at start-up (2 and 3 ms, CPython 3.11).
"""

from __future__ import annotations

import errno
import os
import sys

from .native import c_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from signal import SIG_DFL, SIGCHLD, SIGKILL, SIGPIPE, SIGXFSZ, signal
    from typing import Final
elif sys.platform != "win32":  # `signal` itself imports `enum`: 4 ms
    from _signal import SIG_DFL, SIGCHLD, SIGKILL, SIGPIPE, SIGXFSZ, signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_EXITING = 0x4
"""PF_EXITING of a process's flags (proc(5)): its files may be closed already, though it is no zombie yet."""
_LINUX = sys.platform.startswith("linux")

KEEPS_ORPHANS = _LINUX
"""Processes that lose their parent, and were started by a server, become ours: Linux makes us their subreaper."""

CAN_FORK: Final = sys.platform != "win32"
"""A process can make a copy of itself."""

END_BY: Final = "taskkill" if sys.platform == "win32" else ""
"""The program that ends a process and all below it, where there are no signals for that."""

CLIENT_END_IS_REPORTED: Final = sys.platform == "win32"
"""Once `client_has_ended` was asked, an alarm reports that it has."""

_seen: dict[int, int] = {}
"""The start of each process that `descendants` found last, where orphans are not kept."""

_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""The values that Python gives LC_CTYPE at its start if it finds the C locale (PEP 538)."""


class ServerProcess:
    """The server's process and our ends of its pipes. On Windows, a `failure` to start it is known at once."""

    __slots__ = ("_failure", "_failure_fd", "_warden_fd", "pid", "stderr", "stdin", "stdout")

    def __init__(
        self,
        pid: int,
        stdin: int,
        stdout: int,
        stderr: int,
        failure_fd: int,
        warden_fd: int = -1,
        failure: OSError | None = None,
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._failure_fd = failure_fd
        self._warden_fd = warden_fd
        self._failure = failure

    def failure(self) -> OSError | None:
        """Wait until the command runs; returns the error if it could not be run. To be called once."""
        if self._failure_fd < 0:
            return self._failure
        with open(self._failure_fd, "rb") as file:
            code = file.read()
        if not code:
            return None
        os.waitpid(self.pid, 0)
        return OSError(int(code), os.strerror(int(code)))

    def on_exit(self) -> None:
        """Take note that the process has ended, and that its pid may become another's."""
        if self._warden_fd >= 0:
            os.write(self._warden_fd, b"x")
            os.close(self._warden_fd)
            self._warden_fd = -1


def restore_locale() -> None:
    """Undo what Python itself puts into our environment in the C locale: without mcpspy the server would not find it there.

    Linux only: other systems do not say with which environment we began.
    """
    if os.environ.get("LC_CTYPE") not in _COERCED:
        return
    try:
        with open("/proc/self/environ", "rb") as file:
            recorded = [variable for variable in file.read().split(b"\0") if variable.startswith(b"LC_CTYPE=")]
    except OSError:
        return
    if recorded:
        os.environb[b"LC_CTYPE"] = recorded[0].partition(b"=")[2]
    else:
        del os.environ["LC_CTYPE"]


def spawn(argv: Sequence[str]) -> ServerProcess:
    """Start `argv` with our environment and working directory; PATH is searched as by a shell.

    A command that cannot be run is reported by `ServerProcess.failure`. Raises: OSError: if no descriptors or processes are left.
    """
    if sys.platform == "win32":
        from .windows_processes import spawn as start

        return ServerProcess(*start(argv))
    child_in, our_in = os.pipe()
    our_out, child_out = os.pipe()
    our_err, child_err = os.pipe()
    failure_read, failure_write = os.pipe()
    prctl = _prctl()
    if prctl is not None:  # before the spawn: a server may start a process and end at once, and that process becomes ours
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent = os.getpid()
    inherited = signal(SIGCHLD, SIG_DFL)  # if it is ignored, nobody learns how a child ended
    pid = os.fork()
    if pid == 0:
        signal(SIGCHLD, inherited)
        _become(argv, (child_in, child_out, child_err), failure_write, prctl, parent)
    for fd in (child_in, child_out, child_err, failure_write):
        os.close(fd)
    os.set_blocking(our_in, False)
    warden_fd = -1
    if prctl is None:
        from .warden import guard

        warden_fd = guard(pid)
    return ServerProcess(pid, our_in, our_out, our_err, failure_read, warden_fd)


def end_with_us(pid: int) -> int | None:
    """Have a process that we started end when we are killed. Return a descriptor: a byte that is written to it takes that back.

    On Windows it stays, and this returns None. Raises: OSError: if no descriptors or processes are left.
    """
    if sys.platform == "win32":
        return None
    from .warden import guard

    return guard(pid)


def client_has_ended(parent: int) -> bool:
    """Return whether the client has ended; `parent` is the process that was our parent when we began.

    On Windows, which does not show it, this is found out in the background from the first call on, and an alarm reports it.
    """
    if sys.platform == "win32":
        from .windows_processes import client_has_ended as has_ended

        return has_ended()
    return os.getppid() != parent


def reap() -> tuple[int, int] | None:
    """Return pid and exit code of a child that has ended, less than 0 if a signal ended it; None if there is none."""
    if sys.platform == "win32":
        from .windows_processes import ended

        return ended()
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def end(pid: int, number: int) -> None:
    """Send a signal to a process; on Windows end it and all below it, whatever the signal."""
    if sys.platform == "win32":
        from .windows_processes import end_tree

        return end_tree(pid)
    try:
        os.kill(pid, number)
    except OSError:
        pass  # it has ended meanwhile


def end_session(pid: int, number: int, *, has_ended: bool) -> None:
    """Send a signal to the whole session that a process began: no other can have its number while one of its processes exists.

    On Windows end the process and all below it, unless it `has_ended`.
    """
    if sys.platform == "win32":
        if not has_ended:
            end(pid, number)
        return
    for member in in_session(pid):
        end(member.pid, number)


def program(argv: Sequence[str]) -> list[str] | str:
    """Return a command as it can be started: a script of Windows is a line for its shell."""
    if sys.platform == "win32":
        from .commands import command_line

        return command_line(argv)
    return list(argv)


def is_in_our_group(pid: int) -> bool:
    """Return whether keys of the terminal send signals to a process and to us. On Windows, all of a console get them."""
    if sys.platform == "win32":
        return True
    try:
        return os.getpgid(pid) == os.getpgrp()
    except OSError:
        return False  # it has ended


def own_session() -> int:
    """Return the session that we are in; on Windows, where there are none, that of every listed process."""
    return 0 if sys.platform == "win32" else os.getsid(0)


def exit_status(status: int) -> int:
    """Return the status as `os._exit` takes it: on Windows, one of more than 31 bits is a negative number there."""
    return status - (1 << 32) if status >= 1 << 31 else status


def _become(argv: Sequence[str], pipes: Iterable[int], failure_fd: int, prctl: Callable[..., int] | None, parent: int) -> None:
    """Become the command, in the forked child; else report the error number and exit with 127."""
    code = errno.EINVAL
    try:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)  # if SIGKILL ends us, it ends the server too, as it would without us
            if os.getppid() != parent:
                os._exit(127)
        for target, fd in enumerate(pipes):
            os.dup2(fd, target)
        for number in (SIGPIPE, SIGXFSZ):  # Python ignores both; a command expects them as the system has them
            signal(number, SIG_DFL)
        os.execvp(argv[0], list(argv))
    except OSError as error:
        code = error.errno or code
        if code == errno.ENOEXEC:
            _become_script(argv)
    except ValueError:
        pass  # an empty argument vector, or a NUL in it
    finally:
        os.write(failure_fd, b"%d" % code)
        os._exit(127)


def _become_script(argv: Sequence[str]) -> None:
    """Run a text file without `#!` by /bin/sh, as execvp(3) and so Node's clients do. Returns if it is no text."""
    folders = [""] if "/" in argv[0] else os.get_exec_path()
    path = next(path for folder in folders if os.access(path := os.path.join(folder, argv[0]), os.X_OK))
    with open(path, "rb") as file:
        is_text = b"\0" not in file.read(128)
    if is_text:
        os.execv("/bin/sh", ["/bin/sh", path, *argv[1:]])


def _prctl() -> Callable[..., int] | None:
    """Return prctl(2), or None on other systems."""
    return c_function("prctl") if _LINUX else None


class ListedProcess:
    """A process as the system lists it. `start` is its start time in the system's own unit, only ever compared."""

    __slots__ = ("name", "parent", "pid", "session", "start")

    def __init__(self, pid: int, name: str, parent: int, session: int, start: int) -> None:
        self.pid = pid
        self.name = name
        self.parent = parent
        self.session = session
        self.start = start


def process(pid: int) -> ListedProcess | None:
    """Return the process with this pid; None if there is none, or if it is a zombie or about to become one."""
    if sys.platform == "win32":
        return None  # it lists processes for programs alone
    if not _LINUX:
        return next(iter(_listed("-p", str(pid))), None)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    name, _, rest = stat[stat.index(b"(") + 1 :].rpartition(b")")
    fields = rest.split()
    if fields[0] in (b"Z", b"X") or int(fields[6]) & _EXITING:
        return None
    return ListedProcess(pid, name.decode(errors="replace"), int(fields[1]), int(fields[3]), int(fields[19]))


def descendants(server: int) -> list[ListedProcess]:
    """Return every live process below this one, the nearest first. A subreaper keeps those that lose their parent.

    Without one, as on macOS, it is the server and what is below it, also what has lost its parent since an earlier call.
    Windows shows it to programs alone: there it is the server itself.
    """
    if sys.platform == "win32":
        from .windows_processes import running

        return [ListedProcess(pid, name, os.getpid(), 0, 0) for pid, name in running()]
    listed = _listed()
    known = {os.getpid() if _LINUX else server}
    below: list[ListedProcess] = []
    if not _LINUX:
        below = [process for process in listed if process.pid == server or _seen.get(process.pid) == process.start]
        known.update(process.pid for process in below)
        _seen.clear()
    while True:
        children = [process for process in listed if process.parent in known and process.pid not in known]
        if not children:
            if not _LINUX:
                _seen.update((process.pid, process.start) for process in below)
            return below
        below += children
        known.update(process.pid for process in children)


def _listed(*which: str) -> list[ListedProcess]:
    if not _LINUX:
        from .ps import rows

        return [ListedProcess(*row) for row in rows(*which or ("-ax",))]
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [listed for listed in map(process, pids) if listed is not None]


def queued_ns(pid: int) -> dict[int, int]:
    """Return how long each thread of a process, and of those that it started, has been ready to run and waited for a processor.

    Empty where the system does not count it: only Linux does, in schedstat of /proc (the kernel's sched-stats.rst).
    """
    pids, queued = [pid], {}
    for parent in pids:
        try:
            tids = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for tid in tids:
            try:
                with open(f"/proc/{parent}/task/{tid}/schedstat", "rb") as file:
                    queued[int(tid)] = int(file.read().split()[1])
                with open(f"/proc/{parent}/task/{tid}/children", "rb") as file:
                    pids.extend(map(int, file.read().split()))
            except (OSError, IndexError):
                continue  # the thread has ended, or the system does not count
    return queued


def pipe_name(fd: int) -> str:
    """Return the name of the pipe at `fd` in the system's list of a process's descriptors."""
    return f"pipe:[{os.fstat(fd).st_ino}]"


def holds_pipe(pid: int, pipe_names: set[str]) -> bool:
    """Return whether the process has one of these pipes open; false where the system lists no descriptors in /proc."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for fd in descriptors:
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}") in pipe_names:
                return True
        except OSError:
            continue
    return False


def in_session(session: int) -> list[ListedProcess]:
    """Return every live process of the session that the process with this pid began. None on Windows, which has no sessions."""
    if sys.platform == "win32":
        return []
    return [process for process in _listed() if process.session == session]
