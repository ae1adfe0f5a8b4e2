"""`mcpspy web` in a real browser, while sessions are recorded: what comes, what stays, and what is asked of whom."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Look, Looking
from tests.cli.recording import Recording
from tests.cli.terminal import on_pipe
from tests.conftest import Peer
from tests.deadlines import DEADLINE_S

SOON_MS = DEADLINE_S * 1000


@contextmanager
def live(look: Look, query: str = "", **context: object) -> Iterator[Looking]:
    """The page of a `mcpspy web`, open."""
    with on_pipe("web", "--port", "0") as running:
        url = running.wait_for("Ctrl-C").splitlines()[0]
        looking = look(**context)
        looking.page.set_default_timeout(SOON_MS)
        yield looking.at(url + query)
        assert all(request.startswith(url) for request in looking.requests)


def test_rows_come_while_a_real_session_is_recorded(look: Look, mcpspy: list[str], peer: Peer) -> None:
    with live(look) as looking:
        expect(looking.page.locator("#live")).to_have_text("nothing has been recorded yet")
        process = subprocess.Popen(
            [*mcpspy, "run", "--", *peer("faulty.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        expect(looking.page.locator(".line", has_text="ping")).to_contain_text("ok", timeout=SOON_MS)
        process.communicate('{"jsonrpc":"2.0","id":2,"method":"tools/nothing"}\n', timeout=DEADLINE_S)
        expect(looking.page.locator(".line", has_text="tools/nothing")).to_have_count(1, timeout=SOON_MS)
        expect(looking.page.locator("#recordings a[aria-current]")).not_to_contain_text("live", timeout=SOON_MS)
        assert looking.complaints == []


def test_a_page_follows_the_newest_recording_unless_one_was_chosen(look: Look) -> None:
    first = Recording(client=1).ask(1, name="first").answer(1)
    with live(look) as following, live(look, f"?recording={first.id}") as staying:
        for page in (following, staying):
            expect(page.page.locator(".line", has_text="first")).to_have_count(1)
        Recording("files", client=2).ask(1, name="second").answer(1)
        expect(following.page.locator(".line", has_text="second")).to_have_count(1)
        expect(staying.page.locator("#recordings a")).to_have_count(2)
        expect(staying.page.locator(".line", has_text="first")).to_have_count(1)
        assert [*following.complaints, *staying.complaints] == []


def test_what_was_chosen_stays_chosen_and_its_answer_comes(look: Look) -> None:
    recording = Recording().ask(1, name="slow")
    with live(look) as looking:
        looking.page.locator(".line", has_text="slow").click()
        expect(looking.page.locator("#detail p").first).to_have_text("pending")
        for id in range(2, 60):
            recording.ask(id, name="other").answer(id)
        expect(looking.page.locator("#count")).to_contain_text("60 rows")
        recording.answer(1, result={"content": [{"type": "text", "text": "at last"}]})
        expect(looking.page.locator("#detail")).to_contain_text("at last")
        assert "row=1" in looking.page.url
        assert looking.complaints == []


def test_the_bar_of_a_pending_call_grows_with_axis_and_heading(look: Look) -> None:
    Recording().ask(1, name="one").answer(1).ask(2, name="slow")
    with live(look) as looking:
        expect(looking.page.locator(".line", has_text="slow")).to_have_count(1)
        bar = "[...document.querySelectorAll('.line')].find((line) => line.textContent.includes('slow')).querySelector('i')"
        share = f"(({{ offsetWidth, parentElement }}) => offsetWidth / parentElement.offsetWidth)({bar})"
        axis, heading = looking.page.locator("#overview text").first, looking.page.locator("#summary")
        expect(heading).to_have_text(re.compile(r"waiting for [2-9]\.\d\d s"))
        expect(axis).to_have_text(re.compile(r"^[2-9]\.\d\d s$"))
        assert looking.page.evaluate(share) > 0.5
        assert looking.complaints == []


def test_what_is_searched_for_is_found_in_payloads_as_they_come(look: Look) -> None:
    recording = Recording().ask(1, name="one", arguments={"city": "北京"}).answer(1).ask(2, name="two").answer(2)
    with live(look) as looking:
        looking.page.fill("#search", "北京")
        expect(looking.page.locator("#count")).to_contain_text("1 of 3 rows")
        recording.ask(3, name="three", arguments={"city": "北京"}).answer(3)
        expect(looking.page.locator("#count")).to_contain_text("2 of 4 rows")
        assert looking.complaints == []


def test_an_address_brings_back_a_row_of_a_live_page(look: Look) -> None:
    Recording().ask(1, name="one").answer(1).ask(2, name="two").answer(2)
    with live(look, "#row=2&q=two") as looking:
        expect(looking.page.locator("#detail h2")).to_contain_text("row 2 · tools/call two")
        expect(looking.page.locator("#search")).to_have_value("two")


def test_diagram_and_findings_follow_and_no_name_is_markup(look: Look) -> None:
    recording = Recording('</script><img src=x onerror="alert(1)">\u202e').ask(1, name="one").answer(1)
    with live(look, "#tab=diagram") as looking:
        expect(looking.page.locator("g.step", has_text="tools/call one")).to_have_count(1)
        recording.line(1, b"hello from a print\n")
        expect(looking.page.locator("#finding-count")).to_have_text(re.compile(r"\d"))
        looking.page.keyboard.press("1")
        expect(looking.page.locator(".line", has_text="⚑")).not_to_have_count(0)
        expect(looking.page.locator("#recordings")).to_contain_text("</script><img")
        assert looking.complaints == []


def show(looking: Looking, state: str) -> None:
    """Bring a page to the front (`visible`), or put it behind others (`hidden`), as it sees it."""
    looking.page.evaluate(
        """(state) => {
          Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def test_windows_share_four_streams_and_who_is_hidden_gives_its_own_up(look: Look) -> None:
    recording = Recording().ask(1, name="one").answer(1)
    with live(look) as first:
        others = [Looking(first.page.context.new_page()).at(first.page.url) for _ in range(5)]
        for looking in [first, *others[:3]]:
            expect(looking.page.locator("#live")).to_have_text("live")
        for looking in others[3:]:
            expect(looking.page.locator("#live")).to_contain_text("4 other windows")
        others[0].page.locator(".line", has_text="one").click()
        expect(others[0].page.locator("#detail .json").first).to_be_visible()
        show(first, "hidden")
        others[1].page.close()
        for looking in others[3:]:
            expect(looking.page.locator(".line", has_text="one")).to_have_count(1)
        recording.ask(2, name="two").answer(2)
        expect(others[4].page.locator(".line", has_text="two")).to_have_count(1)
        expect(first.page.locator(".line", has_text="two")).to_have_count(0)
        others[2].page.close()
        show(first, "visible")
        expect(first.page.locator(".line", has_text="two")).to_have_count(1)
        assert [complaint for page in (first, *others) for complaint in page.complaints] == []


def test_twenty_captures_of_one_recording_have_room_on_a_phone(look: Look) -> None:
    for number in range(20):
        Recording(f"server-{number:02}").ask(1, "initialize").answer(1)
    with live(look, width=400) as looking:
        expect(looking.page.locator("#recordings")).to_contain_text("and 16 more")
        expect(looking.page.locator("#count")).to_have_text("40 rows")
        assert looking.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert looking.page.evaluate("document.querySelector('#recordings a').clientWidth") < 250
        assert looking.page.locator(".line").count() > 8


def test_a_page_says_that_its_recording_is_gone_and_that_its_server_ended(look: Look) -> None:
    recording = Recording().ask(1, name="one").answer(1)
    with on_pipe("web", "--port", "0") as running:
        looking = look()
        looking.page.goto(running.wait_for("Ctrl-C").splitlines()[0])
        expect(looking.page.locator("#live")).to_have_text("live")
        Path(recording.path).unlink()
        show(looking, "hidden")
        show(looking, "visible")
        expect(looking.page.locator("#live")).to_contain_text("no longer in the store")
        assert looking.page.evaluate("navigator.locks.query().then((all) => all.held.length)") == 0
        expect(looking.page.locator(".line", has_text="one")).to_have_count(1)
        Recording("files").ask(1, name="another").answer(1)
        expect(looking.page.locator("#live")).to_have_text("live")
        assert running.end() == 0
        expect(looking.page.locator("#live")).to_contain_text("is mcpspy web still running")
