"""HARs that Chromium's DevTools and Playwright wrote are imported: the rows and findings of the tap's capture of the same session."""

import pytest

from mcpspy import open as open_captures
from mcpspy.transcript.absent_facts import NEEDED, NEEDED_EXACTLY
from mcpspy.transcript.model import Transcript
from tests.browser.har_recording import KEPT, PATHS, Hars
from tests.cli.terminal import run

NOT_FOUND = {*NEEDED["ends"], *NEEDED_EXACTLY["times"], "unanswered-request"}
"""Rules that a HAR proves nothing for: docs/import.md names the facts that it does not have."""


def same_as_the_taps(kind: str, hars: Hars) -> None:
    """Assert that the HARs of a session show what they can of it, and accuse nobody of anything else than the tap's capture does."""
    tapped = open_captures(hars.capture)
    devtools, playwright = (open_captures(made(har)) for har in (hars.devtools, hars.playwright))
    assert rows(devtools) == rows(tapped)
    assert rules(devtools) == rules(tapped) - NOT_FOUND
    if kind == "sse":  # Playwright keeps no body that did not end
        assert {row.request.raw.strip() for row in playwright.exchanges} < {row.request.raw.strip() for row in tapped.exchanges}
        assert not any(row.response for row in playwright.exchanges)
        assert rules(playwright) == {"recording-gap"}
        return
    # nor the event before the client closed the last response
    assert [row for row in rows(playwright) if b'"last"' not in row[3]] == [
        row for row in rows(tapped) if b'"last"' not in row[3]
    ]
    assert rules(playwright) == (rules(tapped) - NOT_FOUND) | {"recording-gap"}


def made(har: object) -> str:
    """Import a file, and return the path of its capture."""
    return run("import", str(har)).stdout.strip()


def rows(transcript: Transcript) -> list[tuple[str, str, str, bytes, bytes, int]]:
    """Return what was asked and what was answered, by what was asked: a HAR has times only to the millisecond."""
    return sorted(
        (
            str(row.sender), str(row.method), str(row.outcome), row.request.raw.strip(),
            b"" if row.response is None else row.response.raw.strip(), row.progress,
        )
        for row in transcript.exchanges
    )  # fmt: skip


def rules(transcript: Transcript) -> set[str]:
    return {finding.rule for finding in transcript.findings}


@pytest.mark.parametrize("kind", PATHS)
def test_hars_of_a_browser_make_the_rows_of_the_taps_capture(kind: str) -> None:
    same_as_the_taps(kind, Hars.of(kind, KEPT))


def test_what_the_client_answered_came_before_the_answer() -> None:
    """The events of a stream have one time in this HAR; the server's question cannot have come after its answer."""
    transcript = open_captures(made(Hars.of("streamable", KEPT).playwright))
    (question,) = [row for row in transcript.exchanges if row.sender == "server"]
    (call,) = [row for row in transcript.exchanges if row.target == "greet"]
    assert question.response is not None
    assert call.response is not None
    assert call.request.at_ns < question.request.at_ns < question.response.at_ns < call.response.at_ns


@pytest.mark.parametrize("kind", PATHS)
def test_a_replay_of_what_a_browser_recorded_is_planned(kind: str) -> None:
    har = Hars.of(kind, KEPT).devtools
    listed = run("replay", str(har), "--dry-run", "--url", "http://127.0.0.1:9/mcp").stdout
    assert [name for name in ("add", "slow", "greet", "sing") if f"tools/call {name}" in listed] == [
        "add",
        "slow",
        "greet",
        "sing",
    ]
