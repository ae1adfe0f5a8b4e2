"""What stood at a place that is not known any more, from the copies that `wrap` kept of the file: for URLs that remember nothing."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .address import port_of, rest_of
from .edit_url import origin_letters
from .entry import Entry, Syntax, entries
from .ports import Place
from .spans import Unreadable


def recovered(
    lost: Iterable[tuple[Sequence[str], Entry]], copies: Iterable[Path], syntax: Syntax, *, client: str, file: str
) -> list[Place]:
    """The places of the `lost` entries, each with the keys of its section, from the first of `copies` that tells.

    One tells if it has that entry with a URL of its own, and with the path and the query that the entry has now.
    """
    texts = [text for text in map(_text, copies) if text]
    found = (_place(keys, entry, texts, syntax, client=client, file=file) for keys, entry in lost)
    return [one for one in found if one is not None]


def _place(keys: Sequence[str], entry: Entry, texts: Iterable[str], syntax: Syntax, *, client: str, file: str) -> Place | None:
    port = port_of(entry.url)
    for text in texts:
        try:
            was = next((one for one in entries(text, syntax, tuple(keys)) if one.path == entry.path and one.is_http), None)
            if was and port and not was.problem and was.url == was.server_url and rest_of(was.url) == rest_of(entry.url):
                letters = origin_letters(text, was)
                return Place(
                    port=port, label=was.name, url=was.url, letters=letters, client=client, file=file, entry=entry.path
                )
        except Unreadable:
            continue
    return None


def _text(copy: Path) -> str:
    try:
        return copy.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
