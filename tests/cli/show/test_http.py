"""`mcpspy show` of captures of HTTP: the wire view, rows of transactions, and the live view."""

import json
import re
import signal
from pathlib import Path

from tests.cli.recording import Recording
from tests.cli.terminal import on_pipe, on_terminal, run
from tests.transcript.dialogue import request, result
from tests.transcript.traffic import SERVER_URL, TAP_URL, Traffic, initialize

GOLDEN = str(Path(__file__).parents[2] / "golden" / "capture-1-http.mcpspy")
STDIO = str(Path(__file__).parents[3] / "captures" / "time.mcpspy")
TAPPED = {"transport": "http", "url": SERVER_URL, "listen": TAP_URL}


class Live:
    """A live capture of HTTP; `told` is continued between calls of `flush`."""

    def __init__(self) -> None:
        self.told = Traffic()
        self.recording = Recording("weather", tapped=TAPPED)
        self._written = 1

    def flush(self) -> None:
        """Record what was added since the last time."""
        self.recording.write(self.told.records[self._written :])
        self._written = len(self.told.records)


def test_a_capture_of_http_is_shown_like_any_other() -> None:
    done = run("show", GOLDEN)
    assert done.returncode == 0
    assert "→ tools/call echo" in done.stdout
    assert re.search(r"^ +3 .*→ GET /sse +200: 2 events, reset by client$", done.stdout, re.MULTILINE)


def test_the_wire_view_has_every_transaction() -> None:
    done = run("show", "--http", GOLDEN)
    assert done.returncode == 0
    assert re.findall(r"^transaction (\d+)", done.stdout, re.MULTILINE) == list("12345678")
    assert "chunks 0x40 64, 0x2e 46" in done.stdout


def test_the_wire_view_of_a_row_has_the_transactions_that_carried_it() -> None:
    done = run("show", "--http", f"{GOLDEN}:4")
    assert re.findall(r"^transaction (\d+)", done.stdout, re.MULTILINE) == ["3", "4"]


def test_the_wire_view_as_json_has_an_object_for_each_transaction() -> None:
    lines = run("show", "--http", "--json", GOLDEN).stdout.splitlines()
    assert [json.loads(line)["transaction"] for line in lines] == list(range(1, 9))


def test_a_row_without_a_message_is_found_by_its_number() -> None:
    done = run("show", f"{GOLDEN}:7")
    assert done.stdout.startswith("row 7 · GET /.well-known/oauth-protected-resource · 200")


def test_an_exchange_in_full_says_in_which_chunks_its_messages_came() -> None:
    assert "in 0x40 64, 0x2e 46" in run("show", f"{GOLDEN}:2").stdout


def test_there_is_no_http_in_a_capture_of_stdio() -> None:
    done = run("show", "--http", STDIO)
    assert (done.returncode, done.stdout) == (0, "")
    assert "there is no HTTP here" in done.stderr


def test_the_wire_view_does_not_go_with_raw_bytes() -> None:
    done = run("show", "--http", "--raw", GOLDEN)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_long_line_is_cut_among_all_rows_and_full_in_its_own() -> None:
    live = Live()
    live.told.post(request(1)).answer(200, result(1, "x" * 9_000))
    live.flush()
    live.recording.close()
    path = live.recording.path
    all_rows, one_row = run("show", "--http", path).stdout, run("show", "--http", f"{path}:1").stdout
    assert "x" * 9_000 not in all_rows
    assert f"`mcpspy show --http {path}:ROW`" in all_rows
    assert "x" * 9_000 in one_row


def test_every_row_has_its_number_in_json() -> None:
    made = json.loads(run("show", "--json", GOLDEN).stdout)
    assert [row["row"] for row in made["rows"] if "row" in row] == list(range(1, 9))


def test_a_stream_is_printed_when_it_begins_and_when_it_ends() -> None:
    live = Live()
    with on_pipe("show", "-f") as shown:
        stream = live.told.get("/sse").stream().event("/m?s=1", kind="endpoint")
        live.flush()
        shown.wait_for("GET /sse")
        assert "open" in shown.words
        live.told.post(initialize(1, "inspector"), "/m?s=1").answer(202)
        live.flush()
        assert "initialize" not in shown.words
        stream.event(result(1))
        live.flush()
        shown.wait_for("initialize 2025-11-25")
        stream.close("client", "broken")
        live.flush()
        shown.wait_for("2 events, disconnected by client")
    live.recording.close()


def test_a_request_without_a_message_is_printed_once_when_it_ends() -> None:
    live = Live()
    with on_pipe("show", "-f") as shown:
        call = live.told.get("/x")
        live.flush()
        call.answer(404)
        live.told.post(request(1)).answer(200, result(1))
        live.flush()
        shown.wait_for("tools/list")
        assert shown.words.count("GET /x") == 1
    live.recording.close()


def test_open_streams_are_not_pending_on_a_terminal() -> None:
    live = Live()
    with on_terminal("show", "-f", columns=120) as shown:
        live.told.get().stream()
        live.told.post(request(1))
        live.flush()
        words = shown.wait_for(lambda words: re.search(r"GET /mcp +200: 0 events, open.*tools/list +pending", words, re.DOTALL))
        assert "GET /mcp" not in words.rpartition("0 events, open")[2]
        assert shown.end(signal.SIGINT) == 0
    live.recording.close()


def test_each_change_of_a_transaction_is_an_object() -> None:
    live = Live()
    with on_pipe("show", "-f", "--json") as shown:
        live.told.get("/x").answer(404)
        live.flush()
        shown.wait_for('"status":404')
        states = [json.loads(line) for line in shown.words.splitlines() if line.endswith("}")]
        assert {(state["kind"], state["row"], state["method"]) for state in states} == {("transaction", 1, "GET")}
    live.recording.close()


def test_the_live_wire_view_prints_each_event_when_it_comes() -> None:
    live = Live()
    with on_pipe("show", "--http", "-f") as shown:
        stream = live.told.get("/sse").stream()
        live.flush()
        shown.wait_for("HTTP/1.1 200 OK")
        stream.event("first")
        live.flush()
        shown.wait_for("data: first")
        stream.event("second")
        live.flush()
        shown.wait_for("data: second")
        assert shown.words.count("data: first") == 1
        assert shown.words.count("GET /sse") == 1
    live.recording.close()


def test_the_live_wire_view_fits_into_its_terminal() -> None:
    live = Live()
    with on_terminal("show", "--http", "-f", columns=60) as shown:
        live.told.post(request(1)).answer(200, result(1, "x" * 900))
        live.flush()
        shown.wait_for("more bytes")
        assert max(map(len, shown.words.splitlines())) <= 60
        assert shown.end(signal.SIGINT) == 0
    live.recording.close()


def test_the_live_wire_view_as_json_gives_each_frame_once() -> None:
    live = Live()
    with on_pipe("show", "--http", "-f", "--json") as shown:
        stream = live.told.get("/sse").stream().event("first")
        live.flush()
        shown.wait_for("data: first")
        stream.event("second").close()
        live.flush()
        shown.wait_for("data: second")
        made = [json.loads(line) for line in shown.words.splitlines() if line.endswith("}")]
        frames = [
            frame["text"]
            for transaction in made
            if transaction["http_response"]
            for frame in transaction["http_response"]["frames"]
        ]
        assert [text.split()[1] for text in frames] == ["first", "second"]
        assert {(transaction["capture_id"] != "", transaction["transaction"]) for transaction in made} == {(True, 1)}
    live.recording.close()


def test_the_live_wire_view_tells_of_what_a_filter_lets_through() -> None:
    live = Live()
    with on_pipe("show", "--http", "-f", "-F", "status:error") as shown:
        live.told.post(request(1)).answer(200, result(1))
        failed = {"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "no"}}
        live.told.post(request(2)).answer(200, failed)
        live.flush()
        shown.wait_for("-32601")
        assert "transaction 2" in shown.words
        assert "transaction 1" not in shown.words
    live.recording.close()


def test_the_live_wire_view_says_that_there_is_no_http() -> None:
    recording = Recording("weather")
    with on_pipe("show", "--http", "-f") as shown:
        recording.write([])
        shown.wait_for("there is no HTTP in weather")
    recording.close()
