"""Secrets that are found in texts, and texts that are left alone. `R` means a pseudonym."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.ignore import Ignore
from mcpspy.sharing.finder import MIN_REMEMBERED_BYTES, FinderOptions, SecretFinder
from mcpspy.sharing.known import KnownValues
from mcpspy.sharing.patterns import SecretNames
from mcpspy.sharing.user_paths import UserPaths
from mcpspy.wire.edits import apply_edits
from tests.sharing.hiding import finder, held, marked, pseudonym

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sflKxwRJ-SMeKKF2QT4"


def made(text: str | bytes, *known: bytes, **wanted: Any) -> str:
    data = text.encode() if isinstance(text, str) else text
    return marked(apply_edits(data, finder(*known, **wanted).payload_edits(data))).decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        # members whose names say that they are secret
        ('{"password":"x","n":1}', '{"password":"R","n":1}'),
        ('{ "apiKey" : "x" ,"a":"b"}', '{ "apiKey" : "R" ,"a":"b"}'),
        (r'{"pass\u0077ord":"x\"y"}', r'{"pass\u0077ord":"R"}'),
        ('{"client_secret":"x","device_code":"y","requestState":"z"}', '{"client_secret":"R","device_code":"R","requestState":"R"}'),
        ('{"tokens":1,"token":["a","b",{"c":"d"},"e"]}', '{"tokens":1,"token":["R","R",{"c":"d"},"R"]}'),
        ('{"authorization":"Bearer abc"}', '{"authorization":"Bearer R"}'),
        ('{"cookie":"sid=abc; theme=dark"}', '{"cookie":"sid=R; theme=R"}'),
        ('{"password":"hun', '{"password":"R'),
        ('[{"name":"API_KEY","value":"x"},{"name":"a","value":"y"}]', '[{"name":"API_KEY","value":"R"},{"name":"a","value":"y"}]'),
        ('{"token":{"value":"x","type":"y"},"a":{"value":"z"}}', '{"token":{"value":"R","type":"y"},"a":{"value":"z"}}'),
        # JSON in texts, and texts in JSON
        (r'{"text":"{\"password\":\"ab\\\"c\"}"}', r'{"text":"{\"password\":\"R\"}"}'),
        ('got {"password": "x"} from y', 'got {"password": "R"} from y'),
        (r'{"text":"{\"a\":\"{\\\"otp\\\":\\\"x\\\"}\"}"}', r'{"text":"{\"a\":\"{\\\"otp\\\":\\\"R\\\"}\"}"}'),
        (r'say password=\"hunter2\" and token=a\b', r'say password=\"R\" and token=R'),
        # names before values
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=R"),
        ("password: hunter2", "password: R"),
        ("Authorization: Bearer abc1", "Authorization: Bearer R"),
        ("{'password': 'it'}", "{'password': 'R'}"),
        ("serve --api-key abc --token=abcd --port 1", "serve --api-key R --token=R --port 1"),
        ("serve --pw x9y8z7 --csrf x9y8z6 --hmac=x9y8z5 --port 1", "serve --pw R --csrf R --hmac=R --port 1"),
        ("run --password 'a b' --secret \"c d\" x", "run --password 'R' --secret \"R\" x"),
        # URLs and forms
        ("see https://u:pw@h/?a=1&api_key=ab%20c&z=2#f", "see https://u:R@h/?a=1&api_key=R&z=2#f"),
        ("grant_type=code&code=abc&client_secret=x%2By", "grant_type=code&code=R&client_secret=R"),
        ("GET /messages?sessionId=abc", "GET /messages?sessionId=R"),
        # looks
        ("sk-abcdefghijklmnop1234, ghp_0123456789abcdefghij.", "R, R."),
        ("hvs.CAESIJ0123456789abcdefgh", "R"),
        (f"github_pat_{'a1' * 15} xoxb-123456789-abc AKIAIOSFODNN7EXAMPLE", "R R R"),
        (f"<{JWT}>", "<R>"),
        ("-----BEGIN RSA PRIVATE KEY-----\nab\n-----END RSA PRIVATE KEY----- x", "R x"),
        ("-----BEGIN PRIVATE KEY-----\nab", "R"),
        ("curl -H 'x: Bearer abcdefgh1'", "curl -H 'x: Bearer R'"),
    ],
)  # fmt: skip
def test_secrets_are_found(text: str, shared: str) -> None:
    assert made(text) == shared


@pytest.mark.parametrize(
    "text",
    [
        '{"maxTokens":5,"progressToken":"abc1234567","nextCursor":"xyz1234567"}',
        '{"inputSchema":{"properties":{"token":{"type":"string"}},"required":["token"]}}',
        '{"description":"token: the API token to use. Key: value"}',
        '{"password":1234,"token":true,"secret":null,"apiKey":""}',
        "token = get_token()",
        "the password is required: none",
        "task-force-of-many-words and disk-encryption-settings-page",
        "Bearer authentication is required",
        "https://example.com/?page=1&q=token",
        "me@example.com in /home/alice",
        "notifications/message tools/call",
    ],
)
def test_texts_without_secrets_are_left_alone(text: str) -> None:
    assert made(text) == text


KNOWN = 'päss"word\\9\t!'


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        (KNOWN, "R"),
        (json.dumps({"a": f"x {KNOWN} y"}), '{"a":"x R y"}'),
        (json.dumps({"a": f"x {KNOWN} y"}, ensure_ascii=False), '{"a":"x R y"}'),
        (json.dumps({"a": json.dumps([KNOWN])}), '{"a":"[\\"R\\"]"}'),
        (json.dumps({KNOWN: 1}), '{"R":1}'),
        ("a?q=p%C3%A4ss%22word%5C9%09%21&b", "a?q=R&b"),
        ("a?q=p%c3%A4ss%22wo%72d%5C9%09!&b", "a?q=R&b"),
        (b"\xff\xfe" + KNOWN.encode(), "\udcff\udcfeR"),
    ],
)
def test_a_known_value_is_found_however_it_is_spelled(text: str | bytes, shared: str) -> None:
    assert made(text, KNOWN.encode()).replace('": ', '":') == shared


def test_base64_of_a_secret_becomes_base64_of_its_pseudonym() -> None:
    from base64 import b64decode, b64encode

    for text in (KNOWN, f"user:{KNOWN}", json.dumps({"password": "x", "n": 1})):
        data = json.dumps({"blob": b64encode(text.encode()).decode()}).encode()
        again = json.loads(apply_edits(data, finder(KNOWN.encode()).payload_edits(data)))["blob"]
        assert b"redacted-" in b64decode(again)
        assert held(b64decode(again), [KNOWN]) == []


def test_numbers_under_a_path_become_texts_and_stay_json() -> None:
    paths = UserPaths(Ignore.of(["$.arguments"]))
    text = '{"method":"x","params":{"arguments":{"a":1,"b":[true,null,-1.5e3],"c":{"d":""}}}}'
    assert made(text, paths=paths) == (
        '{"method":"x","params":{"arguments":{"a":"R","b":["R",null,"R"],"c":{"d":""}}}}'
    )  # fmt: skip


def test_numbers_under_a_name_that_the_user_gives_become_texts() -> None:
    assert made('{"Customer-Id":17,"customer_id":["a",2],"id":3}', names=SecretNames(["customerId"])) == (
        '{"Customer-Id":"R","customer_id":["R","R"],"id":3}'
    )


def test_a_path_goes_on_into_json_in_a_text() -> None:
    paths = UserPaths(Ignore.of(["$.result.content[0].text.name"]))
    assert made('{"result":{"content":[{"text":"{\\"name\\":\\"x\\",\\"n\\":1}"}]}}', paths=paths) == (
        '{"result":{"content":[{"text":"{\\"name\\":\\"R\\",\\"n\\":1}"}]}}'
    )


def test_a_pattern_removes_its_match_or_its_group() -> None:
    values = (re.compile(r"cust-(\d+)"), re.compile("größe"))
    assert made('{"a":"cust-17 größe","b":"cust-x"}', values=values) == '{"a":"cust-R R","b":"cust-x"}'


def test_values_to_keep_are_kept() -> None:
    keep = (re.compile("string|demo.*"),)
    assert made('{"password":"string","token":"demo-1","secret":"x"}', keep=keep) == (
        '{"password":"string","token":"demo-1","secret":"R"}'
    )


def test_personal_data_is_removed_only_on_request() -> None:
    text = '{"a":"me@example.com /home/alice/x C:\\\\Users\\\\Bob\\\\y"}'
    assert made(text) == text
    assert made(text, personal=True) == '{"a":"R /home/R/x C:\\\\Users\\\\R\\\\y"}'


def test_equal_secrets_have_equal_pseudonyms_everywhere() -> None:
    value = "a b/ü"
    texts = [
        json.dumps({"password": value}),
        json.dumps({"text": json.dumps({"token": value})}),
        "https://h/?api_key=a%20b%2F%C3%BC",
        f'API_KEY="{value}"',
    ]
    for text in texts:
        data = text.encode()
        assert pseudonym(value.encode()) in apply_edits(data, finder().payload_edits(data))


@given(st.binary(max_size=80) | st.text('{}[]":,\\u=%?&/ tokenpassword', max_size=60).map(str.encode))
def test_any_bytes_can_be_searched_and_only_secrets_change(data: bytes) -> None:
    searcher = finder(b"to", personal=True)
    edits = searcher.payload_edits(data)
    again = apply_edits(data, edits)
    assert [edit for edit in edits if not 0 <= edit.start <= edit.end <= len(data)] == []
    assert apply_edits(again, searcher.payload_edits(again)) == again


def shape(value: Any) -> Any:
    """Return the shape of a JSON value, without the contents of its texts and names."""
    if isinstance(value, dict):
        return [shape(inner) for inner in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


NAMES = st.sampled_from(["password", "a", "token", "text", "authorization", "cookie", "api_key", "redacted-0123456789ab"])
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["Bearer a", "k=v; x=y", '{"token":"x"}', "?key=a%20b", "hunter2hunter2", "token=x", JWT]
)


@given(
    st.recursive(
        TEXTS | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=8,
    )
)
def test_json_stays_json_of_the_same_shape(value: Any) -> None:
    data = json.dumps(value).encode()
    assert shape(json.loads(apply_edits(data, finder(b"hunter2hunter2").payload_edits(data)))) == shape(value)


def test_a_text_that_is_repeated_is_not_searched_again() -> None:
    replaced: list[bytes] = []

    def counted(value: bytes) -> bytes:
        replaced.append(value)
        return pseudonym(value)

    text = json.dumps(f'杭州 {JWT} "' + "word " * MIN_REMEMBERED_BYTES)
    searcher = SecretFinder(FinderOptions(pseudonym=counted), KnownValues(counted))
    first, second = f"[{text}]".encode(), f"[1, {text}, [{text}]]".encode()
    once = apply_edits(first, searcher.payload_edits(first))
    times = len(replaced)
    assert apply_edits(second, searcher.payload_edits(second)) == b"[1, %b, [%b]]" % (once[1:-1], once[1:-1])
    assert (len(replaced), JWT.encode() in once, b"redacted-" in once) == (times, False, True)


def test_a_value_may_have_another_pseudonym_after_forgetting() -> None:
    pseudonyms = iter([b"redacted-0123456789ab", b"redacted-ba9876543210"])
    searcher = SecretFinder(FinderOptions(pseudonym=lambda _: next(pseudonyms)), KnownValues(pseudonym))
    data = json.dumps([f"{JWT} " + "word " * MIN_REMEMBERED_BYTES]).encode()
    first = apply_edits(data, searcher.payload_edits(data))
    searcher.forget()
    assert apply_edits(data, searcher.payload_edits(data)) == first.replace(b"0123456789ab", b"ba9876543210") != first


@pytest.mark.parametrize("text", ["token <tr", "token <tr class=", "password <tr/", "key <trace", "<tr>", "token <tr></tr>"])
def test_a_text_with_the_beginning_of_a_row_of_a_table_is_read(text: str) -> None:
    assert made(text) == text


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        ("SET password 'x' password ", " "),
        ("", "Cookie: a=b; "),
        ("", "Set-Cookie: a; "),
        ("Cookie: ", "a"),
        ("[" * 5_000, '"",'),
        ('{"a":' * 5_000, '"",'),
        ("", '{"name":"token","value":'),
    ],
)
def test_a_long_text_takes_time_in_proportion(beginning: str, piece: str) -> None:
    made(beginning + piece * (100_000 // len(piece)))  # quadratic, it would meet the deadline of every test


def test_every_cookie_of_a_line_is_masked_and_of_one_that_is_set_the_value() -> None:
    line = "Cookie: a=11aa22bb; b=Cookie: c=33cc44dd\nSet-Cookie: d=55ee66ff; Path=/x Set-Cookie: e=77aa88bb; Path=/y"
    shared = made(line)
    assert not [value for value in ("11aa22bb", "33cc44dd", "55ee66ff", "77aa88bb") if value in shared]
    assert "Path=/x" in shared
    assert "Path=/y" in shared


def test_a_long_text_under_a_name_names_nothing() -> None:
    text = json.dumps({"name": "token " * 100, "value": "Zm9vYmFy"})
    assert made(text) == text


@pytest.mark.parametrize("name", ["nextToken", "NextContinuationToken", "pageToken", "sortKey"])
def test_a_name_in_camel_case_is_read_as_in_a_member_wherever_it_is(name: str) -> None:
    for text in (
        f"<{name}>abc123def4</{name}>",
        json.dumps({"name": name, "value": "abc123def4"}),
        f"id,{name}\n1,abc123def4\n",
    ):
        assert made(text) == text
