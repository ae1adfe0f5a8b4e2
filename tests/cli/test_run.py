"""`mcpspy run`: its options, what it passes on to the server's process, and the status it ends with."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.cli.capture_options import RUN, HelpWanted, UsageError, parse, size_bytes
from mcpspy.records import End, Exit, Frame, Header, Note
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.live.client import MARK, Client, ending, puppet, stream

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, before: tuple[str, ...] = ()) -> Done:
    """Run `mcpspy run` to its end, without input."""
    return subprocess.run(
        [sys.executable, "-m", "mcpspy", *before, "run", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def captures() -> list[Path]:
    return list(Path(os.environ["MCPSPY_HOME"]).glob("captures/*"))


def test_a_store_that_others_can_open_is_reported_in_one_line_and_the_server_runs() -> None:
    folder = Path(os.environ["MCPSPY_HOME"])
    folder.mkdir()
    folder.chmod(0o755)
    done = run("--", *puppet("exit=3"))
    assert (done.returncode, len(captures())) == (3, 1)
    assert (
        done.stderr == f"mcpspy: other users can open {folder}, where mcpspy records; if only you need it: chmod 700 {folder}\n"
    )


# The status


@pytest.mark.parametrize("status", [0, 1, 2, 42, 127, 255])
def test_it_ends_with_the_servers_status(status: int) -> None:
    assert run("--", *puppet(f"exit={status}")).returncode == status


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM", "PIPE", *(["RTMIN"] if hasattr(signal, "SIGRTMIN") else [])])
def test_a_server_that_a_signal_ends_is_128_and_its_number(name: str) -> None:
    assert run("--", *puppet(f"die={name}")).returncode == 128 + getattr(signal, f"SIG{name}")


def test_how_the_server_ended_is_recorded() -> None:
    with Client(puppet("die=SEGV")) as client:
        client.wait()
        exit, _ = ending(client.records())
        assert (exit.code, exit.signal) == (None, "SIGSEGV")


# A command that cannot be run


@pytest.fixture
def unusable(tmp_path: Path) -> dict[str, tuple[str, str]]:
    """Commands that cannot be run, and what is said of them."""
    (tmp_path / "text").write_text("no program")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o700)
    (tmp_path / "foreign").write_bytes(b"\x7fFOREIGN\0\0")
    (tmp_path / "foreign").chmod(0o700)
    return {
        "absent": ("no-such-command-anywhere", "command not found"),
        "absent path": (str(tmp_path / "absent"), "command not found"),
        "not executable": (str(tmp_path / "text"), "Permission denied"),
        "a folder": (str(tmp_path), "Permission denied"),
        "no interpreter": (str(tmp_path / "broken"), "command not found"),
        "for another machine": (str(tmp_path / "foreign"), "Exec format error"),
    }


NO_PROGRAM = "the server's command must be an executable program for this machine"
NOT_THERE = "check that the file exists, and the interpreter that its first line names"
ADVICE = {
    "absent": "use its absolute path: the PATH of a client is often shorter than your shell's",
    "absent path": NOT_THERE,
    "not executable": NO_PROGRAM,
    "a folder": NO_PROGRAM,
    "no interpreter": NOT_THERE,
    "for another machine": NO_PROGRAM,
}
"""Advice in the message for each of them."""


@pytest.mark.parametrize("kind", ADVICE)
def test_a_command_that_cannot_be_run_is_127_and_one_clear_line(kind: str, unusable: dict[str, tuple[str, str]]) -> None:
    command, reason = unusable[kind]
    done = run("--", command)
    assert (done.returncode, done.stdout, done.stderr) == (127, "", f"mcpspy: {command}: {reason}; {ADVICE[kind]}.\n")


@pytest.mark.parametrize("is_searched", [False, True], ids=["by its path", "in PATH"])
def test_a_text_that_does_not_say_what_runs_it_is_run_as_execvp_runs_it(tmp_path: Path, *, is_searched: bool) -> None:
    script = tmp_path / "a-script"
    script.write_text('echo "$1"; exit 3')
    script.chmod(0o700)
    command = "a-script" if is_searched else str(script)
    with Client([command, "hi"], environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as client:
        assert client.line() == b"hi\n"
        assert client.wait() == 3


def test_a_command_that_cannot_be_run_leaves_a_capture_that_says_so() -> None:
    with Client(["no-such-command-anywhere"]) as client:
        client.wait()
        exit, end = ending(client.records())
        assert (exit.error, end.why) == ("command not found", "not started")


# Usage


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the server's command is missing"),
        (["--"], "the server's command is missing"),
        (["--", ""], "the server's command is missing"),
        (["--lable", "x", "--", "true"], "there is no option --lable"),
        (["-x", "true"], "there is no option -x"),
        (["--label"], "--label needs a value"),
        (["--label", "--", "true"], "--label needs a value"),
        (["--redact", "some", "--", "true"], "--redact is one of credentials, none, not some"),
        (["--max-size", "lots", "--", "true"], "a size is a number above 0"),
        (["--quiet=yes", "--", "true"], "--quiet takes no value"),
        (["--capture", "", "--", "true"], "--capture needs the name of a file; it is empty"),
        (["--capture=", "--", "true"], "--capture needs the name of a file; it is empty"),
    ],
)
def test_a_wrong_command_line_is_2_and_says_what_to_write(arguments: list[str], complaint: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mcpspy run: {complaint}")
    assert "usage: mcpspy run" in done.stderr
    assert captures() == []


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_shown_among_our_options(word: str) -> None:
    done = run("--label", "x", word)
    assert done.returncode == 0
    assert all(f"--{option.name}" in done.stdout for option in RUN)


@pytest.mark.parametrize("arguments", [["--", "echo", "-h", "--help"], ["echo", "-h", "--help"]])
def test_the_servers_own_options_are_the_servers(arguments: list[str]) -> None:
    assert run(*arguments).stdout == "-h --help\n"


def test_options_before_the_verb_take_none_of_ours_away() -> None:
    done = run("--label", "mine", "--", "echo", "--label", before=("--debug",))
    assert done.stdout == "--label\n"
    assert "mine" in captures()[0].name


def test_options_end_where_the_command_begins() -> None:
    assert parse(["--quiet", "--label=a b", "server", "--label", "c"], RUN) == (
        {"quiet": [""], "label": ["a b"]},
        ["server", "--label", "c"],
    )


def test_two_dashes_after_the_first_belong_to_the_server() -> None:
    assert parse(["--", "npx", "--", "server"], RUN) == ({}, ["npx", "--", "server"])


def test_help_among_the_options_is_found() -> None:
    with pytest.raises(HelpWanted):
        parse(["--quiet", "-h", "--", "server"], RUN)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("500", 500), ("20mb", 20_000_000), ("1.5kb", 1_500), ("1 GB", 10**9), ("2tb", 2 * 10**12), ("7b", 7)],
)
def test_sizes_have_units_of_a_thousand(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "mb", "-1", "0", "0.1", "1e999", "nan", "ten", "1 zb", "0x10"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        size_bytes(text)


# What is passed on


def test_arguments_working_directory_and_environment_are_passed_on_as_they_are(tmp_path: Path) -> None:
    arguments = ["report", "write=", "say=", "write= \t\"'$x*\\", "write=é\u2028", "write=--label"]
    with Client(puppet(*arguments), environment={"FOO": "b=a\nr", "EMPTY": ""}, cwd=tmp_path) as client:
        facts = json.loads(client.line())
        assert facts["argv"] == arguments
        assert facts["cwd"] == str(tmp_path)
        assert facts["environment"].pop(MARK)
        facts["environment"].pop("LC_CTYPE", None)  # what Python itself sets in the C locale, here and there
        here = {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}
        assert facts["environment"] == {**here, "FOO": "b=a\nr", "EMPTY": ""}


@pytest.mark.parametrize("locale", [{}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}])
def test_the_locale_that_python_gives_itself_is_not_passed_on(locale: dict[str, str], tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "MCPSPY_HOME": str(tmp_path), **locale}
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "run", "--", "env"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        env=environment,
        cwd=ROOT,
    )
    assert dict(line.split("=", 1) for line in done.stdout.splitlines()) == environment


@pytest.mark.parametrize("variable", ["PYTHONINSPECT=1", "PYTHONDEVMODE=1", "PYTHONWARNINGS=error", "PYTHONUNBUFFERED=1"])
def test_variables_that_are_meant_for_the_server_change_nothing_in_us(variable: str) -> None:
    name, _, value = variable.partition("=")
    with Client(puppet("say=up", "swallow", "exit=3"), over="sockets", environment={name: value}) as client:
        client.line()
        client.close(client.stdout)
        client.close(client.stdin)
        assert client.wait() == 3
        assert client.rest(client.stderr) == b""


def test_arguments_that_are_no_utf8_are_passed_on_as_they_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "run", "--", "printf", "%s", b"\xff\xfe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout == b"\xff\xfe"


def inherited(*before: str) -> dict[str, int]:
    """Return the signals that a server finds ignored and blocked, bit by bit, if this Python code starts mcpspy."""
    code = "import os, signal, sys\n" + "\n".join(before) + "\nos.execv(sys.argv[1], sys.argv[1:])"
    with Client(puppet("report"), through=(sys.executable, "-c", code)) as client:
        facts = json.loads(client.line())
        assert client.wait() == 0
        return {name: facts[name] for name in ("ignored", "blocked")}


def bit(number: signal.Signals) -> int:
    return 1 << (number - 1)


def ignored_here() -> int:
    """Return the signals that are ignored here: SIGPIPE and SIGXFSZ by Python, as in the server that reports, and some by make."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn:"))


def test_a_server_finds_no_signal_ignored_or_blocked_by_us() -> None:
    assert inherited() == {"ignored": ignored_here(), "blocked": 0}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGALRM])
def test_a_signal_that_was_ignored_when_we_started_is_ignored_by_the_server(number: signal.Signals) -> None:
    assert inherited(f"signal.signal({int(number)}, signal.SIG_IGN)")["ignored"] == ignored_here() | bit(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM])
def test_a_signal_that_was_blocked_when_we_started_is_blocked_in_the_server(number: signal.Signals) -> None:
    assert inherited(f"signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])")["blocked"] == bit(number)


def test_a_hangup_that_nohup_had_us_ignore_ends_nothing() -> None:
    with Client(puppet("say=up", "echo"), through=("nohup",)) as client:
        client.line()
        client.signal(signal.SIGHUP)
        client.send(b"still here\n")
        assert client.line() == b"still here\n"


# What is recorded


def test_the_header_says_what_is_tapped() -> None:
    with Client(puppet("echo"), "--label", "mine") as client:
        header = client.recorded(Header)
        assert header.tapped["argv"] == puppet("echo")
        assert (header.pid, header.parent["pid"], header.label) == (client.pid, os.getpid(), "mine")


def test_a_label_that_is_made_of_the_command_has_no_secret() -> None:
    with Client(["env", "cmd", "server --token hunter2-hunter2 -x"]) as client:
        assert "hunter2" not in client.recorded(Header).label


def test_of_the_environment_only_the_names_are_recorded() -> None:
    with Client(puppet("echo"), environment={"FOO_TOKEN": "hunter2-hunter2"}) as client:
        assert "FOO_TOKEN" in client.recorded(Header).tapped["env"]
        client.close(client.stdin)
        client.wait()
        assert b"hunter2" not in client.capture.read_bytes()


@pytest.mark.parametrize(("options", "kept"), [([], False), (["--redact", "none"], True)])
def test_secrets_on_the_command_line_are_replaced_unless_redaction_is_off(options: list[str], *, kept: bool) -> None:
    with Client(["sh", "-c", "true", "--api-key=hunter2-hunter2"], *options) as client:
        client.wait()
        assert (b"hunter2" in client.capture.read_bytes()) is kept


def test_past_the_largest_size_payloads_are_counted_and_not_kept() -> None:
    with Client(puppet("echo"), "--max-size", "3kb") as client:
        for number in range(20):
            client.send(b"%0200d\n" % number)
            assert client.line() == b"%0200d\n" % number
        client.close(client.stdin)
        client.wait()
        records = client.records()
        frames = [record for record in records if isinstance(record, Frame) and record.stream == 0]
        assert sum(frame.length for frame in frames) == 20 * 201
        assert frames[-1].data == b""
        assert frames[-1].sha256
        assert [record.topic for record in records if isinstance(record, Note)] == ["max-size"]


def test_the_last_record_counts() -> None:
    with Client(puppet("say=one", "complain=two", "write=three")) as client:
        client.wait()
        end = client.records()[-1]
        assert isinstance(end, End)
        assert (end.frames, end.messages) == (3, 2)
        assert end.why == "server exited"


def test_the_path_of_the_capture_is_not_printed_without_a_terminal() -> None:
    with Client(puppet("say=up")) as client:
        client.wait()
        assert client.rest(client.stderr) == b""
        assert stream(client.records(), 1) == b"up\n"
        assert any(isinstance(record, Exit) for record in client.records())


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", *(["/proc/self/fd/1"] if sys.platform == "linux" else [])])
def test_a_capture_never_goes_where_the_protocol_goes(path: str) -> None:
    done = run("--capture", path, "--", "echo", "hi")
    assert done.stdout == "hi\n"
    assert done.stderr == f"mcpspy: not recording: {path}: the protocol goes there; name a file; traffic goes on\n"


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", *(["/proc/self/fd/1"] if sys.platform == "linux" else [])])
def test_nor_to_a_neighbour_of_the_name_where_the_protocol_goes_to_a_file(path: str, tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as out, Client(puppet("say=hi"), "--capture", path, stdout=out.fileno()) as client:
        stderr = client.rest(client.stderr).decode()
        client.wait()
    assert stderr == f"mcpspy: not recording: {path}: the protocol goes there; name a file; traffic goes on\n"
    assert (tmp_path / "out").read_bytes() == b"hi\n"


def test_a_path_that_is_no_file_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = str(folder / "x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        done = run("--capture", path, "--", "echo", "hi")
    assert (
        done.stderr == f"mcpspy: not recording: {path}: this is no file, but a socket or a disk; name a file; traffic goes on\n"
    )
    assert (done.stdout, os.listdir(folder)) == ("hi\n", ["x"])
