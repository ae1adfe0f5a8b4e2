"""`mcpspy import`, and files that others recorded in place of captures, as a user has them."""

import json
import re
import signal
from pathlib import Path

import pytest

from mcpspy import open as open_captures
from mcpspy.imports.formats import FORMATS
from tests.cli.terminal import on_pipe, run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.imports.packet_files import dialogue, pcap
from tests.imports.test_mcphawk import database_of
from tests.imports.test_pcap import SEGMENTS, TALK

LOG = ROOT / "captures" / "mcp-server-weather.log"
BARE = '{"jsonrpc":"2.0","id":0,"method":"initialize"}\n{"jsonrpc":"2.0","id":0,"result":{}}\n'


def test_a_log_becomes_a_capture_whose_path_is_printed(tmp_path: Path) -> None:
    done = run("import", str(LOG), "-o", str(tmp_path / "weather.mcpspy"))
    path = Path(done.stdout.strip())
    assert (done.returncode, path) == (0, tmp_path / "weather.mcpspy")
    assert "1 session; missing: noise, process, heads; reconstructed: bytes, times, ends" in done.stderr
    assert [exchange.method for exchange in open_captures(path).exchanges] == [
        "initialize",
        "tools/list",
        "tools/call",
        "tools/call",
    ]
    assert run("verify", str(path)).returncode == 0


def test_a_capture_without_a_name_goes_to_the_store() -> None:
    run("import", str(LOG))
    assert "Request timed out" in run("check", "weather").stdout


def test_a_log_is_shown_in_place_of_a_capture() -> None:
    shown = run("show", str(LOG))
    assert (shown.returncode, shown.stderr.splitlines()[:1]) == (0, [])
    assert "imported from mcp-server-weather.log (log)" in shown.stdout
    assert "cancelled after 60.0 s" in shown.stdout


def test_a_row_of_a_log_is_shown() -> None:
    assert "“Rain”" in run("show", f"{LOG}:4").stdout.replace('"Rain"', "“Rain”")


@pytest.mark.parametrize(
    "words", ["check {}", "diff {} {}", "export text {}", "export jsonl {}", "show --stats {}", "show --json {}", "verify {}"]
)
def test_every_verb_takes_a_log(words: str) -> None:
    done = run(*words.replace("{}", str(LOG)).split())
    assert (done.returncode in {0, 1}, "Traceback" in done.stderr) == (True, False), done.stderr
    assert done.stdout


def test_a_log_is_replayed() -> None:
    assert "tools/call forecast" in run("replay", str(LOG), "--dry-run", "--", "cat").stdout


def test_a_file_that_cannot_be_imported_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    done = run("import", str(tmp_path / "notes.txt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing in its first 1 MiB is in a format that mcpspy reads; mcpspy import --help lists the formats" in done.stderr


def test_a_log_without_times_is_shown_without_times(tmp_path: Path) -> None:
    log = tmp_path / "bare.log"
    log.write_text(BARE)
    shown = run("show", str(log)).stdout
    assert "at an unknown time" in shown
    assert not [word for word in ("seconds", "took", "µs", "0.000") if word in shown]


def test_a_log_is_served_by_a_mock() -> None:
    asks = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"Oslo"}}}\n'
    with_handshake = (
        BARE.splitlines()[0].replace("}", ',"params":{"protocolVersion":"2024-11-05","capabilities":{}}}') + "\n" + asks
    )
    served = run("mock", str(LOG), stdin=with_handshake.encode())
    answers = [json.loads(line) for line in served.stdout.splitlines()]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 9, "result": {"content": [{"type": "text", "text": "Rain"}]}}


@pytest.mark.parametrize("words", ["show -", "check -", "show --stats -", "export text -"])
def test_a_log_on_standard_input_is_read(words: str) -> None:
    done = run(*words.split(), stdin=LOG.read_bytes())
    assert (done.returncode in {0, 1}, "tools/call forecast" in done.stdout or "forecast" in done.stdout) == (True, True)


def test_a_log_on_standard_input_is_verified() -> None:
    done = run("verify", "-", stdin=LOG.read_bytes())
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "standard input")


def test_several_sessions_on_standard_input_are_refused() -> None:
    one = '2025-05-07T10:00:00.000Z [a] [info] Message from client: {"jsonrpc":"2.0","id":0,"method":"initialize"}\n'
    done = run("show", "-", stdin=(one + one.replace("[a]", "[b]")).encode())
    assert done.returncode == 2
    assert "2 sessions are in it, and this shows one; write it to a file, and name that" in done.stderr


def test_a_log_on_standard_input_cannot_be_followed() -> None:
    done = run("show", "-f", "-", stdin=LOG.read_bytes())
    assert (done.returncode, done.stdout) == (2, "")
    assert "follow a log as a file: mcpspy show -f LOG" in done.stderr


@pytest.mark.parametrize("words", ["verify {}", "verify --json {}", "check --json {}", "export html {}", "export pytest {}"])
def test_the_file_is_named_and_not_its_temporary_capture(words: str) -> None:
    done = run(*words.replace("{}", str(LOG)).split())
    assert str(LOG) in done.stdout + done.stderr
    assert "mcpspy-import-" not in done.stdout + done.stderr


def test_standard_input_becomes_a_capture_on_standard_output() -> None:
    made = run("import", "-", "-o", "-", stdin=LOG.read_bytes())
    shown = run("show", "-", stdin=made.stdout.encode())
    assert "✗ 4 calls" in shown.stdout


def test_what_is_added_to_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "mcp-server-weather.log"
    lines = LOG.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:6]))
    with on_pipe("show", "-f", str(log)) as shown:
        shown.wait_for("initialize")
        with log.open("a") as file:
            file.writelines(lines[6:8])
        shown.wait_for("tools/list")
        shown.end()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mcp-server-weather.log"]


@pytest.mark.parametrize(
    "begin", ["", "2025-05-07T10:00:00.000Z [weather] [info] Initializing server...\n"], ids=["empty", "text"]
)
def test_a_log_without_messages_is_shown_when_it_has_some(begin: str, tmp_path: Path) -> None:
    log = tmp_path / "mcp-server-weather.log"
    log.write_text(begin)
    with on_pipe("show", "-f", str(log)) as shown:
        shown.wait_for("waiting for what is added")
        log.write_text(begin + LOG.read_text())
        shown.wait_for("tools/list")
        shown.end()


SILENT = {
    "started": "Server started and connected successfully",
    "closed": "Server transport closed unexpectedly, this is likely due to the process exiting early",
    "beginning": "Initializing server...",
    "a client that left": "Client transport closed",
    "a command": "Using MCP server command: npx with args and path",
}


@pytest.mark.parametrize("verb", ["show", "check", "import"])
@pytest.mark.parametrize("case", SILENT)
def test_a_log_of_claude_desktop_without_messages_is_named_and_its_last_words_are_shown(
    case: str, verb: str, tmp_path: Path
) -> None:
    log = tmp_path / "mcp-server-weather.log"
    log.write_text(f"npm warn old\n2025-05-07T10:00:00.000Z [weather] [info] {SILENT[case]}\nat x.js:1\n")
    done = run(verb, str(log))
    assert done.returncode != 0
    assert "this is a log of Claude Desktop without a message to or from the server" in done.stderr
    assert SILENT[case].rstrip(".") in done.stderr
    assert "not an mcpspy capture" not in done.stderr


@pytest.mark.parametrize("begin", ["npm warn old\n", "    at x.js:1\n", ',"params":{}}\n', "\n\n", '{"a":1}\n'])
def test_a_log_of_claude_desktop_that_begins_without_a_message_is_read(begin: str, tmp_path: Path) -> None:
    log = tmp_path / "mcp-server-weather.log"
    log.write_text(begin + LOG.read_text())
    assert "4 calls" in run("show", str(log)).stdout.splitlines()[0]


@pytest.mark.parametrize(
    "text", ["2025-05-07T10:00:00.000Z [weather] [info] it rains\n", "Server started\n", "npm warn old\n", "{}\n"]
)
def test_another_text_is_not_said_to_be_of_claude_desktop(text: str, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text(text)
    assert "Claude Desktop" not in run("show", str(other)).stderr


def test_the_log_that_takes_the_place_of_one_that_is_followed_is_shown_too(tmp_path: Path) -> None:
    log = tmp_path / "mcp-server-weather.log"
    lines = LOG.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:6]))
    with on_pipe("show", "-f", str(log)) as shown:
        shown.wait_for("initialize")
        log.rename(tmp_path / "mcp-server-weather1.log")
        log.write_text("")
        with log.open("a") as file:
            file.writelines(lines[6:8])
        shown.wait_for("tools/list")
        with log.open("a") as file:
            file.writelines(lines[8:12])
        shown.wait_for("tools/call")
        shown.end()


def test_a_log_that_begins_anew_is_shown_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "mcp-server-weather.log"
    lines = LOG.read_text().splitlines(keepends=True)
    log.write_text("".join(lines))
    with on_pipe("show", "-f", str(log)) as shown:
        shown.wait_for("tools/call")
        log.write_text("".join(lines[:8]).replace("forecast", "nowcast"))
        shown.wait_for("1 tool: nowcast")
        shown.end()


def test_a_line_that_comes_right_before_ctrl_c_is_imported(tmp_path: Path) -> None:
    log, out = tmp_path / "bare.log", tmp_path / "made.mcpspy"
    first, second = BARE.splitlines(keepends=True)
    log.write_text(first)
    with on_pipe("import", "--follow", str(log), "-o", str(out)) as importing:
        importing.wait_for("caught up")
        with log.open("a") as file:
            file.write(second)
        importing.process.send_signal(signal.SIGINT)
        importing.process.wait(DEADLINE_S)
    assert [exchange.response is not None for exchange in open_captures(out).exchanges] == [True]


@pytest.mark.parametrize("words", ["import --follow -", "import --follow {} -o -"])
def test_only_a_file_is_followed_and_only_into_a_file(words: str) -> None:
    done = run(*words.replace("{}", str(LOG)).split(), stdin=b"")
    assert (done.returncode, "--follow reads a file and writes to one; leave out -." in done.stderr) == (2, True)


def test_findings_that_need_what_a_log_lacks_are_not_made_and_named(tmp_path: Path) -> None:
    log = tmp_path / "late.log"
    log.write_text(
        '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}}\n{"jsonrpc":"2.0","id":6,"result":{}}\n'
    )
    done = run("check", str(log), "--json")
    report = json.loads(done.stdout)
    assert [finding["rule"] for finding in report["findings"]] == ["recording-gap"]
    assert "an imported file does not have the times of the wire" in done.stdout


@pytest.fixture
def packets(tmp_path: Path) -> str:
    """A packet capture with four calls."""
    path = tmp_path / "dump.pcap"
    path.write_bytes(pcap(SEGMENTS))
    return str(path)


def test_a_packet_capture_is_shown_in_place_of_a_capture(packets: str) -> None:
    assert "✓ 4 calls" in run("show", packets).stdout
    assert "connection 1 from port 49652" in run("show", "--http", packets).stdout


def test_a_row_names_the_packets_of_its_messages(packets: str) -> None:
    shown = run("show", f"{packets}:1").stdout
    assert [line.partition(" · packet ")[2].partition(" ")[0] for line in shown.splitlines() if "record" in line] == ["5", "10"]
    assert "packet 10" in run("show", "--http", packets).stdout


@pytest.mark.parametrize("words", ["show --json", "show --http --json"])
def test_the_json_of_a_row_names_its_packets(packets: str, words: str) -> None:
    shown = run(*words.split(), f"{packets}:1").stdout
    assert re.findall(r'"packet":(\d+)', shown) == ["5", "10"]


def test_a_packet_capture_is_served_by_a_mock(packets: str) -> None:
    asks = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t"}}\n'
    served = run("mock", packets, stdin=asks.encode())
    assert json.loads(served.stdout.splitlines()[0])["result"]["content"][0]["text"] == "a" * 300


def test_a_packet_capture_without_mcp_says_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(dialogue([("client", b"\x16\x03\x01\x02\x00" + b"x" * 100)])))
    done = run("show", str(path))
    assert done.returncode == 2
    assert "no session of MCP is in it. not read: 1 connection of TLS" in done.stderr


def test_credentials_in_heads_of_packets_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    says = [(side, data.replace(b"Host: a", b"Host: a\r\nAuthorization: Bearer s3cret-value-of-mine")) for side, data in TALK]
    path.write_bytes(pcap(dialogue(says)))
    made = run("import", str(path), "-o", "-").stdout
    assert ("s3cret-value-of-mine" in made, "Authorization: Bearer redacted-" in made) == (False, True)


HELLO = '"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a-client","version":"2.0"}}'
WELCOME = (
    '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1.0"}}'
)
TOOLS = '"result":{"tools":[{"name":"greet","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}}]}'
OWN_LOG = f"""\
[main] INFO  com.example.Server - 已注册工具: greet
[main] DEBUG com.example.Server - 收到请求: {{"method":"initialize",{HELLO},"jsonrpc":"2.0","id":0}}
[main] INFO  com.example.Server - 初始化成功,准备发送响应
[main] DEBUG com.example.Server - 发送响应: {{"jsonrpc":"2.0","id":0,{WELCOME}}}
[main] INFO  com.example.Server - 响应已发送,method=success
[main] DEBUG com.example.Server - 收到请求: {{"method":"notifications/initialized","jsonrpc":"2.0"}}
[main] DEBUG com.example.Server - 收到请求: {{"method":"tools/list","jsonrpc":"2.0","id":1}}
[main] DEBUG com.example.Server - 发送响应: {{"jsonrpc":"2.0","id":1,{TOOLS}}}
[main] INFO  com.example.Server - 响应已发送,method=success
"""


def test_a_servers_own_log_becomes_the_session_that_it_tells(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(OWN_LOG, encoding="utf-8")
    shown = run("show", str(log)).stdout
    assert "✓ 2 calls, all ok" in shown
    assert "a-client → server   at an unknown time   imported from server.log (log), without times" in shown
    assert "stderr [main] INFO  com.example.Server - 已注册工具: greet" in shown
    arrows = [line.strip() for line in run("export", "mermaid", str(log)).stdout.splitlines() if ">>" in line]
    assert arrows == [
        "client1->>+server1: 1 initialize 2025-06-18",
        "server1-->>-client1: 1 ok: greeter 1.0",
        "client1->>+server1: 3 tools/list",
        "server1-->>-client1: 3 ok: 1 tool",
    ]


def test_the_digest_of_an_imported_file_is_no_leak(tmp_path: Path) -> None:
    shared = run("export", "share", str(LOG), "-o", str(tmp_path / "shared.mcpspy"))
    assert "leak" not in shared.stdout + shared.stderr


def _files(folder: Path) -> dict[str, Path]:
    """Return a file of each format that can be imported."""
    recorded = ROOT / "tests" / "imports" / "recorded"
    (folder / "dump.pcap").write_bytes(pcap(SEGMENTS))
    (folder / "hawk.db").write_bytes(database_of("time"))
    return {
        "pcap": folder / "dump.pcap", "har": recorded / "chromium-sse.devtools.har",
        "mcpsnoop": recorded / "mcpsnoop-stdio.jsonl", "mcphawk": folder / "hawk.db", "log": LOG,
    }  # fmt: skip


def test_each_format_is_imported_as_itself_and_refused_by_name_as_any_other(tmp_path: Path) -> None:
    files = _files(tmp_path)
    assert list(files) == [known.name for known in FORMATS]
    for real, path in files.items():
        for number, named in enumerate(files):
            out = tmp_path / f"{real}-{number}.mcpspy"
            done = run("import", str(path), "--as", named, "-o", str(out))
            if named == real:
                assert (done.returncode, out.exists()) == (0, True), done.stderr
                assert open_captures(out).exchanges
            else:
                assert (done.returncode, out.exists(), f"say --as {real}" in done.stderr) == (2, False, True), done.stderr


def test_a_capture_is_no_file_to_import_as_anything() -> None:
    done = run("import", str(ROOT / "captures" / "time.mcpspy"), "--as", "log")
    assert (done.returncode, "this is a capture already" in done.stderr) == (2, True)
