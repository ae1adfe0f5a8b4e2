"""Letters that were decoded with another encoding, lost, or escaped once too often; and texts that only look so."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.findings.payloads.misread import escaped, loss, misreading
from tests.findings.test_near_misses import HANDSHAKE
from tests.findings.test_silences import findings_of

INTACT = {
    "Portuguese in capitals": "AÇÃO, «IRMû E MAÇÃ EM SÃO PAULO",
    "French with its spaces": "L’été : « déjà » vu – 21 °C …",
    "Vietnamese": "Ấn Độ, Âu Mỹ, đất nước",
    "Icelandic": "Það er ágætt; ÞÓRÐUR",
    "Chinese": "你好 世界",
    "a text about it": "If you see Ã© instead of e acute, the UTF-8 was read as Latin-1.",
    "a text with both": "Résumé.docx is listed as RÃ©sumÃ©.docx",
    "the character by itself": "The replacement character is � in Unicode.",
    "a path": r"C:\new\notes\next",
    "a regular expression": r"^\d+\n\s*\n\w+\n$",
    "a line of code": r"print('a\n' + 'b\n' + 'c\n')",
    "JSON, with the escapes that it needs": json.dumps({"text": "a\nb\nc\nd", "name": "é", "quote": '"x"'}),
    "a quotation": '"to be or not to be"',
}


@pytest.mark.parametrize("text", INTACT.values(), ids=INTACT)
def test_a_text_that_only_looks_wrong_is_left_alone(text: str) -> None:
    assert (misreading(text), loss(text), escaped(text)) == (None, None, "")


@pytest.mark.parametrize("word", ["café", "Müller", "naïve", "smörgåsbord", "user’s", "21 °C", "Привет", "日本"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_utf_8_that_was_read_with_another_encoding_is_found(word: str, encoding: str) -> None:
    found = misreading(f"It is {word.encode().decode(encoding)}.")
    assert found is not None
    assert found.right in word


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    for find in (misreading, loss, escaped):
        find(text)


@given(st.text(alphabet="abc äöüéèñçß", min_size=1).filter(lambda text: not text.isascii()))
def test_any_european_text_is_found_and_never_before_it_is_misread(text: str) -> None:
    assert misreading(text) is None
    found = misreading(text.encode().decode("latin-1"))
    assert found is not None
    assert found.right.strip() in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"{\"a\": 1}", "JSON whose quotation marks are escaped again"),
        (r"[{\"a\": 1}]", "JSON whose quotation marks are escaped again"),
        (json.dumps(json.dumps({"a": 1})), "JSON inside of a JSON string"),
        (r"first\nsecond\nthird\nfourth", r"line feeds that are written as \n"),
        (r"caf\u00e9, cr\u00eape, na\u00efve", r"letters that are written as \u00e9"),
    ],
)
def test_a_text_that_was_escaped_twice_is_found(text: str, words: str) -> None:
    assert escaped(text) == words


def called(argument: str, text: str) -> str:
    arguments = json.dumps({"name": "echo", "arguments": {"text": argument}}, ensure_ascii=False)
    content = json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)
    return f"{HANDSHAKE}→ tools/call 1 {arguments}\n← result 1 {content}"


@pytest.mark.parametrize(
    ("argument", "text", "culprit", "severity"),
    [
        ("x", "The cafÃ© isnâ€™t open.", "server", "warning"),
        ("x", "21Â°C", "server", "note"),
        ("x", "Stra��e, M��nchen", "server", "warning"),
        ("MÃ¼ller", "MÃ¼ller is found.", "client", "note"),
    ],
)
def test_the_side_that_wrote_wrong_letters_first_is_to_blame(argument: str, text: str, culprit: str, severity: str) -> None:
    found = [finding for finding in findings_of(called(argument, text)) if finding.rule == "misread-text"]
    assert [(finding.culprit, finding.severity) for finding in found] == [(culprit, severity)]


def test_wrong_letters_that_a_server_gave_out_are_its_fault_when_they_come_back() -> None:
    again = '→ tools/call 2 {"name":"echo","arguments":{"text":"the cafÃ©"}}\n← result 2'
    found = [finding for finding in findings_of(f"{called('x', 'A cafÃ©.')}\n{again}") if finding.rule == "misread-text"]
    assert [finding.culprit for finding in found] == ["server"]


def test_letters_that_a_client_lost_are_not_also_the_servers_that_repeats_them() -> None:
    found = [
        finding for finding in findings_of(called("menu/caf�.txt", "no such file: menu/caf�.txt")) if "U+FFFD" in finding.what
    ]
    assert [(finding.culprit, finding.severity) for finding in found] == [("client", "note")]


def test_an_argument_that_a_model_escaped_twice_is_the_agents() -> None:
    (finding,) = [found for found in findings_of(called(r"a\nb\nc\nd", "done")) if found.rule == "escaped-twice"]
    assert finding.culprit == "agent"
