"""`mcpspy mock` on the command line: what it serves, what it refuses, and that it starts quickly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.records import Note
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.imported import assert_absent, bare_interpreter, imports
from tests.live.mock.mocking import Mocking, written
from tests.transcript.dialogue import Dialogue, make_header, notification, request, result, tool_call
from tests.transcript.traffic import Traffic

TIME = ROOT / "captures" / "time.mcpspy"
AGENT = (ROOT / "captures" / "agent-model.mcpspy", ROOT / "captures" / "agent-weather.mcpspy")


def mock(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run `mcpspy mock` to its end."""
    return run("mock", *map(str, arguments), stdin=stdin)


def store() -> list[Path]:
    return list(Path(os.environ["MCPSPY_HOME"]).glob("captures/*"))


DISCOVER = b'{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}\n'
OPENING = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n'
UNSERVED = "its client started the server more than once"


def started_twice(folder: Path) -> Path:
    """Record a client that probes, and starts the server again for its session; both starts were given this file."""
    path = folder / "f.mcpspy"
    server = [sys.executable, str(ROOT / "tests" / "peers" / "logserver.py"), "0"]
    for line in (DISCOVER, OPENING):
        words = [sys.executable, "-m", "mcpspy", "run", "--capture", str(path), "--quiet", "--", *server]
        subprocess.run(words, input=line, capture_output=True, timeout=DEADLINE_S, check=True)
    return path


def test_a_miss_names_the_capture_of_the_other_start_of_the_same_client(tmp_path: Path) -> None:
    path = started_twice(tmp_path)
    second = tmp_path / "f-2.mcpspy"
    done = mock(path, stdin=OPENING)
    assert f"  serve    {second} too: {UNSERVED}\n" in done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["message"].endswith(f"; {UNSERVED}: serve {second} too")
    assert error["data"]["siblings"] == [str(second)]
    assert f"serve    {path} too" in mock(second, stdin=DISCOVER).stderr
    both = mock(path, second, stdin=OPENING)
    assert json.loads(both.stdout)["result"]["serverInfo"]["name"] == "mcp-demo-server"


def test_a_capture_of_another_client_or_server_is_no_sibling(tmp_path: Path) -> None:
    path = started_twice(tmp_path)
    second = tmp_path / "f-2.mcpspy"
    header, _, records = second.read_text(encoding="utf-8").partition("\n")
    facts = json.loads(header)
    del facts["crc"]  # edited by hand, that is
    edits: list[dict[str, object]] = [{"label": "other"}, {"parent": {**facts["parent"], "pid": 1}}, {"parent": {}}]
    for edit in edits:
        second.write_text(f"{json.dumps(facts | edit)}\n{records}", encoding="utf-8")
        assert UNSERVED not in mock(path, stdin=OPENING).stderr
    second.write_bytes(b"\0" * 100)
    assert UNSERVED not in mock(path, stdin=OPENING).stderr


# Refusals


def test_an_empty_capture_is_refused(tmp_path: Path) -> None:
    done = mock(written(tmp_path / "empty.mcpspy", Dialogue().records))
    assert (done.returncode, done.stdout) == (2, "")
    assert "it holds no messages, so there is nothing to serve" in done.stderr


def test_a_capture_in_which_no_server_spoke_is_refused() -> None:
    done = mock(ROOT / "captures" / "refused.mcpspy")
    assert (done.returncode, done.stdout) == (2, "")
    assert "it holds no messages from a server" in done.stderr


def test_a_capture_in_which_http_refused_everything_is_refused_with_what_would_serve_it(tmp_path: Path) -> None:
    traffic = Traffic()
    for status in (401, 401, 403):
        traffic.post(request(1, "initialize")).answer(status)
    done = mock(written(tmp_path / "refused.mcpspy", traffic.records))
    assert (done.returncode, done.stdout) == (2, "")
    assert "refused everything over HTTP (401 ×2, 403 ×1), for which stdio has no words; --listen" in done.stderr


def test_what_a_tap_refused_in_its_own_name_was_not_refused_by_the_server(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.post(request(1, "initialize")).answer(502, injected=True)
    done = mock(written(tmp_path / "down.mcpspy", traffic.records))
    assert (done.returncode, done.stdout) == (2, "")
    assert "it holds no messages from a server, so there is nothing to serve; mcpspy show says what happened" in done.stderr


def test_a_file_that_is_no_capture_is_refused() -> None:
    done = mock(ROOT / "README.md")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "which capture?"),
        (["no-such-label"], "nothing has been recorded yet"),
        ([f"{TIME}:3"], "a mock serves whole captures; leave out the rows"),
        (["-"], "a mock reads its client from standard input"),
        (
            [TIME, ROOT / "captures" / "git.mcpspy"],
            "these are captures of 2 servers (time, git), and a mock plays one; name those of one",
        ),
        ([*AGENT, TIME], "these are captures of 2 servers"),
        ([AGENT[0]], "it is of a model's API, which speaks HTTP alone; add --listen 127.0.0.1:0"),
        ([*AGENT, "--listen", "127.0.0.1:0", "--label", "x"], "--label names one mock, and there are 2: model, weather"),
        ([TIME, "--speed", "fast"], "--speed is 0, 1 or another number above 0; not fast"),
        ([TIME, "--speed", "-1"], "--speed is 0, 1 or another number above 0; not -1"),
        ([TIME, "--speed", "nan"], "not nan"),
        ([TIME, "--on-miss", "guess"], "--on-miss is one of error, nearest"),
        ([TIME, "--match", "exact"], "--match is one of strict, default, loose, not exact"),
        (
            [TIME, "--ignore", "arguments"],
            "a bare name is ambiguous. Write $.arguments or $..arguments.",
        ),
        ([TIME, "--guess"], "there is no option --guess; mcpspy mock --help lists them"),
        ([TIME, "--capture="], "--capture needs the name of a file"),
    ],
)
def test_a_wrong_command_line_gets_a_sentence(arguments: list[str | Path], sentence: str) -> None:
    done = mock(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert store() == []


def test_help_shows_an_example() -> None:
    assert "mcpspy mock weather.mcpspy" in mock("--help").stdout


# What is served


def test_options_and_captures_come_in_any_order(tmp_path: Path) -> None:
    capture = written(tmp_path / "a.mcpspy", Dialogue().client(request(1)).server(result(1)).records)
    line = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    assert mock("--quiet", capture, "--stdio", "--reuse", "error", "--", stdin=line * 2).stdout.count("\n") == 2


def test_several_captures_of_one_server_are_served_together(tmp_path: Path) -> None:
    first = written(tmp_path / "a.mcpspy", Dialogue().client(request(1)).server(result(1)).records)
    second = written(tmp_path / "b.mcpspy", Dialogue().client(request(1, "prompts/list")).server(result(1)).records)
    requests = b"".join(b'{"jsonrpc":"2.0","id":2,"method":"%b/list"}\n' % name for name in (b"tools", b"prompts"))
    assert mock(first, second, stdin=requests).stdout.count("result") == 2


def test_conversations_that_branch_get_the_answers_of_their_branch(tmp_path: Path) -> None:
    """Two captures of one server, alike but for what was written; then both ask the same."""
    captures = []
    for at, text in enumerate(("milk", "tea")):
        header = make_header(wall_ns=10**18 + at, monotonic_ns=at * 10**9)
        dialogue = Dialogue(header=header).client(request(1, "initialize", {})).server(result(1, {}))
        dialogue.client(tool_call(2, "read")).server(result(2, {"list": []})).client(tool_call(3, "write", text=text)).server(
            result(3)
        )
        captures.append(
            written(
                tmp_path / f"{text}.mcpspy", dialogue.client(tool_call(4, "read")).server(result(4, {"list": [text]})).records
            )
        )
    for text in ("tea", "milk"):
        with Mocking(captures[0], str(captures[1])) as mocking:
            mocking.send(
                request(1, "initialize", {}), tool_call(2, "read"), tool_call(3, "write", text=text), tool_call(4, "read")
            )
            assert [mocking.told()["result"].get("list") for _ in range(4)] == [None, [], None, [text]]


def test_it_begins_and_ends_as_the_server_of_its_branch_did(tmp_path: Path) -> None:
    captures = []
    for at, name in enumerate("ab"):
        dialogue = (
            Dialogue(header=make_header(wall_ns=10**18 + at, monotonic_ns=at * 10**9))
            .client(tool_call(1, name))
            .server(result(1))
        )
        captures.append(
            written(
                tmp_path / f"{name}.mcpspy", dialogue.client_leaves().server(notification(f"bye/{name}")).exits(at + 3).records
            )
        )
    for at, name in enumerate("ab"):
        with Mocking(captures[0], str(captures[1])) as mocking:
            mocking.send(tool_call(1, name))
            assert mocking.told() == result(1)
            status, lines, _ = mocking.ends()
        assert (status, [json.loads(line)["method"] for line in lines]) == (at + 3, [f"bye/{name}"])


def test_a_detour_that_was_never_recorded_does_not_lead_off_the_branch(tmp_path: Path) -> None:
    dialogue = (
        Dialogue()
        .client(tool_call(1, "read"))
        .server(result(1, {"n": 1}))
        .client(tool_call(2, "read"))
        .server(result(2, {"n": 2}))
    )
    with Mocking(written(tmp_path / "a.mcpspy", dialogue.records)) as mocking:
        mocking.send(tool_call(1, "read"), tool_call(2, "unheard"), tool_call(3, "read"))
        assert [mocking.told().get("result") for _ in range(3)] == [{"n": 1}, None, {"n": 2}]


def test_what_a_mock_recorded_is_not_the_newest_recording_that_is_served() -> None:
    folder = Path(os.environ["MCPSPY_HOME"]) / "captures"
    folder.mkdir(parents=True)
    written(folder / "weather.mcpspy", Dialogue().client(request(1)).server(result(1, {"tools": []})).records)
    line = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    assert [mock("@", stdin=line).stdout for _ in range(2)] == ['{"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}\n'] * 2
    assert {path.name for path in store()} > {"weather.mcpspy"}


def test_its_own_capture_goes_to_the_store_under_a_label_of_its_own() -> None:
    mock(TIME, stdin=b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    (own,) = store()
    assert "time-mock" in own.name


def test_a_capture_that_cannot_be_made_does_not_keep_it_from_serving(tmp_path: Path) -> None:
    done = mock(TIME, "--capture", tmp_path / "no" / "such" / "folder", stdin=b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    assert '"result":{}' in done.stdout
    assert "not recording" in done.stderr


def test_rules_leave_out_what_differs() -> None:
    line = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"convert_time","arguments":{"time":"1"}}}\n'
    assert "error" in mock(TIME, stdin=line).stdout
    rules = [f"--ignore=$.arguments.{name}" for name in ("source_timezone", "time", "target_timezone")]
    done = mock(TIME, *rules, stdin=line)
    assert '"result"' in done.stdout
    assert done.stderr == ""


def test_the_nearest_answer_is_played_and_reported(tmp_path: Path) -> None:
    capture = written(tmp_path / "a.mcpspy", Dialogue().client(tool_call(1, "weather", city="Oslo")).server(result(1)).records)
    with Mocking(capture, "--on-miss", "nearest") as mocking:
        mocking.send(tool_call(7, "weather", city="Rome"))
        assert mocking.told() == result(7)
        stderr = mocking.ends()[2]
    assert stderr == (
        "mcpspy mock: tools/call weather was never recorded with these params\n"
        "  nearest  row 1\n"
        '  differs  $.arguments.city: "Oslo" ≠ "Rome"\n'
        "  refused  by --match default\n"
        "  accept   with --ignore '$.arguments.city'\n"
        "             or --match loose\n"
        "  played   row 1 anyway\n"
    )
    (note,) = [record for record in mocking.records if isinstance(record, Note)]
    assert (note.topic, note.text.endswith("; row 1 was played all the same")) == ("miss", True)


def test_reuse_error_answers_no_request_twice(tmp_path: Path) -> None:
    capture = written(tmp_path / "a.mcpspy", Dialogue().client(request(1)).server(result(1)).client(notification()).records)
    with Mocking(capture, "--reuse", "error") as mocking:
        mocking.send(request(1), request(2))
        assert mocking.told() == result(1)
        assert "was recorded once and asked for once more" in mocking.told()["error"]["message"]


# The start

# What makes dataclasses takes 1.2 ms to be imported, and each of them 0.5 to 0.9 to be made.
TOO_SLOW = {
    "aiohttp", "asyncio", "click", "dataclasses", "difflib", "rich", "mcpspy.replay.compare.difference", "mcpspy.replay.mock.miss",
    "mcpspy.transcript.findings.run", "mcpspy.views.timeline.timeline",
}  # fmt: skip


def test_it_imports_nothing_that_a_client_would_wait_for(tmp_path: Path) -> None:
    entry = "import sys; from mcpspy.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-X", "importtime", "-c", entry, "mock", str(TIME), "--capture", str(tmp_path / "own.mcpspy")]
    line = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    done = subprocess.run(words, input=line, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "get_current_time" in done.stdout
    assert_absent(TOO_SLOW, imports(done.stderr) - imports(bare_interpreter()))
