"""Windows on Linux: see sitecustomize.py, which plays it.

Only mcpspy's own modules see Windows: the standard library, other people's packages and the tests go on with Linux. A module that
differs gets a class which looks at who asks. Played are the names that are missing, the values of `sys.platform` and `os.name`,
the names of files that Windows refuses, and files that cannot be replaced or removed while somebody has them open.
Closing a descriptor blocks while another thread is blocked with it; those of sockets are no files; `os.kill` ends a process without
asking it, and `taskkill` all below it; scripts with the extension `.cmd` are run by what COMSPEC names.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import builtins
import errno
import fcntl
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from stat import S_ISSOCK
from types import ModuleType
from typing import Any

from names import asker, ignore_case  # type: ignore[import-not-found]  # it stands beside us, and PYTHONPATH names this folder

MODULES = {
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "resource",
    "termios",
    "tty",
    "_ctypes",
    "_posixsubprocess",
    "_curses",
    "syslog",
}
"""Modules that Windows lacks, or, as the C part of ctypes, whose functions for libraries it lacks."""

SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
"""The signals that it has. SIGBREAK, CTRL_C_EVENT and CTRL_BREAK_EVENT exist there alone."""

LACKING = {
    "os": """O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH
        O_SYNC O_TMPFILE WCOREDUMP WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WTERMSIG chown chroot ctermid
        environb eventfd fchdir fchmod fchown fdatasync fork forkpty getegid geteuid getgid getgrouplist getgroups
        getpgid getpgrp getpriority getresuid getsid getuid get_blocking initgroups killpg lchown lockf major makedev
        memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn
        posix_spawnp pread preadv pwrite pwritev readv register_at_fork sched_getaffinity sched_yield sendfile setgid setpgid
        setpriority setsid setuid set_blocking splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4
        waitid writev""",
    "select": "PIPE_BUF POLLERR POLLHUP POLLIN POLLMSG POLLNVAL POLLOUT POLLPRI POLLRDHUP epoll poll",
    "signal": """ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm getitimer pause pidfd_send_signal
        pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo""",
    "socket": """AF_ALG AF_CAN AF_NETLINK AF_PACKET AF_UNIX AF_VSOCK CMSG_LEN MSG_DONTWAIT MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK
        SO_PEERCRED SO_REUSEPORT TCP_INFO TCP_QUICKACK TCP_USER_TIMEOUT sethostname""",
    "time": "clock_gettime clock_gettime_ns clock_settime pthread_getcpuclockid tzset",
}
VALUES: dict[str, dict[str, Any]] = {
    "sys": {"platform": "win32"},
    "os": {"name": "nt", "O_BINARY": 0},
    "signal": {"SIGBREAK": 21},
    "subprocess": {},
}

PROGRAMS = ("taskkill", "taskkill.exe", "powershell.exe")
"""Programs of Windows that are played, by this file."""

MOST_IN_SELECT = 512
_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$')
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)

_readlink, _listdir, _stat, _fspath = os.readlink, os.listdir, os.stat, os.fspath
_first_parent = os.getppid()
"""Windows goes on to name it when it has ended."""

_read, _write, _close, _dup2, _kill, _fstat = os.read, os.write, os.close, os.dup2, os.kill, os.fstat
_set_blocking, _set_wakeup_fd = os.set_blocking, signal.set_wakeup_fd
_real_poll, _pidfd_open = select.poll, os.pidfd_open
_Popen = subprocess.Popen


def play() -> None:
    """Let mcpspy's modules see Windows."""
    for module, name in ((os, "os"), (select, "select"), (socket, "socket"), (_socket, "socket"), (sys, "sys"), (time, "time")):
        _differ(module, name)
    VALUES["os"].update(
        read=_read_of_files, write=_write_of_files, close=_close_once_free, dup2=_dup2_once_free, kill=_terminate
    )
    VALUES["signal"].update(set_wakeup_fd=_wake_up_by)
    socket.socket.setsockopt = _setsockopt  # type: ignore[method-assign,assignment]
    VALUES["subprocess"].update(Popen=WindowsPopen)
    _differ(subprocess, "subprocess")
    for module in (signal, _signal):
        _differ(module, "signal")
    for name in ("open", "mkdir", "stat", "lstat"):
        setattr(os, name, _refusing_names(getattr(os, name)))
    builtins.open = _refusing_names(open)
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, _refusing_names(_refusing_open_files(getattr(os, name))))
    ignore_case(_is_ours)
    select.select = _select_of_sockets(select.select)
    builtins.__import__ = _without_modules(builtins.__import__)


def _is_ours(name: object) -> bool:
    if name == "__main__":  # as with `python -m mcpspy`
        name = getattr(vars(sys.modules["__main__"]).get("__spec__"), "name", "")
    return isinstance(name, str) and (name == "mcpspy" or name.startswith("mcpspy."))


def _differ(module: ModuleType, name: str) -> None:
    """Give a module other contents for mcpspy."""
    lacking = frozenset(LACKING.get(name, "").split())
    values = VALUES.get(name, {})
    get = ModuleType.__getattribute__
    if name == "signal":
        lacking |= {number for number in dir(module) if re.fullmatch("SIG[A-Z0-9]+", number)} - SIGNALS - {"SIG_DFL", "SIG_IGN"}

    class Played(ModuleType):
        def __getattribute__(self, attribute: str) -> Any:
            if (attribute in lacking or attribute in values) and _is_ours(sys._getframe(1).f_globals.get("__name__")):
                if attribute in values:
                    return values[attribute]
                raise AttributeError(f"module '{name}' has no attribute '{attribute}' on Windows")
            return get(self, attribute)

    module.__class__ = Played


def _without_modules(real: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
    def find(name: str, asker: Any = None, *others: Any, level: int = 0, **named: Any) -> ModuleType:
        level = others[2] if len(others) == 3 else level
        if name == "_winapi" and _is_ours((asker or {}).get("__name__")):
            return _winapi()
        if name == "msvcrt" and _is_ours((asker or {}).get("__name__")):
            return _msvcrt()
        if level == 0 and name in MODULES and _is_ours((asker or {}).get("__name__")):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real(name, asker, *others, **named) if len(others) == 3 else real(name, asker, *others, level=level, **named)

    return find


def _msvcrt() -> ModuleType:
    """Return the part of this module that is played: the locks of bytes, which are one lock of the file here."""

    def locking(fd: int, mode: int, size_bytes: int) -> None:
        assert os.lseek(fd, 0, os.SEEK_CUR) >= 1 << 32, "nobody can read bytes that are locked"
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (fcntl.LOCK_NB if mode == 2 else 0))
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module = ModuleType("msvcrt")
    vars(module).update(locking=locking, LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2)
    return module


def _winapi() -> ModuleType:
    """Return the part of this module that is played: a process that is held open, and a wait for its end."""

    def open_process(rights: int, inherit: int, pid: int) -> int:
        if not has_not_ended(pid):
            raise OSError(errno.EINVAL, "The parameter is incorrect")
        return pid

    def wait(pid: int, wait_ms: int) -> int:
        assert wait_ms == 0xFFFFFFFF
        waiting = _real_poll()
        waiting.register(fd := _pidfd_open(pid), 1)
        waiting.poll()
        _close(fd)
        return 0

    module = ModuleType("_winapi")
    vars(module).update(OpenProcess=open_process, WaitForSingleObject=wait)
    return module


def has_not_ended(pid: int) -> bool:
    """Return whether there is such a process, which is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _refusing_names(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        paths = [path for path in arguments[:2] if isinstance(path, str | os.PathLike)]
        if paths and _is_ours(asker()):
            for path in (str(_fspath(path)) for path in paths):
                if path.startswith("/proc"):
                    raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
                for part in path.split("/"):
                    if part not in (".", "..") and (_FORBIDDEN.search(part) or _DEVICE.fullmatch(part)) and path != os.devnull:
                        raise OSError(errno.EINVAL, "Invalid argument", path)
        return function(*arguments, **named)

    return call


def _refusing_open_files(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*paths: Any, **named: Any) -> Any:
        if _is_ours(asker()):
            for path in paths[:2]:
                if is_open(str(_fspath(path))):
                    raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return function(*paths, **named)

    return call


def is_open(path: str) -> bool:
    """Return whether any process has the file open."""
    try:
        wanted = _stat(path)
    except OSError:
        return False
    for pid in filter(str.isdigit, _listdir("/proc")):
        try:
            for fd in _listdir(f"/proc/{pid}/fd"):
                try:
                    if os.path.samestat(_stat(f"/proc/{pid}/fd/{fd}"), wanted):
                        return True
                except OSError:
                    continue
        except OSError:
            continue
    return False


# Descriptors: those of sockets are no files, and the C library locks one while a call is blocked with it

_busy: Counter[int] = Counter()
_freed = threading.Condition()


@contextmanager
def _locked(fd: int) -> Iterator[None]:
    if S_ISSOCK(_fstat(fd).st_mode):
        raise OSError(errno.EBADF, "Bad file descriptor")
    with _freed:
        _busy[fd] += 1
    try:
        yield
    finally:
        with _freed:
            _busy[fd] -= 1
            _freed.notify_all()


def _read_of_files(fd: int, size: int) -> bytes:
    with _locked(fd):
        return _read(fd, size)


def _write_of_files(fd: int, data: Any) -> int:
    with _locked(fd):
        return _write(fd, data)


def _close_once_free(fd: int) -> None:
    with _freed:
        _freed.wait_for(lambda: not _busy[fd])
    _close(fd)


def _dup2_once_free(fd: int, other: int, *, inheritable: bool = True) -> int:
    with _freed:
        _freed.wait_for(lambda: not _busy[other])
    return _dup2(fd, other, inheritable)


def _setsockopt(self: socket.socket, level: int, option: int, *value: Any) -> None:
    """Set an option; that of lingering is of two short numbers there."""
    if option == socket.SO_LINGER and len(value[0]) == struct.calcsize("hh"):
        value = (struct.pack("ii", *struct.unpack("hh", value[0])),)
    _socket.socket.setsockopt(self, level, option, *value)


# Processes and signals


def _wake_up_by(fd: int, **named: Any) -> int:
    if fd >= 0:
        _set_blocking(fd, False)  # as Linux wants it
    return _set_wakeup_fd(fd, **named)


def _terminate(pid: int, number: int) -> None:
    assert number in (signal.SIGTERM, signal.SIGINT), "0 is CTRL_C_EVENT, and others are refused"
    _kill(pid, signal.SIGKILL)


class WindowsPopen(_Popen[bytes]):
    """A process as Windows starts it: not a signal ends one, but an exit code that is given to it. A command may be a line."""

    def __init__(self, args: Any, *, creationflags: int = 0, **named: Any) -> None:
        if isinstance(args, str):
            program, _, rest = args.partition(" ")
            args = [program, rest]
        played = [sys.executable, "-E", "-S", __file__]
        words = [[*played, word] if os.path.basename(word).lower() in PROGRAMS else [word] for word in args]
        if os.path.basename(args[0]) == "powershell.exe":
            words.append([str(os.getpid()), str(_first_parent)])
        super().__init__([part for word in words for part in word], **named)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code."""
        code: int = super().wait(timeout)
        return 128 - code if code < 0 else code


def taskkill(pid: int) -> int:
    """End a process and all below it; return the exit code."""
    if not os.path.exists(f"/proc/{pid}"):
        return 128
    parents = {int(name): _parent(int(name)) for name in _listdir("/proc") if name.isdigit()}
    tree = [pid]
    for parent in tree:
        tree += [child for child, its in parents.items() if its == parent and child not in tree]
    for number in tree:
        try:
            _kill(number, signal.SIGKILL)
        except OSError:
            pass
    return 0


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _select_of_sockets(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(reading: Any, writing: Any, failing: Any, timeout_s: float | None = None) -> Any:
        if _is_ours(asker()):
            for waited in (reading, writing, failing):
                if len(waited) > MOST_IN_SELECT:
                    raise ValueError("too many file descriptors in select()")
                for item in waited:
                    fd = item if isinstance(item, int) else item.fileno()
                    if not _readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                        raise OSError(10038, "An operation was attempted on something that is not a socket")
        return function(reading, writing, failing, timeout_s)

    return call


def list_processes(asker: int, parent: int) -> None:
    """Print pid, parent, start and name of each process, as PowerShell is asked to. The asker's parent is the first that it had."""
    for name in filter(str.isdigit, _listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                program, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        except OSError:
            continue
        fields = rest.split()
        if fields[0] not in (b"Z", b"X"):
            row = b"%b %d %b %b\n" % (name.encode(), parent if int(name) == asker else int(fields[1]), fields[19], program)
            sys.stdout.buffer.write(row)


if __name__ == "__main__":
    if sys.argv[1].startswith("taskkill"):  # /T /F /PID 123
        sys.exit(taskkill(int(sys.argv[-1])))
    list_processes(int(sys.argv[-2]), int(sys.argv[-1]))
