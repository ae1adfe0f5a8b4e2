"""What people suffer from with MCP, and which findings tell: a table of docs/findings.md. Refuses to find anything itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Pain:
    """What people complain of. `rules` are those that find it; `said` is what to do, or why nothing can be found."""

    number: int
    what: str
    rules: tuple[str, ...] = ()
    said: str = ""


PAINS: Final = (
    Pain(
        number=1,
        what="Nobody sees what the real client sends",
        said="Nobody's fault: `mcpspy run` and `mcpspy proxy` stand between the real two, and `mcpspy show` has every message.",
    ),
    Pain(
        number=2, what="Logs on stdout", rules=("stdout-noise",), said="Text, date and source of each line are in the finding."
    ),
    Pain(
        number=3,
        what="“Request timed out” (-32001), and nobody knows who was slow",
        rules=("timed-out",),
        said="Says after how long the one gave up, and when the other answered after all.",
    ),
    Pain(
        number=4,
        what="A call hangs for ever",
        rules=("unanswered-request", "accepted-request", "missing-endpoint", "server-died"),
        said="Says whether the server was silent, gone, took the call for a notification, or never said where to send it.",
    ),
    Pain(
        number=5,
        what="A proxy on the way gathers events, which come all at once",
        rules=("events-in-burst",),
        said="Names the server's side: mcpspy passes on at once. To tell the server from the proxy, put mcpspy before each.",
    ),
    Pain(
        number=6,
        what="A stream of events opens late, or dies when idle",
        rules=("late-head", "idle-stream-cut", "keep-alive-stopped"),
        said="Only streams that break off are found: one that ends by the book may be meant to.",
    ),
    Pain(
        number=7,
        what="A session is dead after a restart of the server (404), and the client goes on in it",
        rules=("session-unknown", "session-missing"),
        said="A client that does as it should begins a new session, which is no finding.",
    ),
    Pain(
        number=8,
        what="OAuth fails behind a proxy",
        rules=("foreign-resource", "dpop-proof"),
        said="mcpspy maps the server's own address in metadata. The authorization server is asked past mcpspy.",
    ),
    Pain(
        number=9,
        what="A proxy swallows notifications, or requests of the server",
        rules=("missing-initialized", "unanswered-request"),
        said="What has to be there is missed. For the rest put mcpspy on both sides of the proxy, and compare the captures.",
    ),
    Pain(
        number=10,
        what="A reader dies of a large message, such as asyncio's limit of 64 KiB for a line",
        rules=("server-died", "reader-stalled"),
        said="`server-died` quotes the last words; a reader that hangs instead is named once the writer has waited for a second.",
    ),
    Pain(
        number=11,
        what="Large results freeze viewers, or are cut",
        rules=("large-result",),
        said="mcpspy passes on and keeps messages of any size, shows excerpts, and reports whose results are large.",
    ),
    Pain(
        number=12,
        what="PATH and other variables do not reach the server",
        rules=("server-not-started", "server-died"),
        said="The names of the variables that were there are in the capture's header.",
    ),
    Pain(
        number=13,
        what="A launcher such as npx is not found",
        rules=("server-not-started",),
        said="On Windows clients need `cmd /c npx`; mcpspy does not run there.",
    ),
    Pain(
        number=14,
        what="An encoding of Windows, cp1252 or GBK, in place of UTF-8",
        rules=("invalid-utf-8",),
        said="The bytes are kept as they came. A reader that drops the message is found as a call that hangs.",
    ),
    Pain(
        number=15,
        what="Processes are left behind",
        rules=("descendants-left",),
        said="Those that a server leaves. If a client dies, mcpspy ends the server.",
    ),
    Pain(
        number=16,
        what='The id comes back as another type, "0" for 0, and the client waits',
        rules=("id-type-mismatch",),
        said="mcpspy pairs the two all the same, and says so.",
    ),
    Pain(
        number=17,
        what="Ids of several clients collide, and answers go to the wrong one",
        rules=("ambiguous-stream", "id-in-use"),
        said="Where each client has a session or a stream of its own, equal ids are told apart, and nothing is found.",
    ),
    Pain(
        number=18,
        what="Surprises in the handshake: revisions, capabilities, order, header fields",
        rules=(
            "unanswered-request",
            "unknown-revision",
            "undeclared-capability",
            "missing-initialized",
            "early-request",
            "second-initialize",
            "header-contradicts",
            "missing-header",
        ),
        said="The same rules for both sides: each names the one that broke what the two agreed on.",
    ),
    Pain(
        number=19,
        what="One server behaves otherwise with another client",
        said="Both are right. `mcpspy check A B` and `mcpspy show A B` have both captures at once.",
    ),
    Pain(
        number=20,
        what="A session cannot be shared",
        said="Nobody's fault: a capture is one file, and `mcpspy export share` makes a copy of it for everybody to see.",
    ),
    Pain(number=21, what="There is no mock of a server", said="Nobody's fault: whatever a mock has to say is in the capture."),
    Pain(number=22, what="A replay does not match what was recorded", said="Nothing passes on the wire that would tell."),
    Pain(
        number=23,
        what="Secrets in logs",
        said="No finding: credentials never reach a capture, unless `--redact none` says so. What tools return is kept as it is,"
        " until `mcpspy export share` makes a copy without what is secret in it.",
    ),
    Pain(
        number=24,
        what="What definitions of tools cost, and that they grow",
        rules=("costly-tools", "unused-tools", "tool-changed"),
        said="Growth shows against a baseline: `mcpspy check --baseline`.",
    ),
    Pain(
        number=25,
        what="The wrapper itself is what fails, and nobody knows which leg lost a message",
        rules=("recording-gap", "upstream-failed"),
        said="mcpspy accuses itself and the disk too. Of several proxies in a row, put mcpspy before each.",
    ),
    Pain(
        number=26,
        what="The model does not call a tool, or calls it wrongly",
        rules=("tool-not-offered", "use-not-offered", "use-not-called", "arguments-changed"),
        said="With [the model's leg](model.md) recorded too: says whether the model never knew of the tool, got its name wrong, or"
        " was not obeyed.",
    ),
    Pain(
        number=27,
        what="The model answers as if a tool had said something else",
        rules=("result-cut",),
        said="`result-changed`, `result-dropped` and `error-hidden` tell of more that can happen on the way back.",
    ),
)

_HEAD: Final = """\
## What people suffer from

What users of MCP complain of most, and what tells. Whatever has a rule is played in `tests/pains/` by real programs, next to the same
without the fault: `mcpspy check` finds the one and is silent about the other.

| | what | rules | |
| --- | --- | --- | --- |
"""


def pains_table(pains: Iterable[Pain]) -> str:
    """The section in Markdown."""
    return _HEAD + "".join(_row(one) for one in pains)


def _row(pain: Pain) -> str:
    rules = ", ".join(f"[`{rule}`](#{rule})" for rule in pain.rules) or "none"
    return f"| {pain.number} | {pain.what} | {rules} | {pain.said} |\n"
