"""Move a server's URL to a place, and back: the edits of the text, each the other's exact inverse.

The origin goes from the front of the URL to its end in the very letters in which it was written, and comes back in them.
"""

import re

from .address import LOCAL, MARK, local, marked, origin_of
from .entry import Entry
from .spans import Edit, Value, unreadable

LETTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u.{4}|\\U.{8}|\\x..|\\.|[^\\]", re.DOTALL)
"""What stands for one letter within quotes."""


def moving(text: str, entry: Entry, port: int) -> list[Edit]:
    """What puts the place at `port` before the server of a plain entry.

    A URL that is logged in to gets no mark: VS Code holds it against the server's metadata letter by letter
    (microsoft/vscode#259251). It is remembered by its place alone.
    """
    begin, end, cut = _cut(text, entry.url_value, len(origin_of(entry.url)))
    edits = [Edit(start=begin, end=cut, new=local(port))]
    if not entry.may_log_in:
        edits.append(Edit(start=end, end=end, new=MARK + text[begin:cut]))
    return edits


def moving_back(text: str, entry: Entry) -> list[Edit]:
    """What gives a wrapped entry its URL back."""
    found = LOCAL.match(entry.url)
    assert found is not None
    begin, end, cut = _cut(text, entry.url_value, found.end())
    if marked(entry.url):
        at = text.index(MARK, begin)
        return [Edit(start=begin, end=cut, new=text[at + len(MARK) : end]), Edit(start=at, end=end, new="")]
    assert entry.place is not None
    return [Edit(start=begin, end=cut, new=entry.place.letters)]


def origin_letters(text: str, entry: Entry) -> str:
    """How the file spells the origin of a plain entry's URL."""
    begin, _, cut = _cut(text, entry.url_value, len(origin_of(entry.url)))
    return text[begin:cut]


def _cut(text: str, value: Value, letters: int) -> tuple[int, int, int]:
    """Where what is said within quotes begins and ends, and where its first `letters` letters end. Raises: Unreadable."""
    quotes = 3 if text[value.start : value.start + 3] in ('"""', "'''") and value.end - value.start >= 6 else 1
    begin, end = value.start + quotes, value.end - quotes
    inside = text[begin:end]
    if "\\" not in inside or text[value.start] == "'":
        pieces = list(inside)
    else:
        pieces = LETTER.findall(inside)
    if len(pieces) != len(value.string):
        raise unreadable(text, value.start, "this URL is written in a way that mcpspy does not know")
    return begin, end, begin + sum(map(len, pieces[:letters]))
