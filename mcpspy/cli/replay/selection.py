"""What a replay is to play: the capture that WHAT names, and of it the requests that rows and `--only` choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import AddressError, ReplayError
from ...records import CLIENT
from ...replay.client.correlate.reader import read_correlations
from ...replay.client.read_plan import read_plans
from ...transcript.model import Exchange, Numbered
from ...views.timeline.timeline import rows_between
from ..filter_option import combined_filter, filter_rows
from ..transcripts import row_of, select_captures, transcript_of

if TYPE_CHECKING:
    from ...replay.client.correlate.model import Correlations
    from ...replay.client.plan import Plan
    from ...transcript.model import CaptureInfo, Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be played, from the capture at `path`: the plans, and of them the rows that were asked for (None: all)."""

    path: str
    transcript: Transcript
    source: CaptureInfo
    plans: list[Plan]
    asked: frozenset[int] | None
    correlations: Correlations

    @property
    def label(self) -> str:
        """What its server is called."""
        return self.source.header.label if self.source.header else ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the capture."""
        return (self.source.header.capture_id,) if self.source.header else ()

    @property
    def is_verbatim(self) -> bool:
        """Whether nothing was redacted in it, as somebody wanted it."""
        return self.source.header is not None and self.source.header.redaction == "none"

    @property
    def requests(self) -> list[Exchange]:
        """All that are sent."""
        return [one for plan in self.plans for one in plan.requests]

    @property
    def asked_requests(self) -> list[Exchange]:
        """Those that were asked for."""
        return [one for one in self.requests if self.asked is None or one.row in self.asked]


def wanted(what: str, only: tuple[str, ...], handles: tuple[str, ...]) -> Wanted:
    """What a WHAT and `--only` name together. Raises: AddressError, ReplayError, FilterError."""
    matching = combined_filter(only)
    asked = select_captures((what,), skips_replays=True)
    if len(asked.paths) > 1:
        raise AddressError(what, f"a replay plays one capture, and these are {len(asked.paths)}: {', '.join(asked.paths)}")
    transcript, _ = transcript_of(asked.paths)
    correlations = read_correlations(transcript, handles)
    every = read_plans(transcript)
    everything = [plan for plan in every if plan.sends]
    if not everything:
        raise ReplayError(what, _why_nothing(every))
    rows = None
    if asked.rows is not None:
        row_of(transcript, what, asked.rows[0])
        rows = rows_between(transcript.rows, asked.rows)
    if matching is not None:
        rows = filter_rows(matching, transcript, transcript.rows if rows is None else rows).rows
    if rows is None:
        return Wanted(
            path=asked.paths[0],
            transcript=transcript,
            source=transcript.captures[0],
            plans=everything,
            asked=None,
            correlations=correlations,
        )
    numbers = frozenset(one.row for one in rows if isinstance(one, Numbered))
    asked_rows = numbers & {send.row for plan in everything for send in plan.sends}
    if not asked_rows:
        raise ReplayError(what, _why_none(transcript, numbers, is_filtered=matching is not None))
    parts = [plan.only(plan.rows & asked_rows, correlations.needs) for plan in everything if plan.rows & asked_rows]
    return Wanted(
        path=asked.paths[0],
        transcript=transcript,
        source=transcript.captures[0],
        plans=parts,
        asked=asked_rows,
        correlations=correlations,
    )


def _why_nothing(every: list[Plan]) -> str:
    left_out = next((one for plan in every for one in plan.left_out), None)
    if left_out is None:
        return "nobody asked a server anything in it, so there is nothing to send; mcpspy show says what happened"
    return f"nothing of it can be sent again; row {left_out.row} not, since {left_out.why}"


def _why_none(transcript: Transcript, numbers: frozenset[int], *, is_filtered: bool) -> str:
    asked = [one for one in transcript.exchanges if one.row in numbers]
    if asked and all(one.sender != CLIENT for one in asked):
        return f"row {asked[0].row} was asked by the server, and a replay plays the client"
    none = f"there is nothing that a client sends {'and that matches --only' if is_filtered else 'among these rows'}"
    return f"{none}; mcpspy replay --dry-run, without these, shows what there is"
