"""Rows that a diagram draws as one: polls of a task that bring nothing new, the pages of one list, equal notifications in a row.

Rows with a finding and rows that failed are always drawn.
"""

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from ...transcript.mcp.content import content_facts
from ...transcript.model import Exchange, Kind, Outcome, Row, Transcript, UnpairedMessage
from ...transcript.offers.definitions import LISTINGS
from ..text.units import counted
from ..timeline.calls import PollFolder, PollRun

_MEMBERS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource", "templates": "template"}
"""The facts that hold the items of a list, and the name of one item."""


class RepeatedExchange(NamedTuple):
    """Exchanges drawn as one, from the first request to the last response. `words` sum up their results."""

    first: Exchange
    last: Exchange
    times: int
    words: str = ""


class RepeatedNotification(NamedTuple):
    """Equal notifications in a row, drawn as one."""

    first: UnpairedMessage
    last: UnpairedMessage
    times: int


Drawable = Row | RepeatedExchange | RepeatedNotification


def repeats(transcript: Transcript, rows: Iterable[Row]) -> Iterator[Drawable]:
    """Yield `rows` in order, with one item for several rows at the position of the last of them."""
    flagged = {row for finding in transcript.findings for row in finding.rows}
    polls, pages = PollFolder(), _Pages()
    for row in _with_news(rows, flagged):
        if not isinstance(row, Exchange):
            yield row
            continue
        call = transcript.call_of(row)
        if call is None:
            yield from pages.feed(row, is_flagged=row.row in flagged)
        elif not polls.feed(row, call, flagged=row.row in flagged):
            run = polls.take(call)
            if run is not None:
                yield _run(run)
            yield row
    for run in polls.close():
        yield _run(run)
    yield from pages.close()


def _with_news(rows: Iterable[Row], flagged: Container[int]) -> Iterator[Row | RepeatedNotification]:
    for key, some in groupby(rows, key=lambda row: _news_key(row, flagged)):
        held = list(some)
        if key is not None and len(held) > 1 and isinstance(held[0], UnpairedMessage) and isinstance(held[-1], UnpairedMessage):
            yield RepeatedNotification(first=held[0], last=held[-1], times=len(held))
        else:
            yield from held


def _news_key(row: Row, flagged: Container[int]) -> tuple[int, str, bytes] | None:
    """Return a key that is equal for equal notifications. None for all other rows."""
    if not isinstance(row, UnpairedMessage) or row.message.kind is not Kind.NOTIFICATION or row.row in flagged:
        return None
    return row.capture, row.message.sender, row.message.raw.strip()


def _run(run: PollRun) -> Drawable:
    return RepeatedExchange(first=run.first, last=run.last, times=run.before + 1) if run.before else run.last


class _Pages:
    """Pages of lists that wait for their last page. `feed` and `close` return what can be drawn."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[int, str, str], list[Exchange]] = {}
        """Pages that name a next page, by capture, sender and method."""

    def feed(self, row: Exchange, *, is_flagged: bool) -> Iterator[Drawable]:
        if row.method not in LISTINGS:
            yield row
            return
        key = row.capture, row.sender, row.method
        held = self._held.pop(key, [])
        if held and (is_flagged or not _has(row, "cursor") or row.outcome is not Outcome.OK):
            yield from _pages(held)
            held = []
        if is_flagged or row.outcome is not Outcome.OK:
            yield row
        elif _has_more(row):
            self._held[key] = [*held, row]
        else:
            yield from _pages([*held, row])

    def close(self) -> Iterator[Drawable]:
        for held in self._held.values():
            yield from _pages(held)


def _pages(held: list[Exchange]) -> Iterator[Drawable]:
    if len(held) == 1:
        yield held[0]
        return
    total: dict[str, int] = {}
    for page in held:
        facts: dict[str, Any] = {} if page.response is None else content_facts(page.response, page.method)
        for name in _MEMBERS:
            if isinstance(facts.get(name), list):
                total[name] = total.get(name, 0) + len(facts[name])
    words = ", ".join(counted(count, _MEMBERS[name]) for name, count in total.items())
    yield RepeatedExchange(first=held[0], last=held[-1], times=len(held), words=f"{words} on {len(held)} pages")


def _has(row: Exchange, name: str) -> bool:
    params = row.request.params
    return isinstance(params, dict) and bool(params.get(name))


def _has_more(row: Exchange) -> bool:
    result = None if row.response is None else row.response.result
    return isinstance(result, dict) and isinstance(result.get("nextCursor"), str)
