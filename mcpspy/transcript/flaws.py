"""What can be odd about a message that could still be read, as data: the flaws that the rule `flawed-message` tells of."""

from dataclasses import dataclass
from typing import Final

from .model import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One flaw of `Message.flaws`, in words, and what to do."""

    severity: Severity
    what: str
    fix: str


FLAWS: Final = {
    "no-jsonrpc": Flaw(
        severity=Severity.WARNING,
        what='no "jsonrpc": "2.0"',
        fix='Put "jsonrpc": "2.0" in every message: SDKs drop one without.',
    ),
    "jsonrpc-version": Flaw(
        severity=Severity.WARNING, what='"jsonrpc" is not "2.0"', fix='Write "jsonrpc": "2.0", a string, in every message.'
    ),
    "null-id": Flaw(
        severity=Severity.WARNING,
        what="its id is null",
        fix="Give a request an id that is a string or an integer, a notification none.",
    ),
    "fractional-id": Flaw(
        severity=Severity.WARNING, what="its id is no integer", fix="Use strings or integers: MCP allows no other ids."
    ),
    "ambiguous": Flaw(
        severity=Severity.WARNING,
        what="it has members of two kinds of messages",
        fix="Send either method, or result, or error; leave out the others instead of sending null.",
    ),
    "id-in-use": Flaw(
        severity=Severity.ERROR,
        what="its id is that of a request that waits for its answer",
        fix="Give every request of a session an id of its own.",
    ),
    "bom": Flaw(
        severity=Severity.WARNING, what="it begins with a byte order mark", fix="Write UTF-8 without a byte order mark."
    ),
    "invalid-utf-8": Flaw(
        severity=Severity.WARNING, what="it is not valid UTF-8", fix="Encode messages as UTF-8; readers replace what is not."
    ),
    "nan": Flaw(
        severity=Severity.WARNING,
        what="NaN or an infinity stands for a number",
        fix="JSON has no such numbers, and JavaScript drops the message: send null or a string.",
    ),
    "lone-surrogate": Flaw(
        severity=Severity.WARNING,
        what="a string has half of a surrogate pair",
        fix="Do not cut strings within a character: strict readers drop the message.",
    ),
    "crlf": Flaw(severity=Severity.INFO, what="its line ends in CR LF", fix="End lines with LF alone."),
    "no-final-newline": Flaw(
        severity=Severity.WARNING,
        what="its line, the last one, has no line feed",
        fix="End every message with a line feed: some readers drop one without.",
    ),
}
