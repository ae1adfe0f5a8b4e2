"""The server's process: started exactly as asked, watched, and at the end signalled, it and what it started.

Refuses shells, changed environments and process groups: the child stays in our group, so that a client that signals the group
reaches it. `subprocess` and `ctypes` are avoided for what they cost at start-up (2 and 3 ms, CPython 3.11).
"""

from __future__ import annotations

import errno
import os
import sys

from ..native import c_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from signal import SIG_DFL, SIGCHLD, SIGKILL, SIGPIPE, SIGXFSZ, signal
else:  # `signal` itself imports `enum`: 4 ms
    from _signal import SIG_DFL, SIGCHLD, SIGKILL, SIGPIPE, SIGXFSZ, signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform.startswith("linux")

_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python sets LC_CTYPE to at its start where it finds the C locale (PEP 538)."""


class ServerProcess:
    """The server's process and our ends of its pipes."""

    __slots__ = ("_failure_fd", "pid", "stderr", "stdin", "stdout")

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int, failure_fd: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._failure_fd = failure_fd

    def failure(self) -> OSError | None:
        """Wait until the command runs, or has failed to: then say why. To be called once."""
        with open(self._failure_fd, "rb") as file:
            code = file.read()
        return OSError(int(code), os.strerror(int(code))) if code else None


def restore_locale() -> None:
    """Take back what Python itself has put into our environment in the C locale: the server would not have found it there.

    Linux only: other systems do not tell with which environment we began.
    """
    if os.environ.get("LC_CTYPE") not in _COERCED:
        return
    try:
        with open("/proc/self/environ", "rb") as file:
            found = [one for one in file.read().split(b"\0") if one.startswith(b"LC_CTYPE=")]
    except OSError:
        return
    if found:
        os.environb[b"LC_CTYPE"] = found[0].partition(b"=")[2]
    else:
        del os.environ["LC_CTYPE"]


def spawn(argv: Sequence[str]) -> ServerProcess:
    """Start `argv` with our environment and working directory; PATH is searched as a shell does.

    Raises: OSError: if there are no descriptors or processes left. A command that cannot be run is told by `ServerProcess.failure`.
    """
    child_in, our_in = os.pipe()
    our_out, child_out = os.pipe()
    our_err, child_err = os.pipe()
    failure_read, failure_write = os.pipe()
    prctl = _prctl()
    parent = os.getpid()
    as_found = signal(SIGCHLD, SIG_DFL)  # where it is ignored, nobody learns how a child ended
    pid = os.fork()
    if pid == 0:
        signal(SIGCHLD, as_found)
        _become(argv, (child_in, child_out, child_err), failure_write, prctl, parent)
    for fd in (child_in, child_out, child_err, failure_write):
        os.close(fd)
    os.set_blocking(our_in, False)
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # after the spawn: what loses its parent from now on is ours to find
    return ServerProcess(pid, our_in, our_out, our_err, failure_read)


def _become(
    argv: Sequence[str], pipes: Iterable[int], failure_fd: int, prctl: Callable[..., object] | None, parent: int
) -> None:
    """In the forked child: turn into the command, or report the error number and exit with 127."""
    code = errno.EINVAL
    try:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)  # what befalls us by SIGKILL befalls the server, as it would without us
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
    """Do what execvp(3) does with a text that does not say what runs it, for so do Node's clients. Returns where that is no text."""
    folders = [""] if "/" in argv[0] else os.get_exec_path()
    path = next(path for folder in folders if os.access(path := os.path.join(folder, argv[0]), os.X_OK))
    with open(path, "rb") as file:
        is_text = b"\0" not in file.read(128)
    if is_text:
        os.execv("/bin/sh", ["/bin/sh", path, *argv[1:]])


def _prctl() -> Callable[..., object] | None:
    """prctl(2), or None where there is none."""
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
    """The process with this pid, or None if there is none, or only a zombie, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    name, _, rest = stat[stat.index(b"(") + 1 :].rpartition(b")")
    fields = rest.split()
    if fields[0] in (b"Z", b"X"):
        return None
    return ListedProcess(pid, name.decode(errors="replace"), int(fields[1]), int(fields[3]), int(fields[19]))


def descendants() -> list[ListedProcess]:
    """Every live process below this one, the nearest first. A subreaper's descendants never escape by losing their parent."""
    listed = _listed()
    below = {os.getpid()}
    found: list[ListedProcess] = []
    while True:
        new = [one for one in listed if one.parent in below and one.pid not in below]
        if not new:
            return found
        found += new
        below.update(one.pid for one in new)


def _listed() -> list[ListedProcess]:
    if os.path.isdir("/proc/self"):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [one for one in map(process, pids) if one is not None]
    with os.popen("ps -axo pid=,ppid=,sess=,stat=,comm=") as listing:  # the BSDs and macOS
        rows = [line.split(None, 4) for line in listing]
    return [
        ListedProcess(int(row[0]), os.path.basename(row[4].strip()), int(row[1]), os.getsid(0), 0)
        for row in rows
        if len(row) == 5 and not row[3].startswith("Z")
    ]


def pipe_name(fd: int) -> str:
    """The pipe at `fd`, as the system names it in the list of a process's descriptors."""
    return f"pipe:[{os.fstat(fd).st_ino}]"


def holds(pid: int, pipe_names: set[str]) -> bool:
    """Whether the process has one of these pipes open. False where the system does not list descriptors."""
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
    """Every live process of the session that the process with this pid began."""
    return [one for one in _listed() if one.session == session]
