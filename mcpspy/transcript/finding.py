"""What a finding is. The rules that findings follow, and the code that finds, are in `findings/`."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(slots=True, frozen=True, kw_only=True)
class Finding:
    """Something worth a human's eye. `rule` is stable and kebab-case; `culprit` is who is to blame, in a word, `blame` why.

    Captured text in its sentences is as it was captured, so a view has to escape it.
    """

    rule: str
    severity: Severity
    capture: int
    number: int
    """The record it points at."""
    row: int | None
    """The row it points at, if it is about one."""
    at_ns: int
    """When it was met first, on the transcript's clock."""
    what: str
    """One sentence on what happened."""
    culprit: str
    """`client`, `server`, `model`, `api`, `mcpspy`, `disk` or `file`; `unclear` where the wire does not say."""
    blame: str
    """One sentence on whose fault it is, and how that is known."""
    advice: str
    """One sentence on what to do."""
    count: int = 1
    """How often it was met; it points at the first time."""
