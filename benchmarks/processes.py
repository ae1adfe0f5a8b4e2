"""Cost and listening ports of processes, read from /proc, and programs that end when we do. Linux only."""

import os
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

KIB_PER_MIB = 1024
_LISTEN = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums over some processes. A process that is gone counts for nothing."""

    peak_mib: float
    resident_mib: float
    cpu_s: float


def tree(root: int) -> list[int]:
    """Return the pids of a process and all its living descendants."""
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            children[parent].append(int(entry.name))
    pids = [root]
    for pid in pids:
        pids += children[pid]
    return pids


def mortal(argv: list[str]) -> list[str]:
    """Make a command that the system ends when its starter ends, in whatever way."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--", *argv] if setpriv else argv


def listens(port: int, pids: list[int]) -> bool:
    """Check that one of these processes listens on this port of the loopback, or of all addresses."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{words[9]}]")
    return bool(sockets) and any(sockets & _open_files(pid) for pid in pids)


def _open_files(pid: int) -> set[str]:
    found = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found.add(os.readlink(entry))
    except OSError:
        pass  # it is gone, or has closed this one
    return found


def executable(pid: int) -> str:
    """Return the path of the program that a process runs; "" if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def usage(pids: list[int]) -> Usage:
    """Peak and present resident memory, and CPU time over all tasks to the nanosecond."""
    peak_kib = resident_kib = cpu_ns = 0
    for pid in pids:
        process = Path(f"/proc/{pid}")
        try:
            for line in (process / "status").read_text().splitlines():
                if line.startswith("VmHWM"):
                    peak_kib += int(line.split()[1])
                elif line.startswith("VmRSS"):
                    resident_kib += int(line.split()[1])
            cpu_ns += sum(int((task / "schedstat").read_text().split()[0]) for task in (process / "task").iterdir())
        except OSError:
            continue
    return Usage(peak_mib=peak_kib / KIB_PER_MIB, resident_mib=resident_kib / KIB_PER_MIB, cpu_s=cpu_ns / 1e9)
