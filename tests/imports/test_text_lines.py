"""Lines of an imported file are whole lines, wherever its bytes are cut, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.imports import source
from mcpspy.imports.source import WholeLines


@given(st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"x", b"\n")), max_size=20))
def test_lines_cut_anywhere_are_the_same(chunks: list[bytes]) -> None:
    lines = WholeLines()
    found = [line for chunk in chunks for line in lines.feed(chunk)] + lines.close()
    expected = b"".join(chunks).split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])
    assert lines.left_out() == []


@pytest.mark.parametrize("step", [1, 4, 7])
def test_a_line_that_is_too_long_is_empty_and_counted(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 10)
    data = b"a\n" + b"b" * 11 + b"\nc\n" + b"d" * 30
    lines = WholeLines()
    found = [line for at in range(0, len(data), step) for line in lines.feed(data[at : at + step])] + lines.close()
    assert found == [b"a", b"", b"c", b""]
    assert lines.left_out() == ["not read: 2 lines longer than 0 MiB"]
