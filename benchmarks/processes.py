"""What processes cost, read from /proc: Linux only."""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums over some processes. A process that is gone counts for nothing."""

    peak_mib: float
    resident_mib: float
    cpu_s: float


def tree(root: int) -> list[int]:
    """The pids of a process and all its living descendants."""
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


def executable(pid: int) -> str:
    """The path of the program a process runs; "" if it is gone."""
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
