"""What is worth a human's eye in a transcript: a pure function over its rows, with rules whose culprit is certain.

Where records are missing nobody can be blamed for what is not seen: there the rules about answers hold their tongue.
"""

from collections.abc import Iterator
from dataclasses import replace

from .endings import ending_findings
from .flaws import FLAWS
from .found import Found, call, found_in, quoted
from .http_findings import http_findings
from .keeping import keeping_findings
from .model import Finding, Kind, Message, Stray, Transcript
from .rules import noise_source
from .story import Story, stories


def findings(transcript: Transcript) -> list[Finding]:
    """What there is to find, in the order of time; what repeats is one finding, which points at the first and counts all."""
    counted: dict[tuple[str, ...], Found] = {}
    for index, story in enumerate(stories(transcript)):
        for number, one in enumerate(_all(story)):
            key = (str(index), one.finding.rule, one.finding.culprit, one.group or str(number))
            first = counted.setdefault(key, one)
            if first is not one:
                counted[key] = first._replace(finding=replace(first.finding, count=first.finding.count + 1))
    return [one.finding for one in sorted(counted.values(), key=lambda one: one.at_ns)]


def _all(story: Story) -> Iterator[Found]:
    for stray in story.malformed:
        yield from _malformed(story, stray)
    for row, message in sorted(story.flawed, key=lambda one: one[1].at_ns):
        yield from _flawed(row, message)
    yield from _answers(story)
    yield from ending_findings(story)
    yield from http_findings(story)
    yield from keeping_findings(story)


def _malformed(story: Story, stray: Stray) -> Iterator[Found]:
    """Lines that are no message; those that the recording broke are nobody's fault."""
    message = stray.message
    if message.reason in ("not recorded", "cut short") or "damaged" in message.flaws:
        return
    text = message.raw.strip()
    if not text:
        yield found_in("blank-line", message, stray.row, "An empty line between messages.", group="blank")
    elif message.sender == "server" and text[:1] not in b"{[" and story.stream_name(message.stream) in ("stdout", ""):
        source = noise_source(text)
        what = f"A line on stdout that is no message; it looks like {source}: {quoted(text)}"
        yield found_in("stdout-noise", message, stray.row, what, group=source)
    else:
        yield _broken(message, stray.row, text, is_http=bool(story.source.transactions))


def _broken(message: Message, row: int, text: bytes, *, is_http: bool) -> Found:
    if text in (b"{", b"["):
        advice = "This looks like pretty-printed JSON: write each message on one line."
        return found_in("malformed-message", message, row, f"A line with only {quoted(text)}.", advice=advice)
    ending = " The stream ended within it." if "no-final-newline" in message.flaws else ""
    what = f"A message that cannot be read ({message.reason}): {quoted(text)}{ending}"
    advice = "Send each message as one JSON object: as a body, or as the data of an event." if is_http else ""
    return found_in("malformed-message", message, row, what, advice=advice)


def _flawed(row: int, message: Message) -> Iterator[Found]:
    for name in message.flaws:
        if name == "ambiguous-stream":
            what = (
                "An answer came on one of several open streams of which none announced an endpoint: only ids tell whose it is."
            )
            yield found_in(name, message, row, what, group=name)
        flaw = FLAWS.get(name)
        if flaw is None or (name == "null-id" and message.kind is Kind.ERROR):  # the id such an error has to have
            continue
        what = f"A {message.kind} that is not as it should be: {flaw.what}."
        yield found_in("flawed-message", message, row, what, advice=flaw.fix, severity=flaw.severity, group=name)


def _answers(story: Story) -> Iterator[Found]:
    for exchange in story.mismatched:
        response = exchange.response
        assert response is not None
        what = f"A response has the id {response.id}, its request {exchange.request.id}."
        yield found_in("id-type-mismatch", response, exchange.row, what, group="spelling")
    for exchange in story.repeated:
        count = 1 + len(exchange.more_responses)
        what = f"{call(exchange)} was answered {count} times."
        yield found_in("duplicate-response", exchange.more_responses[0], exchange.row, what)
    for stray in story.unpaired:
        message = stray.message
        unseen = story.first_hole_ns is not None and story.first_hole_ns <= stray.at_ns
        if unseen or story.source.header is None or (message.kind is Kind.ERROR and message.id in (None, "null")):
            continue
        said = "without an id" if message.id is None else f"with the id {message.id}, which nobody asked with"
        yield found_in("unpaired-response", message, stray.row, f"{_article(message.kind)} {said}.")


def _article(kind: Kind) -> str:
    return f"An {kind}" if kind is Kind.ERROR else f"A {kind}"
