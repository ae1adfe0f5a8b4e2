"""Tests of prompts on the page: each turn is there once, and everything that was sent can be shown."""

import json
import re
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli.export.formats import page_files
from mcpspy.transcript.model import Transcript
from mcpspy.views.page.page import page
from mcpspy.views.page.rows import curl_text
from mcpspy.views.page.text_runs import Piece, text_runs
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S
from tests.transcript.llm.traffic import CHAT, ModelTraffic, completion

LONG = "Sunny in 杭州 😀, it's <b>21</b> degrees. " * 60

WHOLE = """
const { texts, words } = JSON.parse(require("fs").readFileSync(0, "utf8"));
globalThis.document = { getElementById: (id) => texts[id] && { id, textContent: texts[id] } };
const said = (row) => carried(row).then((what) => [what.messages[0].text, what.curl]);
const found = () => words.map((word) => rows.filter((row) => payloadHolds(row, word)).map((row) => row.row));
"""

SAY = """
(async () => {
  const inOrder = [];
  for (const row of rows) inOrder.push(await said(row));
  const backwards = [];
  for (const row of [...rows].reverse()) backwards.unshift(await said(row));
  console.log(JSON.stringify({ inOrder, backwards, found: found() }));
})();
"""


def conversation(calls: int, *, stamped: bool = False) -> ModelTraffic:
    """Calls whose prompts go on with one another. `stamped`: their instructions are others each time."""
    traffic = ModelTraffic()
    turns = ["user: What of it? 😀"]
    for at in range(calls):
        system = f"system: It is {at} o'clock" if stamped else "system: Be brief"
        messages = [dict(zip(("role", "content"), turn.split(": ", 1), strict=True)) for turn in (system, *turns)]
        body = json.dumps({"model": "m", "temperature": at, "messages": messages, "tools": []}, ensure_ascii=False)
        traffic.post(body.encode(), CHAT).answer(200, completion(f"Answer {at}"))
        turns += [f"assistant: Answer {at}", f"user: word{at}-{LONG}"]
    return traffic


def written(transcript: Transcript, rows: slice = slice(None)) -> str:
    return "".join(page(transcript, transcript.rows[rows], page_files(), title="t", addresses=["@"]))


def put_together(node: str, text: str, words: list[str]) -> Any:
    """Run the page's script on the page's data, and return its values."""
    texts = dict(re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', text))
    script = "\n".join([WHOLE, page_files()["01-data.js"], page_files()["07-tree.js"], SAY])
    value = json.dumps({"texts": texts, "words": words})
    done = subprocess.run([node, "-e", script], input=value, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return json.loads(done.stdout)


def whole(pieces: list[Piece], before: str) -> str:
    """Join these pieces into a text, with letters counted as a script does."""
    units = before.encode("utf-16-le")
    return b"".join(
        piece.encode("utf-16-le") if isinstance(piece, str) else units[2 * piece[0] : 2 * piece[1]] for piece in pieces
    ).decode("utf-16-le")


PARTS = st.sampled_from(['{"role":"user"}, ', '{"a":"' + "x" * 50 + '"}, ', "😀" * 50, LONG, "{", '"', "杭州", ""])
TEXTS = st.lists(PARTS | st.text(max_size=5), max_size=12).map("".join)


@given(TEXTS, TEXTS)
def test_the_pieces_of_any_text_put_together_are_the_text(text: str, before: str) -> None:
    assert whole(text_runs(text, before), before) == text


def test_turns_that_moved_are_told_as_runs() -> None:
    turns = [f'{{"role":"user","content":"{at}{LONG}"}}, ' for at in range(6)]
    pieces = text_runs("".join(["{", *turns[3:], *turns[:2], '{"new"']), "".join(["[", *turns]))
    assert sum(len(piece) for piece in pieces if isinstance(piece, str)) < 500


@pytest.mark.parametrize("stamped", [False, True])
def test_the_page_of_a_conversation_grows_with_its_turns_and_not_with_their_square(*, stamped: bool) -> None:
    empty, short, long = (len(written(conversation(calls, stamped=stamped).wire)) for calls in (1, 11, 21))
    assert long - empty < 2.3 * (short - empty)


def test_the_page_puts_together_what_was_sent(debian_program: DebianProgram) -> None:
    transcript = conversation(12, stamped=True).wire
    (source,) = transcript.captures
    sent = [call.payload.decode() for call in transcript.model_calls]
    results = put_together(debian_program("node"), written(transcript), ["word3-sunny", "nowhere", "answer 11"])
    assert [payload for payload, _ in results["inOrder"]] == sent
    assert results["backwards"] == results["inOrder"]
    assert [curl for _, curl in results["inOrder"]] == [curl_text(call.transaction, source) for call in transcript.model_calls]
    assert results["found"] == [[call.row for call in transcript.model_calls[4:]], [], [transcript.model_calls[-1].row]]


def test_a_prompt_refers_to_nothing_that_is_not_on_the_page(debian_program: DebianProgram) -> None:
    transcript = conversation(9).wire
    results = put_together(debian_program("node"), written(transcript, slice(4, None, 2)), [])
    assert [payload for payload, _ in results["inOrder"]] == [call.payload.decode() for call in transcript.model_calls[4::2]]
