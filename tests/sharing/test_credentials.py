"""Credentials that a text shows in clear: which are found, and which words only look like one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.sharing import credentials
from mcpspy.sharing.credentials import may_show, shown_credentials

TOKENS = [
    "ghp_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2",
    "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ",
    "glpat-Ab1Cd2Ef3Gh4Ij5Kl6Mn",
    "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
    "sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9",
    "sk_live_51Ab1Cd2Ef3Gh4Ij5Kl6Mn",
    "AKIAIOSFODNN7ABCDEFG",
    "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "xoxb-123456789012-1234567890123-AbCdEfGhIjKl",
    "hf_AbCdEfGhIjKlMnOpQrStUvWx12",
    "npm_AbCdEfGhIjKlMnOpQrStUvWx1234567890",
    "hvs.CAESIAb1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
    "ya29.a0Ab1Cd2Ef3Gh4Ij5Kl6Mn",
    "SG.Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op.Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]
TEXTS = [
    "{}",
    "TOKEN={}",
    "Authorization: Bearer {}",
    "first line\n{}\nlast",
    "https://{}@github.com/x",
    "\t{} ",
    '{{"token":"{}"}}',
]
HARMLESS = [
    "sk-learn-tutorial-for-beginners-2024", "AKIAIOSFODNN7EXAMPLE", "AIDAJQABLZS4A3QDU576Q",
    f"ghp_{36 * 'x'}",
    "sk-0000000000000000000000000", "redacted-5f1d0c2a9b7e", "structuredContent_of_notifications_2025",
    "pypi-server-on-docker-compose-2",
    "0b1e2f3a-4c5d-6e7f-8091-a2b3c4d5e6f7", "d670460b4b4aece5915caf5c68d12f560a9fe3e4", "-----BEGIN PUBLIC KEY-----",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IDEyMzQ1Njc4OTA=",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_found_in_a_text_and_in_its_json(token: str, text: str) -> None:
    shown = text.format(token)
    for data in (shown.encode(), json.dumps({"text": shown}).encode()):
        assert [(data[span.start : span.end], span.value) for span in shown_credentials(data)] == [(token.encode(),) * 2]


@pytest.mark.parametrize("text", [*TOKENS, *(f"see.{token}" for token in TOKENS[:3]), *(f"a\\n{token}" for token in TOKENS)])
def test_a_look_at_many_texts_misses_none_that_shows_a_token(text: str) -> None:
    harmless = b"the weather in Paris is fine, 0b1e2f3a-4c5d-6e7f-8091-a2b3c4d5e6f7"
    assert may_show([harmless, text.encode(), harmless])
    assert not may_show([harmless] * 9)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_word_that_only_looks_like_one_is_not_found(text: str) -> None:
    assert list(shown_credentials(f"a {text} b".encode())) == []


LINE = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpa"
KEYS = [
    "-----BEGIN RSA PRIVATE KEY-----\n" + LINE,
    "-----BEGIN PRIVATE KEY-----\r\n" + LINE,
    "-----BEGIN OPENSSH PRIVATE KEY-----" + LINE,
    "-----BEGIN EC PRIVATE KEY----- " + LINE,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE/" + 15 * "ab/" + LINE + "\n" + LINE,
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8C1F\n\n" + LINE,
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n" + LINE,
]


@pytest.mark.parametrize("key", ["-----BEGIN RSA PRIVATE KEY-----\nMIIE", *KEYS])
def test_a_private_key_is_found(key: str) -> None:
    (span,) = shown_credentials(json.dumps({"text": key}).encode()[:250])
    assert span.kind == "key"


@pytest.mark.parametrize("key", KEYS)
def test_a_private_key_is_found_in_a_long_text(key: str) -> None:
    text = f"{200 * 'a line of a log '}\n{key}\n{200 * 'another line '}"
    for data in (text.encode(), json.dumps({"text": text}).encode()):
        (span,) = shown_credentials(data)
        assert may_show([b"a line", data])
        assert (span.kind, data[span.start : span.end]) == ("key", span.value)


def test_credentials_are_found_without_the_speedups_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_token_places", credentials.token_places)
    for text in (*TOKENS, *(f"see.{token}" for token in TOKENS), *(f"a\\n{token}" for token in TOKENS), *KEYS):
        assert may_show([b"the weather", text.encode()]) == bool(shown_credentials(text.encode()))
        assert shown_credentials(text.encode())
    for text in HARMLESS:
        assert not shown_credentials(text.encode())


@given(before=st.binary(max_size=30), after=st.binary(max_size=30))
def test_bytes_around_a_token_raise_nothing_and_hide_it_only_as_letters(before: bytes, after: bytes) -> None:
    data = before + b" " + TOKENS[0].encode() + b" " + after
    assert TOKENS[0].encode() in [span.value for span in shown_credentials(data)]
