"""The rows of a large capture, made in blocks when somebody takes them, and the figures that no view has to count again.

Knows neither files nor classes of rows: whoever makes it gives the function that reads a block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, overload

import msgspec

RowT = TypeVar("RowT")

BLOCK_ROWS: Final = 64
"""So many rows are read at once."""

COLUMNS: Final = {
    "firsts": "I", "lasts": "I", "longest": "Q", "largest": "Q", "progress": "I", "earliest": "Q", "latest": "Q",
    "begin": "Q", "end": "Q",
}  # fmt: skip
"""Facts of the rows of a block, and how wide they are: the number of the first row with a number, or of the next one, and of the
last; the nanoseconds that the slowest row took or waited, alone or with its whole call; the bytes of the largest row, or message if
that is larger; the most progress; the times of the first message and of the last, which is `FOREVER` while a row waits; and between
which offsets of the capture the payloads are, with `FOREVER` as the end if a text cannot be looked for there.
"""

FOREVER: Final = (1 << 64) - 1

_RECENT: Final = 32
"""So many blocks are kept."""

_FEW_BLOCKS: Final = 64
"""So many are read, rather than the whole capture to rule out some of them."""


class RowFigures(msgspec.Struct, kw_only=True):
    """Figures about all rows of a capture. Times are on the transcript's clock."""

    outcomes: dict[str, int]
    """The number of calls, by outcome."""
    troubles: dict[str, int]
    """The numbers of `Troubles`."""
    waits: list[tuple[int, int]]
    """The time of each request that waits for its answer, and how long it has waited."""
    lifecycle: dict[str, int | None]
    """The times and counts of the server's phases."""
    notable: list[int]
    """The rows of the first call with each outcome, and of the slowest call."""
    log_matches: list[tuple[int, int, int, int, int, int]]
    """Lines of the log that quote a message: the line's record, row and record of the message, gap, begin, end."""
    widths: tuple[int, int, int, int, int]
    """For columns: the last row, the last time, the longest id, the longest call without and with its params."""
    numbered: int
    """The number of rows that have a number."""


class StoredRows(Sequence[RowT]):
    """Rows that are read when they are taken. Two takings may return different objects for one row, unless it was pinned.

    `columns` has those of `COLUMNS` for each block. `others` has the positions of rows without a number. `classes` returns the class
    of each row, 0 for none, and for each class from 1 on the position of a row, -1 if there is none to ask. `holds` returns whether
    the entries of a block may have all of some texts, and `offsets` where in the capture one of some texts is, in their order; None
    if nobody knows. `read` returns the rows of a block. If `classes` raises ValueError, no row has a class; if `read` does, `whole`
    reads all rows in another way. `section` returns what is kept of all rows for those who know its name and its form, empty if there
    is nothing, and raises ValueError if it cannot be read.
    """

    __slots__ = (
        "_all", "_classes", "_count", "_firsts", "_holds", "_offsets", "_pinned", "_read", "_recent", "_whole", "columns", "figures",
        "other_positions", "section",
    )  # fmt: skip

    def __init__(
        self,
        count: int,
        columns: Mapping[str, Sequence[int]],
        others: Sequence[int],
        figures: RowFigures,
        *,
        classes: Callable[[], tuple[Sequence[int], Sequence[int]]],
        holds: Callable[[int, Sequence[bytes]], bool],
        offsets: Callable[[Sequence[bytes]], Sequence[int] | None],
        read: Callable[[int], list[RowT]],
        whole: Callable[[], Sequence[RowT]],
        section: Callable[[str], bytes] = lambda _: b"",
    ) -> None:
        self._count = count
        self.section = section
        self.columns = columns
        self._firsts = columns["firsts"]
        self.other_positions = others
        self.figures = figures
        self._classes = classes
        self._holds = holds
        self._offsets = offsets
        self._read = read
        self._whole = whole
        self._all: Sequence[RowT] | None = None
        self._recent: dict[int, Sequence[RowT]] = {}
        self._pinned: dict[int, RowT] = {}

    def grown(
        self,
        rest: Sequence[RowT],
        columns: Mapping[str, Sequence[int]],
        others: Sequence[int],
        figures: RowFigures,
        known: Mapping[int, RowT],
        blocks: Collection[int],
        changed: Collection[int],
    ) -> StoredRows[RowT]:
        """Return the rows of all whole blocks, and those after them, `rest`, for a capture that has grown.

        `columns`, `others` and `figures` are those of all these rows. `known` has rows by their numbers that take the place of
        others, `blocks` the blocks in which they differ, and `changed` the positions at which they do.
        """
        whole_blocks = self._count // BLOCK_ROWS
        begin, end = whole_blocks * BLOCK_ROWS, whole_blocks * BLOCK_ROWS + len(rest)

        def classes() -> tuple[Sequence[int], Sequence[int]]:
            before, samples = self._classes()
            of_rows = array("H", before[:begin]) + array("H", bytes(2 * len(rest)))
            for at in changed:
                of_rows[at] = 0
            return of_rows, [-1 if at >= begin or at in changed else at for at in samples]

        def read(number: int) -> list[RowT]:
            at = number * BLOCK_ROWS - begin
            return self._read(number) if at < 0 else list(rest[at : at + BLOCK_ROWS])

        def holds(number: int, texts: Sequence[bytes]) -> bool:
            return number >= whole_blocks or number in blocks or self._holds(number, texts)

        rows = StoredRows(
            end, columns, others, figures, classes=classes, holds=holds, offsets=self._offsets, read=read, whole=self._whole
        )
        rows._pinned.update(known)
        return rows

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RowT]:
        for number in range((self._count + BLOCK_ROWS - 1) // BLOCK_ROWS):
            yield from self._block(number)

    @overload
    def __getitem__(self, at: int) -> RowT: ...
    @overload
    def __getitem__(self, at: slice) -> list[RowT]: ...
    def __getitem__(self, at: int | slice) -> RowT | list[RowT]:
        if isinstance(at, slice):
            return [self[position] for position in range(*at.indices(self._count))]
        position = at + self._count if at < 0 else at
        if not 0 <= position < self._count:
            raise IndexError(at)
        return self._block(position // BLOCK_ROWS)[position % BLOCK_ROWS]

    def block_of(self, number: int) -> int:
        """Return the block that has the row with this number, if there is one."""
        return max(bisect_right(self._firsts, number) - 1, 0)

    def row(self, number: int) -> RowT | None:
        """Return the row with this number; None if there is none."""
        return next((row for row in self.between(number, number) if _number(row) == number), None)

    def position(self, number: int) -> int | None:
        """Return the position of the row with this number; None if there is none."""
        block = max(bisect_right(self._firsts, number) - 1, 0)
        rows = enumerate(self._block(block) if self._count else ())
        return next((block * BLOCK_ROWS + at for at, row in rows if _number(row) == number), None)

    def greatest(self, column: str, blocks: int) -> list[RowT]:
        """Return the rows of the blocks that have the greatest values in a column."""
        values = self.columns[column]
        chosen = sorted(range(len(self._firsts)), key=lambda block: -values[block])[:blocks]
        return [row for block in sorted(chosen) for row in self._block(block)]

    def between(self, first: int, last: int) -> list[RowT]:
        """Return the rows whose numbers are within these, and what came between them."""
        rows: list[RowT] = []
        inside = 0
        for block in range(self.block_of(first), len(self._firsts)):
            if self._firsts[block] > last:
                break
            for row in self._block(block):
                number = _number(row)
                if number is None:
                    rows += [row] if inside else []
                elif first <= number <= last:
                    rows.append(row)
                    inside = len(rows)
        return rows[:inside]

    def likely(
        self,
        may_match: Callable[[RowT], object],
        bounds: Iterable[tuple[str, int, int]] = (),
        entered: Sequence[bytes] = (),
        in_payloads: Iterable[Sequence[bytes]] = (),
    ) -> Iterator[RowT]:
        """Yield at least the rows that are of a class that may match, of which one row is asked, in blocks that may have more.

        The columns of these blocks are within their `bounds`. Their entries have all texts `entered`, and their payloads one text of
        each of `in_payloads`.
        """
        try:
            classes, samples = self._classes()
        except ValueError:
            classes, samples = bytes(self._count), ()
        blocks = self._within(range(len(self._firsts)), bounds)
        wanted = {0, *(number for number, at in enumerate(samples, 1) if at < 0 or may_match(self[at]))} if blocks else {0}
        if len(wanted) <= len(samples):
            blocks = [number for number in blocks if not wanted.isdisjoint(self._of_block(number, classes))]
        for texts in in_payloads:
            blocks = self._with_text(blocks, texts) if len(blocks) > _FEW_BLOCKS else blocks
        for number in blocks:
            if not entered or self._holds(number, entered):
                for row, of_row in zip(self._block(number), self._of_block(number, classes), strict=True):
                    if of_row in wanted:
                        yield row

    def _of_block(self, number: int, classes: Sequence[int]) -> Sequence[int]:
        return classes[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]

    def _within(self, blocks: Iterable[int], bounds: Iterable[tuple[str, int, int]]) -> list[int]:
        """Return those of some blocks that are within bounds."""
        within = list(blocks)
        for name, least, most in bounds:
            column = self.columns[name]
            within = [number for number in within if least <= column[number] <= most]
        return within

    def _with_text(self, blocks: list[int], texts: Sequence[bytes]) -> list[int]:
        """Return those of some blocks that may have one of these texts in a payload."""
        offsets = self._offsets(texts)
        if offsets is None:
            return blocks
        begins, ends = self.columns["begin"], self.columns["end"]
        return [
            number
            for number in blocks
            if ends[number] == FOREVER or bisect_left(offsets, begins[number]) < bisect_left(offsets, ends[number])
        ]

    def active(self, since_ns: int, numbers: Iterable[int]) -> list[RowT]:
        """Return at least the rows with a message since then, and the rows with these numbers."""
        blocks = set(map(self.block_of, numbers))
        blocks.update(self._within(range(len(self._firsts)), [("latest", since_ns, FOREVER)]))
        return [row for number in sorted(blocks) for row in self._block(number)]

    def others(self) -> Iterator[RowT]:
        """Yield the rows without a number: lines of the log, and events."""
        return map(self.__getitem__, self.other_positions)

    def pin(self, number: int) -> RowT | None:
        """Return the row with this number, and return the same object from now on."""
        row = self.row(number)
        if row is not None:
            self._pinned[number] = row
            self._recent.clear()
        return row

    def _block(self, number: int) -> Sequence[RowT]:
        block = self._recent.get(number)
        if block is None:
            block = self._read_block(number)
            if self._pinned:
                block = [self._pinned.get(_number(row) or 0, row) for row in block]
            if len(self._recent) == _RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[number] = block
        return block

    def _read_block(self, number: int) -> Sequence[RowT]:
        if self._all is None:
            try:
                return self._read(number)
            except ValueError:
                self._all = self._whole()
        return self._all[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]


def _number(row: object) -> int | None:
    return getattr(row, "row", None)
