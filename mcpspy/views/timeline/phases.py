"""The phases of a server's life in words, and how it came up. Refuses to know where one phase ends: `transcript.phases` does."""

from ...transcript.phases import Course, Phase, StartUp
from ..text.cells import cells
from ..text.line import Line
from ..text.units import duration

BETWEEN = " · "


def phase_words(phases: list[Phase]) -> list[str]:
    """How long each phase took: `start 2.99 s`."""
    return [f"{one.name} {'…' if one.duration_ns is None else duration(one.duration_ns)}" for one in phases]


def start_up_words(start_up: StartUp) -> list[str]:
    """When the server first said something: `first answer after 3.20 s`."""
    marks = (("first log line", start_up.first_log_ns), ("first answer", start_up.first_answer_ns))
    known = sorted((at_ns, what) for what, at_ns in marks if at_ns is not None)
    return [f"{what} after {duration(max(0, at_ns - start_up.spawned_ns))}" for at_ns, what in known]


def phases_lines(course: Course, width: int | None) -> list[Line]:
    """The phases in a line of `width` cells, or in more; none where no tap started the server, and where it never answered."""
    start_up = course.start_up
    if start_up is None or start_up.first_answer_ns is None:
        return []
    return [[("  " + line, "dim")] for line in filled(phase_words(course.phases), None if width is None else width - 2)]


def filled(words: list[str], room: int | None) -> list[str]:
    """`words`, of which there is one at least, with a sign between them, on as many lines of `room` cells as they take."""
    lines = [words[0]]
    for word in words[1:]:
        longer = lines[-1] + BETWEEN + word
        if room is None or cells(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
