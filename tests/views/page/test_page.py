"""The page as text: what it may run, and that it holds what was captured and nothing of it as markup."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mcpspy import read, transcribe
from mcpspy.cli.export.formats import page_files
from mcpspy.transcript.model import Transcript
from mcpspy.views.page.page import page
from mcpspy.views.page.rows import PageRow
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.views.scenes import hostile_scene
from tests.views.sequence.test_mermaid import HOSTILE

CAPTURES = ROOT / "captures"
MAX_OWN_BYTES = 200_000
MAX_LINE_LETTERS = 134


def written(transcript: Transcript) -> str:
    return "".join(page(transcript, transcript.rows, page_files(), title="<t>", addresses=["@"]))


class Elements(HTMLParser):
    """The elements of a page and their attributes, as a parser of HTML sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.found[-1] if self.found else ("", {})
        if tag == "script" and attributes.get("id"):
            self.texts.setdefault(str(attributes["id"]), data)


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    return parser


def test_our_own_part_of_the_page_is_small() -> None:
    assert sum(len(text.encode()) for text in page_files().values()) < MAX_OWN_BYTES


def test_lines_of_the_scripts_fit_a_screen() -> None:
    lines = [line for name, text in page_files().items() if name.endswith(".js") for line in text.splitlines()]
    assert [line for line in lines if len(line) > MAX_LINE_LETTERS and "\\u" not in line] == []


def test_one_script_runs_and_nothing_is_loaded() -> None:
    text = written(transcribe(read(CAPTURES / "streamable.mcpspy"), keep_frames=True))
    page_elements = elements(text).found
    assert [
        attributes for tag, attributes in page_elements if tag == "script" and attributes.get("type") != "application/json"
    ] == [{}]
    assert not [
        name
        for _, attributes in page_elements
        for name in attributes
        if name in {"src", "href"} and not str(attributes[name]).startswith("#")
    ]
    (policy,) = (
        str(attributes["content"])
        for tag, attributes in page_elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.grid(20)
@pytest.mark.parametrize("text", [*HOSTILE, "</script><b>", "<!--<script>", "]]>", "{findings}"])
def test_what_peers_wrote_makes_no_element(text: str) -> None:
    clean, dirty = (elements(written(hostile_scene(word).transcript)) for word in ("plain", text))
    tags = [tag for tag, _ in dirty.found]
    assert set(tags) == {tag for tag, _ in clean.found}
    assert not [name for _, attributes in dirty.found for name in attributes if name.startswith("on")]


def test_the_script_knows_every_field_of_a_line() -> None:
    fields = re.findall(r"\w+", re.search(r"FIELDS = \[(.*?)\]", page_files()["01-data.js"], re.DOTALL)[1])  # type: ignore[index]
    assert fields == [name.removesuffix("_ns").replace("sender", "from") for name in PageRow._fields]


def test_every_row_and_all_that_it_carries_is_in_the_page() -> None:
    transcript = transcribe(read(CAPTURES / "everything.mcpspy"), keep_frames=True)
    texts = elements(written(transcript)).texts
    data = json.loads(texts["data"])
    numbers = {line[0] for line in data["rows"] if line[0]}
    assert {exchange.row for exchange in transcript.exchanges} <= numbers
    at = next(at for at, line in enumerate(data["rows"]) if line[8] == "get-sum")
    carried = json.loads(texts[f"rows-{at // data['chunk']}"])[str(at)]
    assert [message["kind"] for message in carried["messages"]] == ["request", "result"]
    assert json.loads(carried["messages"][0]["text"])["params"]["name"] == "get-sum"


def test_a_model_call_is_listed_and_told_beside_the_calls_that_came_of_it() -> None:
    paths = sorted((ROOT / "tests/findings").glob("use-id-mismatch.clean*.mcpspy"))
    transcript = transcribe(*map(read, paths), keep_frames=True)
    texts = elements(written(transcript)).texts
    data = json.loads(texts["data"])
    first, second = (at for at, line in enumerate(data["rows"]) if line[1] == "model call")
    assert data["rows"][first][5:10] == ["client", "model", "chat.completions", "gpt", "ok"]
    carried = json.loads(texts["rows-0"])
    assert any("forecast of example: ok" in line for line in carried[str(first)]["description"])
    assert [message["kind"] for message in carried[str(second)]["messages"]] == ["prompt", "answer"]
    assert json.loads(carried[str(second)]["messages"][1]["text"])["turn"]["role"] == "assistant"
    assert carried[str(second)]["http"][0]["status"] == 200
    assert json.loads(texts["diagram"])["lanes"][-3:] == ["client", "model", "example"]


def test_a_page_is_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert run("export", "html", str(CAPTURES / "time.mcpspy"), "-o", str(path)).returncode == 0
    assert re.search(r"<title>mcpspy .*time\.mcpspy</title>", path.read_text(encoding="utf-8"))
