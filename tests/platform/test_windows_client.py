"""The client in Windows' list of processes, as PowerShell prints it."""

import pytest

from mcpspy.platform.windows_processes import ProcessRow, client_in, rows_of

LIST = """\
0 0  System Idle Process\r
4 0 638670000000000000 System\r
100 4 638670000000000100 explorer.exe\r
200 100 638670000000000200 Claude.exe\r
300 200 638670000000000300 mcpspy.exe\r
310 300 638670000000000310 python.exe\r
320 310 638670000000000320 python.exe\r
400 200 638670000000000400 My Other Server.exe\r
\r
"""


def rows(*without: int) -> list[ProcessRow]:
    return [row for row in rows_of(LIST) if row.pid not in without]


def test_a_name_may_have_spaces_and_a_start_may_be_missing() -> None:
    listed = {row.pid: (row.parent, row.start, row.name) for row in rows()}
    assert listed[0] == (0, 0, "System Idle Process")
    assert listed[400] == (200, 638670000000000400, "My Other Server.exe")


@pytest.mark.parametrize("line", ["", "x", "1", "1 x 3 name", "\N{SUPERSCRIPT TWO} 1 1 a"])
def test_what_is_no_process_is_left_out(line: str) -> None:
    assert rows_of(line) == []


@pytest.mark.parametrize(
    ("own", "through_python", "client"),
    [(320, True, 200), (310, False, 200), (400, False, 200), (320, False, 310)],
    ids=["in a virtual environment", "outside", "without a launcher", "started by another program in Python"],
)
def test_the_client_is_past_our_own_launchers(own: int, client: int, *, through_python: bool) -> None:
    assert client_in(rows(), own, through_python=through_python) == client


def test_a_client_that_is_not_listed_has_ended() -> None:
    assert client_in(rows(200), 320, through_python=True) == 0


def test_a_younger_process_has_got_its_number_from_a_client_that_has_ended() -> None:
    younger = [*rows(200), ProcessRow(200, 100, 638670000000000999, "notepad.exe")]
    assert client_in(younger, 320, through_python=True) == 0
