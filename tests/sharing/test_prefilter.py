"""The prefilter passes only texts without secrets: every text gets the same edits as when it is taken apart."""

import json
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.sharing.finder import FinderOptions, Prefilter, SecretFinder
from mcpspy.sharing.known import KnownValues
from mcpspy.sharing.patterns import SecretNames
from mcpspy.sharing.verify import random_spans
from tests.sharing.hiding import finder, pseudonym

KNOWN = b"hunter2 hunter2"


def harmless(data: bytes, *known: bytes) -> bool:
    values = KnownValues(pseudonym)
    for value in known:
        values.add(value)
    values.close()
    return Prefilter(SecretNames(), values, personal=True)(data)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","_meta":{"progressToken":7}}}',
        '{"result":{"content":[{"type":"text","text":"first line\\nsecond \\"line\\", 30% off"}]}}',
        '{"result":{"content":[{"type":"text","text":"{\\"items\\": [{\\"id\\": 1}], \\"note\\": \\"a\\\\nb\\"}"}]}}',
        "a line on stderr",
        '{"result":{"text":"the author of the keyboard: https://h/x?page=2&sort=asc, count = 3, basis -v and --all"}}',
    ],
)
def test_the_texts_of_most_messages_are_harmless(text: str) -> None:
    assert harmless(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"password":"x"}',
        '{"pass-word":"x"}',
        '{"device_code":"x"}',
        '{"a":"{\\"pass-word\\":\\"x\\"}"}',
        r'{"pass\u0077ord":"x"}',
        r'{"a":"C:\\Users\\bob"}',
        'it is 5" wide {"pass-word":"x"}',
        r'{"device\u005fcode":"x"}',
        '[{"name":"to-ken","value":"x"}]',
        '{"a":"Basic abcdefgh1"}',
        '{"progressToken": "x", "a": "token: x1"}',
        '{"a":"ghp_0123456789abcdefghij"}',
        '{"a":"x\\n-ghp_0123456789abcdefghij"}',
        '{"a":"/home/alice"}',
        '{"a":"me@example.com"}',
        "GET /messages?sid=abc",
        json.dumps({"blob": b64encode(b'{"password": "x"}').decode().rstrip("=")}),
        f"hunter2%20{KNOWN.decode()}",
        '{"a":"hunter2 hun\\u0074er2"}',
        '{"a":"redacted-0123456789ab"}',
        '["--for/pass-word", "x"]',
    ],
)
def test_texts_that_may_hold_a_secret_are_not(text: str) -> None:
    assert not harmless(text.encode(), KNOWN)


def taking_apart(searcher: SecretFinder) -> SecretFinder:
    """Have a finder take every text apart."""
    searcher._is_quick = False
    return searcher


PIECES = [
    "a", "text", "pass", "-", "word", "pass-word", "device_code", "to-ken", "progressToken", "requestState", "request-state", "name",
    "value", "API_KEY", "token", "sid", "hunter2 hunter2", "hunter2", "4711471147", "me@example.com", "/home/alice/x",
    "C:\\Users\\Bob", "ghp_0123456789abcdefghij", "eyJhbGciOiJI.eyJzdWIi.c2ln",
    "Bearer abcdefgh1", "basic", "redacted-0123456789ab", "https://u:p@h/",
    "notifications/initialized", b64encode(b'{"password": "x"}').decode(), b64encode(b"hunter2 hunter2").decode().rstrip("="),
    "%68unter2%20hunter2", "%7B", '"', '":', '": "', '","', "{", "}", "[", "]", ":", "=", "--pat", "-token",
    "author=", "auth=", "key: ",
    "q0Z8xT4mN2vB6wR1yU7k", "?", "&", "\\", "\\n", "\\u0070", "\n", " ",
    "ü", "--secret ", "1",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
VALUES = st.recursive(
    TEXTS | st.sampled_from([4711471147, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3) | st.builds(json.dumps, inner),
    max_leaves=6,
)
PAYLOADS = VALUES.map(json.dumps) | VALUES.map(lambda value: json.dumps(value)[:-2]) | st.lists(TEXTS, max_size=6).map("".join)


OPTIONS = [{"personal": True}, {"personal": False}, {"more": random_spans, "spares_pseudonyms": True, "takes_numbers": True}]


@given(st.lists(PAYLOADS, min_size=1, max_size=2), st.sampled_from(OPTIONS))
def test_every_text_is_edited_as_if_it_were_taken_apart(texts: list[str], options: dict[str, object]) -> None:
    quick = finder(KNOWN, b"4711471147", **options)
    close = taking_apart(finder(KNOWN, b"4711471147", **options))
    for data in map(str.encode, (*texts, *texts)):  # a text is remembered after the first time
        assert quick.payload_edits(data) == close.payload_edits(data)


def test_a_text_with_a_value_that_became_known_is_not_harmless_any_more() -> None:
    known = KnownValues(pseudonym)
    searcher = SecretFinder(FinderOptions(pseudonym=pseudonym), known)
    searcher.learns = True
    texts = [b'{"a":"say 123-456 \\n"}', b'{"password":"123-456"}']
    assert searcher.payload_edits(texts[0]) == []
    searcher.payload_edits(texts[1])
    searcher.end_learning()
    assert [len(searcher.payload_edits(text)) for text in texts] == [1, 1]


@given(st.lists(PAYLOADS, max_size=3))
@settings(max_examples=30)
def test_the_same_is_learned_as_if_it_were_taken_apart(texts: list[str]) -> None:
    edits = []
    for is_quick in (True, False):
        known = KnownValues(pseudonym)
        searcher = SecretFinder(FinderOptions(pseudonym=pseudonym), known)
        searcher = searcher if is_quick else taking_apart(searcher)
        searcher.learns = True
        for text in (*texts, '{"method":"hunter2/list"}', '{"password":"hunter2/list"}'):
            searcher.payload_edits(text.encode())
        searcher.end_learning()
        edits.append([searcher.payload_edits(text.encode()) for text in (*texts, "hunter2/list", " ".join(PIECES))])
    assert edits[0] == edits[1]
