"""The selection of a replay: the capture that WHAT names, and the requests that rows and `--only` select from it."""

from dataclasses import dataclass

from ...errors import AddressError, ReplayError
from ...records import CLIENT
from ...replay.client.correlate.model import Correlations
from ...replay.client.correlate.reader import read_correlations
from ...replay.client.plan import Plan
from ...replay.client.read_plan import read_plans
from ...transcript.model import CaptureInfo, Exchange, Numbered, Transcript
from ..filter_option import combined_filter, filter_rows
from ..transcripts import select_captures, transcript_of
from .played import one_session, playable


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySelection:
    """The plans to play, from the capture at `path`, and their rows that were selected (None: all).

    The plans also have the requests that the selected ones need.
    """

    path: str
    transcript: Transcript
    capture: CaptureInfo
    plans: list[Plan]
    selected: frozenset[int] | None
    correlations: Correlations

    @property
    def label(self) -> str:
        """The label of the recorded server."""
        return self.capture.header.label if self.capture.header else ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the capture."""
        return (self.capture.header.capture_id,) if self.capture.header else ()

    @property
    def is_verbatim(self) -> bool:
        """True if the capture was recorded without redaction."""
        return self.capture.header is not None and self.capture.header.redaction == "none"

    @property
    def requests(self) -> list[Exchange]:
        """The requests to send."""
        return [request for plan in self.plans for request in plan.requests]

    @property
    def selected_requests(self) -> list[Exchange]:
        """The requests to send that were selected."""
        return [request for request in self.requests if self.selected is None or request.row in self.selected]


def select_requests(what: str, only: tuple[str, ...], carried: tuple[str, ...]) -> ReplaySelection:
    """Select what a WHAT and `--only` name together. Raises: AddressError, ReplayError, FilterError."""
    condition = combined_filter(only)
    captures = select_captures((what,))
    if captures.rows is None:
        captures = captures._replace(paths=one_session(what, playable(what, captures.paths)))
    if len(captures.paths) > 1:
        count, paths = len(captures.paths), ", ".join(captures.paths)
        raise AddressError(what, f"a replay plays one capture, and these are {count}: {paths}; name one of them")
    if captures.is_one_row:
        raise AddressError(what, f"one row is not a replay; mcpspy call {what} sends it")
    transcript, _ = transcript_of(captures)
    correlations = read_correlations(transcript, carried)
    all_plans = read_plans(transcript)
    plans = [plan for plan in all_plans if plan.sends]
    if not plans:
        raise ReplayError(what, _why_no_plan(all_plans, transcript.captures[0].failed_start))
    selected = None
    if captures.rows is not None or condition is not None:
        rows = captures.rows_in(transcript)
        if condition is not None:
            rows = filter_rows(condition, transcript, rows).rows
        numbers = frozenset(row.row for row in rows if isinstance(row, Numbered))
        selected = numbers & {send.row for plan in plans for send in plan.sends}
        if not selected:
            raise ReplayError(what, _why_no_row(transcript, numbers, is_filtered=condition is not None))
        plans = [plan.only(plan.rows & selected, correlations.needs) for plan in plans if plan.rows & selected]
    return ReplaySelection(
        path=captures.paths[0],
        transcript=transcript,
        capture=transcript.captures[0],
        plans=plans,
        selected=selected,
        correlations=correlations,
    )


def _why_no_plan(plans: list[Plan], failure: str) -> str:
    if failure:
        return f"its server could not be started ({failure}), so there is nothing to send; mcpspy list names older recordings"
    unsent = next((unsent for plan in plans for unsent in plan.left_out), None)
    if unsent is None:
        return "no client sent a request in it, so there is nothing to send; mcpspy show says what happened"
    return f"nothing in it can be sent again; row {unsent.row} cannot, because {unsent.why}"


def _why_no_row(transcript: Transcript, numbers: frozenset[int], *, is_filtered: bool) -> str:
    exchanges = [exchange for exchange in transcript.exchanges if exchange.row in numbers]
    if exchanges and all(exchange.sender != CLIENT for exchange in exchanges):
        return f"row {exchanges[0].row} is a request of the server, and a replay plays the client"
    none = f"no message of a client {'matches --only' if is_filtered else 'is among these rows'}"
    return f"{none}; mcpspy replay --dry-run, without these, lists all"
