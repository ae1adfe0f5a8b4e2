"""`mcpspy export`, as a user calls it, on real captures."""

import json
import os
import re
from pathlib import Path

import pytest

from mcpspy import read, transcribe
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.folder import captures_folder
from mcpspy.records import CLIENT_PROCESSES, Note
from tests.capture.making import lines, opens
from tests.cli.terminal import on_terminal, run
from tests.conftest import MermaidReader
from tests.sharing.hiding import lines as written
from tests.transcript.dialogue import request, result
from tests.transcript.traffic import Traffic
from tests.views.scenes import call, failed, opened
from tests.views.sequence.test_mermaid import words

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))
EVERYTHING = str(CAPTURES / "everything.mcpspy")


def test_every_capture_of_ours_is_a_diagram_that_mermaid_reads(read_mermaid: MermaidReader) -> None:
    texts = [run("export", "mermaid", str(CAPTURES / f"{name}.mcpspy")).stdout for name in NAMES]
    for name, text, read_back in zip(NAMES, texts, read_mermaid(texts), strict=True):
        assert "error" not in read_back, name
        lanes = 3 if name.endswith("-model") else 2  # a model's leg has the user too
        assert len(read_back["participants"]) == lanes, name
        lines = [line.strip() for line in text.splitlines()[1 + lanes :]]
        signals = [line for line in lines if line.startswith("loop ") or ": " in line]
        assert len(words(read_back)) == len(signals), name


def test_rows_of_standard_input_are_no_option() -> None:
    done = run("export", "text", "-:2..3", stdin=Path(EVERYTHING).read_bytes())
    assert done.stdout == run("export", "text", f"{EVERYTHING}:2..3").stdout != ""


def test_a_ladder_on_a_pipe_has_one_width() -> None:
    shown = run("export", "text", EVERYTHING).stdout
    assert {len(line) for line in shown.splitlines()[1:]} == {95}


def test_a_ladder_on_a_terminal_is_as_wide_as_that() -> None:
    with on_terminal("export", "text", EVERYTHING, columns=60) as shown:
        assert shown.rest() == 0
    assert max(map(len, shown.words.splitlines())) <= 60
    assert "\x1b[" in shown.text


def test_jsonl_has_every_message() -> None:
    output = [json.loads(line) for line in run("export", "jsonl", EVERYTHING).stdout.splitlines()]
    assert len(output) == len(transcribe(read(EVERYTHING)).messages)
    assert all(item["schema"] == 1 for item in output)


def test_rows_can_be_chosen() -> None:
    output = [json.loads(line) for line in run("export", "jsonl", f"{EVERYTHING}:2..4").stdout.splitlines()]
    assert {item["row"] for item in output} == {2, 3, 4}


def test_a_row_that_is_not_there_is_an_error() -> None:
    done = run("export", "mermaid", f"{EVERYTHING}:999")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no row 999" in done.stderr


@pytest.mark.parametrize("format", ["mermaid", "plantuml", "svg", "text", "jsonl"])
def test_a_file_gets_what_a_pipe_would_get(format: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    done = run("export", format, EVERYTHING, "-o", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert path.read_text(encoding="utf-8") == run("export", format, EVERYTHING).stdout


def test_a_file_that_cannot_be_written_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    done = run("export", "text", EVERYTHING, "-o", str(tmp_path / "no" / "out"))
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_diagram_too_large_for_mermaid_says_so_on_stderr() -> None:
    captures = [str(CAPTURES / f"{name}.mcpspy") for name in NAMES]
    shown = run("export", "mermaid", *captures, "--unfold", "--detail", "full")
    assert shown.returncode == 0
    assert "left out, because Mermaid draws at most 50,000 characters" in shown.stderr
    assert 40_000 < len(shown.stdout) <= 50_000
    assert "more messages" in shown.stdout
    wanted = run("export", "mermaid", *captures, "--unfold", "--detail", "full", "--max-messages", "9999")
    assert "maxTextSize" in wanted.stderr
    assert len(wanted.stdout) > 50_000


def test_a_diagram_that_plantuml_would_cut_says_how_to_draw_it() -> None:
    shown = run("export", "plantuml", *[str(CAPTURES / f"{name}.mcpspy") for name in NAMES])
    assert "PLANTUML_LIMIT_SIZE=" in shown.stderr
    assert "PLANTUML_LIMIT_SIZE=" in shown.stdout.splitlines()[1]
    assert "PLANTUML_LIMIT_SIZE" not in run("export", "plantuml", EVERYTHING, "--max-messages", "4").stderr


def test_a_format_that_does_not_exist_is_a_usage_error_that_names_those_that_do() -> None:
    done = run("export", "doc", EVERYTHING)
    assert done.returncode == 2
    assert "jsonl" in done.stderr


def test_a_capture_without_messages_is_a_diagram_without_arrows(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(opens()))
    assert run("export", "jsonl", str(path)).stdout == ""
    assert run("export", "mermaid", str(path)).stdout.startswith("sequenceDiagram\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope"], "there is no format nope; the formats are mermaid, plantuml"),
        (["svg", EVERYTHING, "--lane", "everything"], "--lane takes NAME=TEXT"),
        (["svg", EVERYTHING, "--lane", "nobody=x"], "there is no lane nobody; the lanes are stepclient, everything, mcpspy"),
        (["text", EVERYTHING, "--max-messages", "0"], "0 is not in the range"),
    ],
)
def test_a_diagram_that_cannot_be_drawn_is_reported_with_those_that_can(arguments: list[str], sentence: str) -> None:
    done = run("export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_each_format_shows_its_own_options() -> None:
    assert "--show-proxy" in run("export", "mermaid", "--help").stdout
    assert "--show-proxy" not in run("export", "jsonl", "--help").stdout


def test_a_diagram_is_titled_and_its_lanes_called_as_the_user_wants() -> None:
    shown = run("export", "mermaid", EVERYTHING, "--title", "All of it", "--lane", "everything=The server").stdout
    assert "    title All of it\n" in shown
    assert "    participant server1 as The server\n" in shown


def test_no_more_messages_are_drawn_than_were_wanted() -> None:
    shown = run("export", "text", EVERYTHING, "--max-messages", "4", "--flat").stdout
    assert sum("├" in line or "┤" in line for line in shown.splitlines()) == 4
    assert "more messages" in shown


STREAMABLE = str(CAPTURES / "streamable.mcpspy")


def test_har_and_curl_are_of_http_alone_and_say_so() -> None:
    for format, sentence in (("har", "it has no HTTP"), ("curl", "mcpspy replay")):
        done = run("export", format, EVERYTHING)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr


def test_a_row_that_went_over_http_is_a_command() -> None:
    done = run("export", "curl", f"{STREAMABLE}:4")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("curl -sS -N -g -X POST http://127.0.0.1:8000/mcp")


def test_the_stream_that_brought_an_answer_is_a_command_only_if_it_is_selected() -> None:
    sse = str(CAPTURES / "sse.mcpspy")
    assert [line.split()[5] for line in run("export", "curl", f"{sse}:5").stdout.splitlines() if line.startswith("curl")] == [
        "POST"
    ]
    assert run("export", "curl", f"{sse}:1").stdout.startswith("curl -sS -N -g -X GET")


def test_a_har_has_the_transactions_of_the_rows() -> None:
    assert len(json.loads(run("export", "har", f"{STREAMABLE}:4").stdout)["log"]["entries"]) == 1


def test_a_report_holds_no_secrets(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    path = tmp_path / "a.mcpspy"
    edited = Path(EVERYTHING).read_bytes().replace(b"What is a tap?", token.encode())
    path.write_bytes(re.sub(rb',"crc":"[0-9a-f]+"', b"", edited))
    shown = run("export", "markdown", f"{path}:12..13")
    assert shown.returncode == 0
    assert "trigger-sampling-request" in shown.stdout
    assert token not in shown.stdout
    assert "redacted-" in shown.stdout


def test_a_secret_that_another_row_or_capture_gives_away_is_none_in_a_report(tmp_path: Path) -> None:
    secret = "correct horse battery"
    shows = opened("a").client(call(1, "x")).server(failed(1, f"not the {secret} staple"))
    tells = opened("b").client(call(1, "y")).server(result(1)).client(call(2, "z", password=secret))
    for folder, scenes in (("one", [shows]), ("both", [shows, tells])):
        paths = [tmp_path / f"{folder}-{number}.mcpspy" for number in range(len(scenes))]
        for path, scene in zip(paths, scenes, strict=True):
            path.write_bytes(written(scene.records))
        shown = run("export", "markdown", *map(str, paths), "-F", "tool:x")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert (f"not the {secret} staple" in shown.stdout) == (folder == "one")
        assert (secret in shown.stdout) == (folder == "one")


def test_a_report_of_a_recording_has_none_of_the_calls_of_another_client(tmp_path: Path) -> None:
    traffic = Traffic()
    for number, name in ((1, "first"), (2, "second")):
        traffic.post(request(1, "tools/call", {"name": name}), connection=number).answer(body=result(1, {"content": []}))
    processes = [{"pid": pid, "name": "agent", "start": 9, "first_ns": 0, "last_ns": traffic.at_ns} for pid in (301, 302)]
    traffic.add(
        Note(
            at_ns=traffic.at_ns,
            topic=CLIENT_PROCESSES,
            text="processes of connections",
            extra={"processes": processes, "connections": [[301, 1], [302, 2]]},
        )
    )
    stored(traffic)
    texts = [run("export", "markdown", what).stdout for what in ("@", "@1")]
    assert all("**✓ 1 call in" in text for text in texts)
    assert sorted("first" in text for text in texts) == [False, True]


def stored(traffic: Traffic) -> None:
    """Write the capture of this traffic into the store."""
    folder = Path(captures_folder())
    folder.mkdir(parents=True, mode=0o700)
    writer = Writer(
        os.open(folder / "20261127T080000Z-weather-1.mcpspy", os.O_WRONLY | os.O_CREAT, 0o600),
        header_line(traffic.records[0]),  # type: ignore[arg-type]  # the header
    )
    writer(traffic.records[1:])
    writer.close(traffic.at_ns)
