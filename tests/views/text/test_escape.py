"""Captured text is harmless for a terminal, for JSON and for a diagram."""

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.escape import decoded, json_text, mermaid_text, model_text, safe_text, without_logins

DANGEROUS_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800\u034f"

anything = st.text(st.characters())  # surrogates too
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def dangerous(text: str) -> set[str]:
    """Return the characters of `text` that control a terminal or are invisible on it."""
    return {sign for sign in text if unicodedata.category(sign) in DANGEROUS_CATEGORIES or sign in BLANK_LETTERS}


def test_every_control_and_format_character_is_spelled_out() -> None:
    every_sign = "".join(map(chr, range(0x110000)))
    assert not dangerous(safe_text("".join(dangerous(every_sign))))


def test_letters_signs_and_emoji_stay_as_they_are() -> None:
    text = "Grüße, Привет, 天気予報, שלום, مرحبا, 21 °C ≤ ½, ❤️ 🎉 🇵🇹, a\u0301, \u00a0."
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]52;c;cm0gLXJm\x07", r"\x1b]52;c;cm0gLXJm\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\x7f\x00", r"\x7f\x00"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("pay\u200bpal", r"pay\u200bpal"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\u2028", r"\u2028"),
    ],
)
def test_dangerous_characters_are_shown_as_their_codes(text: str, shown: str) -> None:
    assert safe_text(text) == shown


HIDDEN = "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))


@pytest.mark.parametrize("text", ["❤️ ©️ 天︎ 1️⃣ #️⃣", "Grüße, שלום, 21 °C"])
def test_emoji_keep_their_selector_for_a_model(text: str) -> None:
    assert model_text(text) == text


@pytest.mark.parametrize("text", ["a", "❤", "❤\ufe0f", ""])
def test_a_text_in_variation_selectors_is_spelled_out_for_a_model(text: str) -> None:
    shown = model_text(text + HIDDEN)
    assert len(set(shown) & set(HIDDEN)) <= 1
    assert r"\ufe01" in shown
    assert r"\U000e01ef" in shown


@given(st.text(st.characters() | st.sampled_from(HIDDEN)))
def test_a_model_sees_each_selector_after_a_sign_of_its_own(text: str) -> None:
    shown = model_text(text)
    assert not dangerous(shown)
    assert model_text(shown) == shown
    assert not re.search(rf"[{HIDDEN}]{{2}}|[\U000e0100-\U000e01ef]|[A-Za-z][{HIDDEN}]", shown)


def test_bytes_that_are_not_utf_8_are_shown_as_their_codes() -> None:
    assert safe_text(decoded(b"caf\xe9 \xc3\xa9 \xff")) == r"caf\xe9 é \xff"


@given(anything)
def test_no_text_can_make_it_raise_or_pass_anything_dangerous(text: str) -> None:
    assert not dangerous(safe_text(text))
    assert safe_text(safe_text(text)) == safe_text(text)


@given(JSON_VALUES)
def test_json_made_harmless_means_the_same(value: Any) -> None:
    text = json_text(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert not dangerous(text)


def test_json_keeps_the_spelling_of_harmless_text() -> None:
    text = r'{"a":1e400,"a":12345678901234567890.0,"é":"\u00e9\ud800"}'
    assert json_text(text) == text


def test_json_on_several_lines_becomes_one_line() -> None:
    assert json_text('{\r\n\t"a": 1\n}') == '{   "a": 1 }'


@given(anything)
def test_no_text_can_end_or_truncate_a_mermaid_statement(text: str) -> None:
    made = mermaid_text(text)
    assert made
    assert not dangerous(made)
    assert re.fullmatch(r"(?:[^#;]|#\w+;)*", made)
    assert "%%" not in made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a;b", "a#59;b"),
        ("#1", "#35;1"),
        ("one\r\n  two", "one two"),
        ("%%{init: {}}%%", "#37;#37;{init: {}}#37;#37;"),
        ("50 %", "50 %"),
        ("<br/>", "#lt;br/#gt;"),
        ("", "#32;"),
        ("wrap: x", "#119;rap: x"),
        ("style a:#35;", "#115;tyle a:#35;35#59;"),
        ("$$x^2$$", "#36;#36;x^2#36;#36;"),
    ],
)
def test_mermaids_special_characters_become_entities(text: str, made: str) -> None:
    assert mermaid_text(text) == made


@given(st.text(), st.text(st.characters(exclude_characters=" "), min_size=1))
def test_no_message_shows_the_user_of_a_url(text: str, user: str) -> None:
    shown = without_logins(f"{text} http://{user}-hush-@h:1: gone")
    assert "-hush-" not in shown
    assert shown.endswith("@h:1: gone")


@given(st.text(st.sampled_from("a:/@?#= .")))
def test_a_message_without_a_url_keeps_its_words(text: str) -> None:
    assert len(without_logins(text).split(" ")) == len(text.split(" "))
    assert without_logins("see docs/wrap.md (npm:@scope/x@1.2): what?") == "see docs/wrap.md (npm:@scope/x@1.2): what?"
