"""Spellings of texts: reading a spelling returns the text, and edits of the text become edits of the spelling."""

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.sharing.encodings import JSON, PERCENT, Layer, runs
from mcpspy.wire.edits import Edit, apply_edits

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


@st.composite
def edits(draw: st.DrawFn, text: str) -> list[Edit]:
    """Draw edits that begin and end between characters, in order."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    offsets = [len(text[:place].encode()) for place in places]
    return [Edit(start, end, b'<"\\>', "x") for start, end in zip(offsets[::2], offsets[1::2], strict=False)]


def spelled_in_json(text: str, *, is_ascii: bool, escapes: bool) -> bytes:
    plain = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
    return (
        "".join(f"\\u{ord(letter):04x}" if letter.isascii() else letter for letter in text).encode()
        if escapes
        else plain.encode()
    )


@given(text=TEXTS, is_ascii=st.booleans(), escapes=st.booleans())
def test_json_is_read_as_it_was_spelled(*, text: str, is_ascii: bool, escapes: bool) -> None:
    assert JSON.read(spelled_in_json(text, is_ascii=is_ascii, escapes=escapes)).decode() == text


@given(st.binary(max_size=30))
def test_a_text_with_meaningless_escapes_is_read_too(data: bytes) -> None:
    JSON.read(data)
    assert JSON.escape.sub(JSON.meaning, data) == JSON.read(data)


@given(st.data())
def test_an_edit_of_a_text_is_the_same_edit_of_its_json(data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    drawn = data.draw(edits(text))
    raw = spelled_in_json(text, is_ascii=data.draw(st.booleans()), escapes=data.draw(st.booleans()))
    again = apply_edits(raw, list(JSON.back(raw, drawn)))
    assert json.loads(b'"%b"' % again) == apply_edits(text.encode(), drawn).decode()


@given(st.data())
def test_an_edit_of_a_text_is_the_same_edit_of_its_percent_signs(data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    drawn = data.draw(edits(text))
    raw = quote(text, safe=data.draw(st.sampled_from(["", "/", "abc"]))).encode()
    assert unquote_to_bytes(apply_edits(raw, list(PERCENT.back(raw, drawn)))) == apply_edits(text.encode(), drawn)


@pytest.mark.parametrize(
    ("layer", "raw", "edit", "made"),
    [
        (JSON, rb"a\ud83d\ude00b", Edit(2, 3, b"x", ""), b"axb"),  # in the middle of a character: all of it
        (JSON, rb"a\nb", Edit(0, 2, b"x", ""), b"xb"),
        (JSON, rb"\u0061\u0062c", Edit(0, 1, b"x", ""), rb"x\u0062c"),
        (PERCENT, b"%41%42C", Edit(1, 3, b"x y", ""), b"%41x%20y"),
        (PERCENT, b"100%", Edit(3, 4, b"x", ""), b"100x"),
    ],
)
def test_an_escape_is_replaced_whole(layer: Layer, raw: bytes, edit: Edit, made: bytes) -> None:
    assert apply_edits(raw, list(layer.back(raw, [edit]))) == made


@given(
    text=st.text(st.characters(min_codepoint=32, codec="utf-8"), min_size=12, max_size=60),
    padded=st.booleans(),
    for_urls=st.booleans(),
)
def test_base64_of_a_text_is_found_and_spelled_again(*, text: str, padded: bool, for_urls: bool) -> None:
    data = text.encode().replace(b"\x7f", b"x")
    spelled = (urlsafe_b64encode if for_urls else b64encode)(data)
    (run,) = runs(b"<" + (spelled if padded else spelled.rstrip(b"=")) + b">")
    assert run.text == data
    again = run.back([Edit(0, len(data), b"nothing of it is left", "x")]).new
    assert [run.text for run in runs(again)] == [b"nothing of it is left"]
    assert (b"=" in again) == (b"=" in spelled and padded) or len(b"nothing of it is left") % 3 == 0


@pytest.mark.parametrize(
    "data", [b"AAAAAAAAAAAAAAAAAAAAAAAA", b64encode(bytes(range(60))), b"a" * 17, b"ab-cd+efghijklmnop/qr"]
)
def test_bytes_that_spell_no_text_are_no_base64(data: bytes) -> None:
    assert list(runs(data)) == []
