"""macOS on Linux: see sitecustomize.py, which plays it."""

import _ctypes
import _signal  # type: ignore[import-not-found]
import _socket
import builtins
import importlib.util
import os
import resource
import select
import selectors
import struct
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from stat import S_ISCHR, S_ISSOCK
from types import ModuleType
from typing import Any

from names import ignore_case  # type: ignore[import-not-found]  # it stands beside us, and PYTHONPATH names this folder

LACKING = {
    os: "eventfd eventfd_read eventfd_write fdatasync getrandom getresuid getresgid getxattr listxattr posix_fadvise"
    " posix_fallocate removexattr sched_getaffinity sched_getparam sched_getscheduler sched_setaffinity sched_setparam"
    " sched_setscheduler setresgid setresuid setxattr splice unshare setns copy_file_range waitid O_TMPFILE O_PATH O_NOATIME"
    " O_LARGEFILE O_RSYNC",
    _signal: "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    _socket: "AF_ALG AF_CAN AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_ERRQUEUE MSG_FASTOPEN MSG_MORE"
    " MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE SO_DOMAIN SO_INCOMING_CPU SO_MARK SO_PASSCRED"
    " SO_PASSSEC SO_PEERCRED SO_PEERSEC SO_PRIORITY SO_PROTOCOL TCP_CONGESTION TCP_DEFER_ACCEPT TCP_INFO"
    " TCP_KEEPIDLE TCP_LINGER2 TCP_QUICKACK TCP_SYNCNT TCP_USER_TIMEOUT TCP_WINDOW_CLAMP",
    select: "epoll POLLMSG POLLRDHUP",
}
HIDDEN = {os: ("memfd_create", "pidfd_open", "pipe2"), resource: ("prlimit",)}
"""Functions that are hidden from mcpspy: tests may use them."""

C_FUNCTIONS = ("prctl", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "mallopt", "memfd_create", "epoll_create1")
PIPE_BUF = 512
OPEN_MAX = 10_240
RDHUP = 0x2000
HUP, ERR, IN, OUT, NVAL = select.POLLHUP, select.POLLERR, select.POLLIN, select.POLLOUT, select.POLLNVAL
NO_LIMIT = (1 << 63) - 1

SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2

_poll = select.poll
_SO_PEERCRED = _socket.SO_PEERCRED


def play() -> None:
    """Take away what macOS lacks, and change what it does otherwise."""
    for module, names in LACKING.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in [name for name in vars(select) if name.startswith("EPOLL")]:
        delattr(select, name)
    for module, functions in HIDDEN.items():
        for name in functions:
            setattr(module, name, _hidden(name, getattr(module, name)))
    _socket.TCP_KEEPALIVE = 4  # type: ignore[attr-defined]
    _socket.socket = LocalSocket  # type: ignore[misc]
    select.PIPE_BUF = PIPE_BUF  # type: ignore[misc]
    select.poll = KqueuePoll  # type: ignore[misc,assignment]
    # asyncio uses kqueue there: here it goes on with Linux's own poll, which `selectors` has taken
    selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc,assignment]
    _ctypes.dlsym = _without_linux(_ctypes.dlsym)
    _hide_proc()
    _limit_files()
    ignore_case(_is_mcpspy)
    sys.meta_path.append(SysconfigFinder())
    sys.platform = "darwin"
    sys.modules["_scproxy"] = _scproxy()


def _is_mcpspy(name: str) -> bool:
    return name.startswith("mcpspy")


def _asks_mcpspy() -> bool:
    """Return whether the caller of our caller is mcpspy's own code."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).startswith("mcpspy")


def _hidden(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if _asks_mcpspy():
            raise AttributeError(f"macOS has no {name}")
        return function(*arguments, **named)

    return call


def _without_linux(dlsym: Callable[[int, str], int]) -> Callable[[int, str], int]:
    def find(handle: int, name: str) -> int:
        if name in C_FUNCTIONS:
            raise OSError(f"dlsym(RTLD_DEFAULT, {name}): symbol not found")
        return dlsym(handle, name)

    return find


def _hide_proc() -> None:
    def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            path = arguments[0] if arguments else None
            if isinstance(path, str) and (path == "/proc" or path.startswith("/proc/")) and _asks_mcpspy():
                raise FileNotFoundError(2, "No such file or directory", path)
            return function(*arguments, **named)

        return call

    for name in ("open", "listdir", "readlink", "stat", "lstat", "scandir"):
        setattr(os, name, hiding(getattr(os, name)))
    builtins.open = hiding(open)


def _limit_files() -> None:
    get, set_limit = resource.getrlimit, resource.setrlimit

    def getrlimit(which: int) -> tuple[int, int]:
        soft, hard = get(which)
        return (soft, NO_LIMIT) if which == resource.RLIMIT_NOFILE and _asks_mcpspy() else (soft, hard)

    def setrlimit(which: int, limits: tuple[int, int]) -> None:
        if which == resource.RLIMIT_NOFILE and _asks_mcpspy():
            if limits[0] != get(which)[0] and not 0 <= limits[0] <= OPEN_MAX:
                raise ValueError("not allowed to raise maximum limit")
            limits = limits[0], get(which)[1] if limits[1] == NO_LIMIT else limits[1]
        set_limit(which, limits)

    resource.getrlimit, resource.setrlimit = getrlimit, setrlimit
    resource.RLIM_INFINITY = NO_LIMIT  # type: ignore[misc]


def _scproxy() -> ModuleType:
    module = ModuleType("_scproxy")
    vars(module).update(_get_proxies=dict, _get_proxy_settings=dict)
    return module


class SysconfigFinder:
    """A finder of the settings that this Python was built with, whose module is named after the system."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        wanted = name.replace("_sysconfigdata__darwin", "_sysconfigdata__linux")
        return None if wanted == name else importlib.util.find_spec(wanted)


class LocalSocket(_socket.socket):
    """A socket that says who is at the other end in the way of macOS's `unix(4)`."""

    __slots__ = ()

    def getsockopt(self, level: int, option: int, size: int = 0, /) -> Any:
        """Return an option's value: a number, or `size` bytes."""
        if level == SOL_LOCAL and self.family == _socket.AF_UNIX and option in (LOCAL_PEERCRED, LOCAL_PEERPID):
            pid, user, group = struct.unpack("3i", super().getsockopt(_socket.SOL_SOCKET, _SO_PEERCRED, 12))
            xucred = struct.pack("=IIh2x16I", 0, user, 1, group, *[0] * 15)
            return pid if option == LOCAL_PEERPID else xucred[:size]
        return super().getsockopt(level, option, size) if size else super().getsockopt(level, option)


class KqueuePoll:
    """poll(2) of macOS, which is built on kqueue (xnu, bsd/kern/sys_generic.c).

    A hang-up is reported only to who waits for reading, writing or a hang-up; the end of a socket's other half is one.
    What is not read makes it return at once, also if nobody waits for reading but for a hang-up.
    A device that is no terminal cannot be waited for: then it returns at once, and says nothing of the others.
    """

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}

    def register(self, fd: int, events: int = IN | OUT) -> None:
        self._asked[fd] = events

    def modify(self, fd: int, events: int) -> None:
        if fd not in self._asked:
            raise FileNotFoundError(2, "No such file or directory")
        self._asked[fd] = events

    def unregister(self, fd: int) -> None:
        del self._asked[fd]

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        unfit = [(fd, NVAL) for fd, events in self._asked.items() if events and _is_unfit(fd)]
        if unfit:
            return unfit
        inner, sockets = _poll(), set()
        for fd, events in self._asked.items():
            if not events:
                continue
            mode = os.fstat(fd).st_mode
            wanted = events & (IN | OUT)
            if S_ISSOCK(mode):
                sockets.add(fd)
                wanted |= RDHUP if events & (IN | HUP) else 0
            if events & HUP:
                wanted |= IN
            inner.register(fd, wanted)
        ready = []
        for fd, found in inner.poll(timeout):
            asked = self._asked[fd]
            hung = HUP if found & (HUP | ERR) or (found & RDHUP and fd in sockets) else 0
            events = hung | (found & asked & IN) | (0 if hung and found & (HUP | ERR) else found & asked & OUT)
            if hung and asked & IN:
                events |= IN
            if events:
                ready.append((fd, events))
        return ready


def _is_unfit(fd: int) -> bool:
    try:
        return S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd)
    except OSError:
        return True
