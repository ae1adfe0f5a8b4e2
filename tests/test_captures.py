"""The captures that come with the project: intact, told by their ladders, about nobody's machine, and made anew by their script."""

import re
from collections import Counter
from pathlib import Path

import pytest

from captures.make import DEMO, HERE, STORIES, files_of, ladder, record
from captures.runs import RUNS, captures_of, record_run
from mcpspy import read, transcribe
from mcpspy.capture.file.verify import Status, verify
from mcpspy.records import Header
from tests.conftest import NpmProgram
from tests.tiers import current_tier

MAX_BYTES = 330_000
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<\\])/(?:[\w.-]+/)*[\w.-]+")
PATH_OF_URL = re.compile(r'"(?:GET|POST|DELETE) /\S*|data: /\S*|\\"uri\\": \\"/\S*')
FROM_PYPI = ("time", "git", "question", "logs", "sse", "channels", "prompts", "stateless", "oauth")
FROM_HERE = (*FROM_PYPI, *RUNS)
FROM_NPM = tuple(name for name in STORIES if name not in (*FROM_PYPI, "goodbye"))
"""`goodbye` is a race of 350 ms between the client's end and the server's question, which a busy machine may lose."""

TOLD = (*STORIES, *RUNS)
CAPTURES = (*STORIES, *(capture for name in RUNS for capture in captures_of(name)))

RACED = "notifications/tools/list_changed"
"""server-everything sends these soon after the handshake, on the stream that the client opens for it: which is first is a race."""


def capture(name: str) -> Path:
    return HERE / f"{name}.mcpspy"


def message_counts(path: Path) -> Counter[tuple[object, ...]]:
    """Count the messages and model calls, without the one that is a race. Their order may differ from run to run."""
    transcript = transcribe(read(path))
    messages = (message for message in transcript.messages if message.method != RACED)
    counts = Counter[tuple[object, ...]](
        (message.sender, message.kind, message.method, message.target, message.is_error) for message in messages
    )
    counts.update((call.method, call.prompt.turns, call.answer and call.answer.turn.text) for call in transcript.model_calls)
    return counts


OTHERS = {"README.md", "make.py", "runs.py", "serving.py", "mcp-server-weather.log"}


def test_the_folder_holds_what_the_script_makes_and_nothing_else() -> None:
    made = {f"{name}.mcpspy" for name in CAPTURES} | {f"{name}.txt" for name in TOLD}
    assert {path.name for path in HERE.iterdir() if path.is_file()} == made | OTHERS


def test_the_captures_are_small_enough_to_live_beside_the_code() -> None:
    assert sum(path.stat().st_size for path in HERE.iterdir() if path.suffix == ".mcpspy") < MAX_BYTES


def test_each_story_is_told_in_the_readme() -> None:
    matches = re.findall(r"^\| \[`(\w+)`\]\(\1\.txt\)", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert matches == list(TOLD)


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_is_intact(name: str) -> None:
    assert verify(str(capture(name))).status is Status.INTACT


@pytest.mark.grid(8)
@pytest.mark.parametrize("name", TOLD)
def test_a_capture_reads_as_its_ladder_tells(name: str) -> None:
    assert ladder(*files_of(name)).decode() == (HERE / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_tells_nothing_of_the_machine_it_was_made_on(name: str) -> None:
    header, *records = read(capture(name))
    assert isinstance(header, Header)
    assert header.cwd == str(DEMO)
    assert set(header.tapped.get("env", [])) <= {"HOME", "LANG", "PATH", *(STORIES[name].variables if name in STORIES else ())}
    paths = ABSOLUTE_PATH.findall(PATH_OF_URL.sub("", capture(name).read_text(encoding="utf-8")))
    assert [path for path in paths if not Path(path).is_relative_to(DEMO)] == []
    assert records


@pytest.mark.parametrize("name", current_tier()(sample=("git", "sse", "oauth"), more=FROM_HERE, full=FROM_HERE))
def test_a_story_recorded_anew_says_the_same(name: str, tmp_path: Path) -> None:
    made = record_run(name, tmp_path) if name in RUNS else [record(name, tmp_path)]
    assert [message_counts(path) for path in made] == [message_counts(path) for path in files_of(name)]


@pytest.mark.parametrize("name", FROM_NPM)
def test_a_story_of_npm_recorded_anew_says_the_same(name: str, tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program(STORIES[name].command[0])
    assert message_counts(record(name, tmp_path)) == message_counts(capture(name))
