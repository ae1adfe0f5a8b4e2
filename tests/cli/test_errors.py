"""Tests of error messages: each says what is wrong with a command line, and what to do next."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import AddressError
from tests.cli.terminal import MCPSPY, run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

NEXT = {
    "shwo": "Did you mean show?",
    "uvx mcp-server-time": "To record a server: mcpspy run -- COMMAND.",
    "show": "mcpspy wrap inserts mcpspy between your clients and their servers",
    "show gone.mcpspy": "mcpspy list shows what has been recorded",
    "show --detail params --raw time.mcpspy": "leave out --raw",
    "show --sort took -f time.mcpspy": "leave out -f",
    "export svg time.mcpspy -o gone/x.svg": "Make it with `mkdir -p gone`",
    "show time.mcpspy:99": "the last one is 6",
    "show time.mcpspy:7..2": "as :7 or :7..20",
    "show time.mcpspy:x": "rows are named by their numbers, as :7 or :7..20",
    "show .": "name a capture in it",
    "show time.mcpspy:1 git.mcpspy": "name them once, after the last capture",
    "show -f time.mcpspy:3": "select rows with -F",
    "tui time.mcpspy": "In a script, and for a screen reader, use mcpspy show.",
    "show --raw --json time.mcpspy": "leave one out",
    "show --http --raw time.mcpspy": "use --http --json",
    "show --stats --raw time.mcpspy": "leave one out",
    "show -F tol:x time.mcpspy": "Did you mean tool?",
    "check --select server-deid time.mcpspy": "Did you mean server-died or",
    "check --accept time.mcpspy": "--baseline DIR",
    "check time.mcpspy --baseline gone": "Add --accept to write a baseline there",
    "diff - -": "write the other to a file",
    "diff time.mcpspy git.mcpspy --ignore x": "Write $.x or $..x",
    "export gif time.mcpspy": "the formats are mermaid, plantuml",
    "export curl time.mcpspy": "mcpspy replay WHAT -- COMMAND",
    "export har time.mcpspy": "mcpspy export jsonl writes messages",
    "export pytest refused.mcpspy": "record a session with an answer",
    "export parquet time.mcpspy": "mcpspy export parquet --help explains the options.",
    "export parquet time.mcpspy:3 -o x": "leave out the rows",
    "export parquet time.mcpspy -o time.mcpspy": "name a folder with -o",
    "export parquet time.mcpspy -o ''": "as in -o columns",
    "export parquet - -o x": "write it to a file first",
    "query": "mcpspy query --recipes lists the recipes",
    "query --recipe slow": "the recipes are slowest-tools, error-rate",
    "query --recipe before-after": "needs a date, as in --date 2026-11-20",
    "query --recipe drift --date 2026-11-20": "takes no --date",
    "query --recipe before-after --date 20/11": "as in --date 2026-11-20",
    "query 'SELECT 1' --format parquet": "name one with -o",
    "query 'SELECT 1' --format csv --json": "leave one out",
    "query --recipes --format csv": "leave out -o and other formats",
    "query 'SELECT 1' --columns .": "mcpspy export parquet WHAT -o DIR writes them",
    "query 'SELECT 1'": "mcpspy wrap inserts mcpspy",
    "otlp time.mcpspy --endpoint x": "as in --endpoint http://localhost:4318",
    "otlp time.mcpspy --endpoint http://h:99999": "as in --endpoint http://localhost:4318",
    "otlp time.mcpspy:3": "leave out the rows",
    "otlp -": "write it to a file first",
    "export share time.mcpspy": "name the new capture with -o OUT",
    "export mermaid time.mcpspy --lane x": "as in --lane weather='the server'",
    "mock": "mcpspy list shows the captures",
    "mock time.mcpspy:3": "leave out the rows",
    "mock time.mcpspy git.mcpspy": "name those of one",
    "mock time.mcpspy --on-miss pass-through": "its command after --, or --url URL",
    "mock time.mcpspy --listen 0.0.0.0:0": "add --allow-remote",
    "mock time.mcpspy --events": "--events needs --listen",
    "replay time.mcpspy": "Add --yes to start it, or name a server after --.",
    "replay oauth.mcpspy": "Add --yes to call it, or name its URL with --url.",
    "replay time.mcpspy server.py": "Put -- before the server's command.",
    "replay time.mcpspy --only tool:zzz -- cat": "mcpspy replay --dry-run, without these, lists all",
    "replay oauth.mcpspy --url http://x --header x": "as in --header 'X-Api-Key: …'",
    "replay oauth.mcpspy --url ftp://x": "http:// or https://, then its host",
    "replay time.mcpspy:3 -- cat": "mcpspy call time.mcpspy:3 sends it",
    "trial time.mcpspy": "as in mcpspy trial weather -- python client.py {server}",
    "trial time.mcpspy --only x -- cat {server}": "They are none, slow, late",
    "trial time.mcpspy --only crash -- cat {url}": "Here there are none, slow, late",
    "trial time.mcpspy -- cat": "which becomes the command of the mock, nor {url}, which becomes its address",
    "trial time.mcpspy -- cat {url} {server}": "Leave one out",
    "trial time.mcpspy --url http://x -- cat": "For a client, write {url} in its command",
    "trial time.mcpspy --server --url http://x -- cat": "leave out --url, or what follows --",
    "trial time.mcpspy --expect gone -- cat {server}": "Add --accept to write the outcomes there",
    "call time.mcpspy": "mcpspy call weather forecast city=Rome",
    "call time.mcpspy:4": "Name a server, as in `mcpspy call time.mcpspy:4 -- ",
    "call time.mcpspy:4 --set x -- cat": "Write = and JSON after the path",
    "call time.mcpspy nowhere -- cat": "the server has no tool nowhere. Its tools are",
    "import time.mcpspy": "look at it with mcpspy show",
    "import --follow a.log b.log": "name one",
    "run": "usage: mcpspy run",
    "run --nope cat": "put -- before the server's command",
    "run -- no-such-command-anywhere": "use its absolute path",
    "run --stop-first cat": "--stop-first needs --reload",
    "run --watch no-such-file cat": "name a file or a folder",
    "run --reload --grace 5x cat": "--grace is a time like 5s",
    "control weather --stop-first": "--stop-first needs --restart",
    "proxy x": "http:// or https://, then its host",
    "proxy http://127.0.0.1:9 --listen x": "like 127.0.0.1:8765",
    "proxy http://127.0.0.1:9 --listen 0.0.0.0:1": "add --allow-remote",
    "proxy http://127.0.0.1:9 --header x": "as in --header 'Authorization: Bearer …'",
    "proxy": "or use --all, for the servers that mcpspy wrap has wrapped",
    "proxy --all": "mcpspy wrap wraps them",
    "wrap --self --server x": "leave out --server",
    "verify time.mcpspy:3": "name a capture",
    "verify time.mcpspy --repair time.mcpspy": "name a file that does not",
    "prune": "Give --older-than AGE, --keep N",
    "prune --older-than x": "like 30d or 1h30m",
    "completion tcsh": "'bash', 'zsh', 'fish'",
    "help filtr": "Choose one of run, proxy",
    "list time.mcpspy": "mcpspy list --help explains the options.",
    "show --gone time.mcpspy": "mcpspy show --help explains the options.",
    "show --since 2999-01-01": "name a time that has passed",
    "export svg time.mcpspy --lane gone=x": "the lanes are stepclient, time, mcpspy",
    "mock time.mcpspy --stdio --listen 127.0.0.1:0": "leave one out",
    "run --quiet=yes cat": "leave out =yes",
    "replay oauth.mcpspy --url http://x --header 'A: redacted-000000000000'": "Write the value itself",
    "replay time.mcpspy --speed nan -- cat": "as in --speed 1 --timeout 30",
    "proxy --all --label x": "leave one out",
    "proxy http://127.0.0.1:9 --header 'Content-Length: 1'": "Leave it out",
    "proxy http://127.0.0.1:9 --intercept 'tool:x => kill'": "Write disconnect, or stall.",
    "proxy http://127.0.0.1:9 --intercept 'tool:x => status 999'": "Write a number from 200 to 599.",
    "proxy http://127.0.0.1:9 --seed 7": "leave it out",
    "proxy http://127.0.0.1:9 --seed x --intercept 'tool:x => drop'": "a whole number like 7",
    "proxy --model http://127.0.0.1:9 --intercept 'tool:x => drop'": "leave it out with --model",
    "proxy --all --intercept 'tool:x => drop'": "leave one out",
    "run --intercept 'tool:x => status 500' -- cat": "Write error and a code",
    "diff time.mcpspy git.mcpspy --clients": "Name captures of one server",
}


SECRET_URLS = {
    "https://alice:hunter2@h:99999/mcp?token=hush": "https://…@h:99999/mcp?…",
    "ftp://alice@h/?token=hush#hush": "ftp://…@h/?…",
    "https://alice:hun/ter2?@h/?hush": "https://…@h/?…",
    "alice:hunter2@h/mcp?token=hush": "…@h/mcp?…",
}
SECRETS = ("alice", "hun", "ter2", "hush")


@pytest.mark.grid(20)
@pytest.mark.parametrize("url", SECRET_URLS)
@pytest.mark.parametrize(
    "command",
    [
        "proxy",
        "proxy --model",
        "proxy http://127.0.0.1:9",
        "proxy http://127.0.0.1:9 --listen",
        "proxy http://127.0.0.1:9 --allow-endpoint",
        "replay oauth.mcpspy --url",
        "mock oauth.mcpspy --on-miss pass-through --url",
        "mock oauth.mcpspy streamable.mcpspy --listen 127.0.0.1:0 --on-miss pass-through --url",
        "mock oauth.mcpspy --listen",
        "mock",
        "show",
        "check",
        "run",
        "run --max-size",
        "list",
        "import",
        "export share git.mcpspy -o",
        "show logs.mcpspy -F dur>",
        "wrap --client cursor --server",
    ],
)
def test_an_error_shows_neither_the_user_nor_the_query_of_a_url(
    command: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(ROOT / "captures")
    words = f"{command}{'' if command[-1] in ':>' else ' '}{url}".split()
    done = run(*words)
    assert done.returncode in (2, 3, 4, 127)
    assert SECRET_URLS[url] in done.stderr
    assert [secret for secret in SECRETS if secret in done.stderr + done.stdout] == []


def test_a_url_that_is_given_as_a_capture_to_record_to_is_not_shown_either(tmp_path: Path) -> None:
    done = run("run", "--capture", f"{tmp_path}/https://alice:hunter2@h/mcp?token=hush", "--", "true")
    assert (done.returncode, "not recording" in done.stderr) == (0, True)
    assert [secret for secret in SECRETS if secret in done.stderr] == []


def test_a_filter_that_matches_nothing_shows_neither_the_user_nor_the_query_of_a_url() -> None:
    done = run("show", str(ROOT / "captures/logs.mcpspy"), "-F", "tool:https://alice:hunter2@h/mcp?token=hush")
    assert "0 of 6 rows match tool:https://…@h/mcp?…" in done.stdout
    assert [secret for secret in SECRETS if secret in done.stderr + done.stdout] == []


def test_an_error_shows_other_names_as_they_are() -> None:
    for name in ("npm:@scope/x@1.2", "weather:7..9", "a?b", "me@example"):
        assert name in run("show", name).stderr


@pytest.mark.parametrize("command", NEXT)
def test_an_error_says_what_to_do_next_and_prints_nothing_else(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(ROOT / "captures")
    done = run(*shlex.split(command))
    assert NEXT[command] in done.stderr
    assert done.returncode in (2, 127)
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    line = next(line for line in done.stderr.splitlines() if NEXT[command] in line)
    assert done.stderr.startswith("mcpspy")
    assert line.endswith((".", "?", "…")) or line.startswith("usage:")


def test_a_capture_in_which_nothing_was_recorded_yet_is_named_so(tmp_path: Path) -> None:
    header = (ROOT / "captures/time.mcpspy").read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "new.mcpspy").write_bytes(header)
    assert "nothing was recorded in it yet" in run("show", str(tmp_path / "new.mcpspy")).stderr


def test_a_question_in_an_error_ends_with_its_own_mark() -> None:
    assert str(AddressError("tim", "no capture has this label; is it time?", searched_folder="/f")).endswith(
        "time? Looked in /f."
    )


@pytest.mark.parametrize(("words", "status"), [("run -- cat", 127), ("mock oauth.mcpspy --listen 127.0.0.1:0", 2), ("list", 2)])
def test_too_few_descriptors_get_a_sentence(words: str, status: int, tmp_path: Path) -> None:
    command = f"ulimit -n 12; exec {shlex.join(MCPSPY)} {words}"
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=DEADLINE_S,
        check=False,
        cwd=ROOT / "captures",
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr == b"mcpspy: too few files may be open at once; allow at least 64: ulimit -n 64\n"


@pytest.mark.parametrize("words", ["show FIFO", "mock FIFO", "mock FIFO --listen 127.0.0.1:0"])
def test_a_signal_ends_the_wait_for_a_fifo(words: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "mcpspy", *words.replace("FIFO", str(fifo)).split()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "HOME": str(tmp_path)}) as waiting:
        assert waiting.stderr is not None
        waiting.stderr.readline()
        waiting.terminate()
        assert waiting.wait(DEADLINE_S)


@pytest.mark.parametrize("words", ["show FIFO", "check FIFO", "verify FIFO", "mock FIFO"])
def test_a_fifo_is_waited_for_in_the_open(words: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    capture = ROOT / "captures" / "logs.mcpspy"
    with subprocess.Popen(["sh", "-c", 'cat "$1" > "$2"', "sh", str(capture), str(fifo)]) as writer:
        done = run(
            *words.replace("FIFO", str(fifo)).split(), stdin=b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n', HOME=str(tmp_path)
        )
        writer.wait(DEADLINE_S)
    assert done.stderr.startswith(f"mcpspy: {fifo} is a FIFO: waiting until somebody writes to it\n")
    assert done.stdout
