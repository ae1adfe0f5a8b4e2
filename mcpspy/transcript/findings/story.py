"""What happened in one capture, sorted by what findings ask for: one pass over the rows, which keeps the odd ones only."""

from collections import deque
from typing import Final

from ...records import Close, Damage, End, Exit, Gap, Note, Partial, Stall
from ..correlate import spellings
from ..model import Event, Exchange, Kind, Log, Message, Outcome, Source, Stray, Transcript
from ..transaction import Transaction

LAST_WORDS: Final = 3
"""So many lines of stderr are kept, to be quoted if the server dies."""

_FOR_THE_SERVER: Final = ("SIGUSR1", "SIGUSR2")
"""How notes of signals begin that are passed on and end nothing: who sends one stays."""


class Story:
    """One capture. Times are None for what did not happen.

    `left_ns` is when the client closed a stream or asked for the end, `gone_ns` when the server closed its stdout or ended. Between
    `first_hole_ns` and `last_hole_ns` something was not recorded.
    """

    __slots__ = (
        "damages", "end", "exit", "first_hole_ns", "flawed", "gaps", "gone_ns", "http", "last_hole_ns",
        "last_words", "left_ns", "malformed", "mismatched", "partials", "repeated", "rows_by_transaction", "source", "stalls",
        "unanswered", "unpaired",
    )  # fmt: skip

    def __init__(self, source: Source) -> None:
        self.source = source
        self.unanswered: list[Exchange] = []
        self.http: list[Exchange] = []
        """Exchanges whose requests came by HTTP."""
        self.rows_by_transaction: dict[int, int] = {}
        """The first row that stands for each transaction which has none of its own."""
        self.repeated: list[Exchange] = []
        self.mismatched: list[Exchange] = []
        self.flawed: list[tuple[int, Message]] = []
        """Messages with flaws, and the rows they stand in."""
        self.malformed: list[Stray] = []
        self.unpaired: list[Stray] = []
        self.stalls: list[tuple[int, Stall]] = []
        self.partials: list[tuple[int, Partial]] = []
        self.gaps: list[tuple[int, Gap]] = []
        self.damages: list[tuple[int, Damage]] = []
        self.last_words: deque[bytes] = deque(maxlen=LAST_WORDS)
        self.exit: tuple[int, Exit] | None = None
        self.end: tuple[int, End] | None = None
        self.left_ns: int | None = None
        self.gone_ns: int | None = None
        self.first_hole_ns: int | None = None
        self.last_hole_ns: int | None = None

    def exchange(self, row: Exchange) -> None:
        """Take in an exchange."""
        request, response = row.request, row.response
        if response is None:
            if row.over and row.outcome is Outcome.UNANSWERED:
                self.unanswered.append(row)
        else:
            if response.id is not request.id and response.id != request.id and _is_spelled_otherwise(request, response):
                self.mismatched.append(row)
            if response.flaws:
                self.flawed.append((row.row, response))
        if row.transaction is not None:
            self.http.append(row)
            self.rows_by_transaction.setdefault(row.transaction.number, row.row)
        if request.flaws:
            self.flawed.append((row.row, request))
        if row.more_responses:
            self.repeated.append(row)
        for message in (*row.notifications, *row.more_responses):
            if message.flaws:
                self.flawed.append((row.row, message))

    def stray(self, row: Stray) -> None:
        """Take in a message that belongs to no exchange."""
        message = row.message
        if message.reason == "not recorded" or "damaged" in message.flaws:
            self._hole(row.at_ns)
        if message.kind is Kind.MALFORMED:
            self.malformed.append(row)
            return
        if message.kind is not Kind.NOTIFICATION and "ambiguous-stream" not in message.flaws:
            self.unpaired.append(row)
        if message.flaws:
            self.flawed.append((row.row, message))

    def event(self, row: Event) -> None:
        """Take in what happened to the channel."""
        at_ns = row.at_ns
        match row.record:
            case Close() as record:
                self._close(at_ns, record)
            case Note(topic="signal" | "escalation") as record if not record.text.startswith(_FOR_THE_SERVER):
                self.left_ns = at_ns if self.left_ns is None else self.left_ns
            case Exit() as record:
                self.exit = at_ns, record
                self.gone_ns = at_ns if self.gone_ns is None else self.gone_ns
            case End() as record:
                self.end = at_ns, record
            case Stall() as record:
                self.stalls.append((at_ns, record))
            case Partial() as record:
                self.partials.append((at_ns, record))
            case Gap() as record:
                self.gaps.append((at_ns, record))
                self._hole(at_ns - 1)  # it has the time of the record after it, which is sound
            case Damage() as record:
                self.damages.append((at_ns, record))
                if record.reason != "edited":
                    self._hole(at_ns)

    def row_of(self, transaction: Transaction) -> int | None:
        """The row that stands for a transaction; None if none does."""
        return transaction.row or self.rows_by_transaction.get(transaction.number)

    def stream_name(self, stream: int) -> str:
        """`stdin`, `stdout`, `stderr`; empty if nobody opened it."""
        opened = self.source.streams.get(stream)
        return opened.name if opened else ""

    def _close(self, at_ns: int, record: Close) -> None:
        name = self.stream_name(record.stream)
        if record.by == "client" and name in ("stdin", "stdout") and self.left_ns is None:
            self.left_ns = at_ns
        if record.by == "server" and name == "stdout" and self.gone_ns is None:
            self.gone_ns = at_ns

    def _hole(self, at_ns: int) -> None:
        self.first_hole_ns = at_ns if self.first_hole_ns is None else min(at_ns, self.first_hole_ns)
        self.last_hole_ns = at_ns if self.last_hole_ns is None else max(at_ns, self.last_hole_ns)


def _is_spelled_otherwise(request: Message, response: Message) -> bool:
    """Whether the ids mean the same. They do not where HTTP tells what an error answers."""
    return response.id is not None and response.id in spellings(request.id or "")


def stories(transcript: Transcript) -> list[Story]:
    """One for each capture of `transcript`."""
    found = [Story(source) for source in transcript.sources]
    for row in transcript.rows:
        story = found[row.capture]
        if isinstance(row, Exchange):
            story.exchange(row)
        elif isinstance(row, Stray):
            story.stray(row)
        elif isinstance(row, Log):
            story.last_words.append(row.raw)
        elif isinstance(row, Event):
            story.event(row)
    return found
