"""A stdio server that does what its command line says, step by step, and then ends with status 0.

    puppet.py STEP…

    say=WORDS         a line on stdout; {pid} in it is our process id
    write=TEXT        the same without the newline
    complain=WORDS    a line on stderr
    await=WORDS       read stdin up to the line of these words
    echo[=FILE]       copy stdin to stdout until its end, and to FILE first
    swallow[=FILE]    read stdin to its end, and write it to FILE
    flood=FD:COUNT    COUNT lines of 4096 bytes, each begins with its number
    repeat=WORDS      that line on stdout, for ever
    close=FD          close one of the standard streams
    ignore=TERM,HUP   take these signals and do nothing but complain of each
    grandchild[=FD,…] start a process that holds these streams of ours (0,1,2 unless told) and waits; its pid is a line on stdout
    daemon            start one with a session and files of its own; its pid is a line on stdout
    report            a line of JSON: argv, cwd, environment, ignored and blocked signals
    after=MS          do the next step so many milliseconds later
    linger            wait
    exit=STATUS       end with this status
    die=SEGV          end by this signal

A test starts hundreds of them, so it imports next to nothing. It ends by itself a minute after it started.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

LIFE_S = 60
LINE_BYTES = 4096
LINES_AT_ONCE = 16


def put(fd: int, data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def log(path: str) -> int:
    """Open a descriptor that appends to the file at `path`, or to nowhere."""
    return os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def say(words: str) -> None:
    put(1, words.replace("{pid}", str(os.getpid())).encode() + b"\n")


def write(text: str) -> None:
    put(1, text.encode())


def complain(words: str) -> None:
    put(2, words.encode() + b"\n")


def await_(words: str) -> None:
    line = b""
    while byte := os.read(0, 1):
        if byte == b"\n" and line == words.encode():
            return
        line = b"" if byte == b"\n" else line + byte


def echo(path: str) -> None:
    copy = log(path)
    while data := os.read(0, 1 << 16):
        put(copy, data)
        put(1, data)


def swallow(path: str) -> None:
    copy = log(path)
    while data := os.read(0, 1 << 20):
        put(copy, data)


def flood(fd_and_count: str) -> None:
    fd, count = map(int, fd_and_count.split(":"))
    for begin in range(0, count, LINES_AT_ONCE):
        numbers = range(begin, min(begin + LINES_AT_ONCE, count))
        put(fd, b"".join(b"%012d " % number + b"x" * (LINE_BYTES - 14) + b"\n" for number in numbers))


def repeat(words: str) -> None:
    while True:
        put(1, words.encode() + b"\n")


def close(fd: str) -> None:
    os.close(int(fd))


def ignore(names: str) -> None:
    for name in names.split(","):
        signal.signal(getattr(signal, f"SIG{name}"), lambda number, _frame: complain(signal.Signals(number).name))


def grandchild(fds: str) -> None:
    kept = {int(fd) for fd in (fds or "0,1,2").split(",")}

    def let_go() -> None:
        for fd in {0, 1, 2} - kept:
            os.close(fd)

    start_another(let_go)


def daemon(_value: str) -> None:
    def leave() -> None:
        os.setsid()
        for fd in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)

    start_another(leave)


def start_another(prepare: Callable[[], None]) -> None:
    """Fork, and say the new process's pid once it is prepared."""
    waiting, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(LIFE_S)
        prepare()
        os.close(waiting)
        os.close(done)
        linger("")
    os.close(done)
    os.read(waiting, 1)
    os.close(waiting)
    say(str(pid))


def report(_value: str) -> None:
    import json

    with open("/proc/self/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file)
    facts = {
        "argv": sys.argv[1:],
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "ignored": int(status["SigIgn"], 16),
        "blocked": int(status["SigBlk"], 16),
    }
    write(json.dumps(facts) + "\n")


def after(ms: str) -> None:
    time.sleep(int(ms) / 1000)


def linger(_value: str) -> None:
    while True:
        signal.pause()


def exit_(status: str) -> None:
    os._exit(int(status))


def die(name: str) -> None:
    number = getattr(signal, f"SIG{name}")
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    linger("")


STEPS: dict[str, Callable[[str], None]] = {
    "say": say,
    "write": write,
    "complain": complain,
    "await": await_,
    "echo": echo,
    "swallow": swallow,
    "flood": flood,
    "repeat": repeat,
    "close": close,
    "ignore": ignore,
    "grandchild": grandchild,
    "daemon": daemon,
    "report": report,
    "after": after,
    "linger": linger,
    "exit": exit_,
    "die": die,
}


def main() -> None:
    """Take the steps."""
    signal.alarm(LIFE_S)
    for word in sys.argv[1:]:
        name, _, value = word.partition("=")
        STEPS[name](value)


main()
