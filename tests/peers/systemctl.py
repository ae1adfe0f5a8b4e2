"""A stand-in for `systemctl --user`: it notes how it was called, and can listen as systemd would.

    systemctl.py FOLDER --user VERB …

FOLDER is its memory: `calls` has a line of JSON for each call, `active` exists while the socket listens. A file `fail` names a verb
that fails. With a file `listen`, an enabled `mcpspy.socket` really listens, and a connection starts the command of `mcpspy.service`.
"""

import json
import os
import re
import select
import shlex
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

UNITS = Path.home() / ".config" / "systemd" / "user"


def main() -> int:
    """Do what the verb says."""
    folder, verb, words = Path(sys.argv[1]), sys.argv[3], sys.argv[3:]
    active = folder / "active"
    with (folder / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(words) + "\n")
    fail = folder / "fail"
    if fail.exists() and fail.read_text(encoding="utf-8") == verb:
        print(f"Failed to {verb} unit: it was asked to fail.", file=sys.stderr)
        return 1
    if verb == "is-active":
        is_active = words[-1] == "mcpspy.socket" and active.exists()
        print("active" if is_active else "inactive")
        return 0 if is_active else 3
    if verb == "disable":
        stop(folder)
        active.unlink(missing_ok=True)
    if verb in ("enable", "restart"):
        stop(folder)
        active.touch()
        if (folder / "listen").exists():
            start(folder)
    return 0


def start(folder: Path) -> None:
    """Leave a process behind that listens at the ports of the unit."""
    text = (UNITS / "mcpspy.socket").read_text(encoding="utf-8")
    listeners = [socket.create_server(("127.0.0.1", int(port))) for port in re.findall(r"ListenStream=127.0.0.1:(\d+)", text)]
    pid = os.fork()
    if pid:
        (folder / "pid").write_text(str(pid), encoding="utf-8")
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    select.select(listeners, [], [])
    become_service(listeners)


def become_service(listeners: list[socket.socket]) -> None:
    """Become the command of the service, with the listening sockets from descriptor 3 on."""
    text = (UNITS / "mcpspy.service").read_text(encoding="utf-8")
    command, home = re.search(r"ExecStart=(.*)", text), re.search(r"Environment=(.*)", text)
    assert command
    high = [os.dup(listener.fileno()) for listener in listeners]
    high = [os.dup2(fd, 100 + at) for at, fd in enumerate(high)]
    for at, fd in enumerate(high):
        os.dup2(fd, 3 + at)
    os.environ.update({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(high))})
    if home:
        name, _, value = shlex.split(home[1])[0].partition("=")
        os.environ[name] = value
    words = shlex.split(command[1])
    os.closerange(3 + len(high), 256)
    os.execv(words[0], words)


def stop(folder: Path) -> None:
    """End that process."""
    pid = folder / "pid"
    if pid.exists():
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGTERM)
        pid.unlink()


if __name__ == "__main__":
    sys.exit(main())
