"""Requests as curl commands: a shell reads back what was sent, and a server gets it."""

import json
import shlex
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.views.curl import _word, curl
from tests.deadlines import SCENE_S
from tests.transcript.dialogue import request
from tests.transcript.traffic import Traffic

CAPTURES = Path(__file__).parents[2] / "captures"


def commands(name: str, number: int) -> str:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"), keeps_frames=True)
    source = transcript.sources[0]
    return "\n".join(curl(source.transactions[number], source))


def test_a_request_is_a_command_that_sends_the_same_to_the_server() -> None:
    words = shlex.split(commands("stateless", 4).replace("\\\n", ""))
    assert words[:6] == ["curl", "-sS", "-N", "-X", "POST", "http://127.0.0.1:8000/mcp"]
    assert "mcp-name: greet" in words
    assert json.loads(words[-1])["params"]["name"] == "greet"
    assert not [one for one in words if one.lower().startswith(("host:", "content-length:"))]


def test_what_was_redacted_is_asked_of_the_environment() -> None:
    told = commands("oauth", 6)
    assert "# $AUTHORIZATION: was redacted; set it before" in told
    assert "'Authorization: Bearer '\"$AUTHORIZATION\"" in told
    assert "redacted-" not in told


def test_a_body_that_was_not_kept_is_said_to_be_missing() -> None:
    told = Traffic()
    told.post(request(1)).answer(200)
    source = told.ends().transcript.sources[0]
    assert "not kept" not in "\n".join(curl(source.transactions[1], source))


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_every_word_back(text: str) -> None:
    word = _word(text)
    if not word.startswith("$'"):
        assert shlex.split(word) == [text]


def test_bash_reads_back_words_that_would_steer_a_terminal() -> None:
    texts = ["\x1b[31mred", "a\nb'c\\d", "\u202etxt", "tab\there", "\x85", "é\x01ü"]
    script = "printf '%s\\0' " + " ".join(map(_word, texts))
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=SCENE_S, check=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout.decode().split("\0")[:-1] == texts
