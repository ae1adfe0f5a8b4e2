"""In JSON: how a server came up, the phases of its life, and what a line of its log quotes. docs/json.md describes the fields."""

from dataclasses import asdict
from typing import Any

from ...transcript.log_matches import Quote
from ...transcript.phases import Course


def course_object(course: Course) -> dict[str, Any]:
    """Members for a capture: empty where no tap started the server."""
    start_up = course.start_up
    if start_up is None:
        return {}
    phases = [
        {
            "phase": one.name.value,
            "at_ns": one.begin_ns,
            "end_ns": one.end_ns,
            "duration_ns": one.duration_ns,
            "requests": one.exchanges,
        }
        for one in course.phases
    ]
    return {"start_up": {**asdict(start_up), "took_ns": start_up.took_ns}, "phases": phases}


def quote_object(quote: Quote | None) -> dict[str, Any]:
    """Members for a line of stderr: empty where it quotes nothing."""
    if quote is None:
        return {}
    message = quote.message
    said = {
        "row": quote.row,
        "record": message.number,
        "kind": message.kind.value,
        "from": message.sender,
        "gap_ns": quote.gap_ns,
    }
    return {"quotes": said}
