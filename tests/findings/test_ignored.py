"""Findings about what a side ignored: a cancellation, the pages of a list, the time that a task is kept, a stream that was opened."""

import pytest

from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, opened_session


def crawl(*, cancelled_after_ms: int, goes_on_ms: int) -> Dialogue:
    """Return a call that reports progress, is cancelled, and reports progress again so much later."""
    made = Dialogue().client(tool_call(1, "crawl", token="t"))
    made.wait(cancelled_after_ms).client(notification("notifications/cancelled", {"requestId": 1}))
    return made.wait(goes_on_ms).server(notification("notifications/progress", {"progressToken": "t", "progress": 1}))


@pytest.mark.parametrize(("goes_on_ms", "is_found"), [(5, False), (900, False), (1_500, True)])
def test_progress_that_crosses_the_cancellation_is_no_work_that_went_on(goes_on_ms: int, *, is_found: bool) -> None:
    made = crawl(cancelled_after_ms=300, goes_on_ms=goes_on_ms).server(result(1)).closes()
    assert ("cancellation-ignored" in made.rules) is is_found


def listed(*pages: tuple[str, str]) -> Dialogue:
    """Return a session in which a client asks for pages with these cursors, and gets these for the next page."""
    made = Dialogue()
    for id, (cursor, next_cursor) in enumerate(pages):
        made.client(request(id, "tools/list", {"cursor": cursor} if cursor else {}))
        made.server(result(id, {"tools": []} | ({"nextCursor": next_cursor} if next_cursor else {})))
    return made


@pytest.mark.parametrize(
    ("pages", "calls", "is_found"),
    [
        ((("", "p2"),), 1, True),
        ((("", "p2"), ("p2", "p3")), 2, True),
        ((("", "p2"), ("p2", "")), 2, False),
        ((("", "p2"), ("p2", ""), ("", "")), 1, False),
        ((("", "p2"),), 0, False),
        ((("", ""),), 2, False),
        ((("", "p2"), ("p2", "p2")), 2, False),
        ((("", "p2"), ("p2", "p3"), ("p3", "p2")), 2, False),
    ],
    ids=[
        "no second page",
        "no third page",
        "all pages",
        "all pages and again",
        "nothing called",
        "one page",
        "one page again and again",
        "pages in a circle",
    ],
)
def test_pages_that_nobody_asks_for_are_found_once_tools_are_called(
    pages: tuple[tuple[str, str], ...], calls: int, *, is_found: bool
) -> None:
    made = listed(*pages)
    for id in range(100, 100 + calls):
        made.client(tool_call(id)).server(result(id))
    assert ("pages-unread" in made.closes().rules) is is_found


@pytest.mark.parametrize("head_comes", [True, False])
def test_a_stream_whose_head_the_client_gave_up_is_found_if_the_server_answers_else(*, head_comes: bool) -> None:
    traffic = Traffic()
    opened_session(traffic, "s1")
    stream = traffic.get(session="s1")
    if head_comes:
        stream.stream()
    traffic.wait(3_500)
    stream.leave()
    traffic.post(tool_call(7), session="s1").answer(200, result(7))
    assert ("late-head" in traffic.ends().rules) is not head_comes


def test_a_result_that_is_gone_before_the_time_to_live_is_found() -> None:
    made = Dialogue().client(tool_call(1, "render"))
    task = {"taskId": "t", "status": "working", "ttl": 60_000, "pollInterval": 10}
    made.server(result(1, {"task": task})).client(request(2, "tasks/get", {"taskId": "t"}))
    made.server(result(2, task | {"status": "completed"})).client(request(3, "tasks/result", {"taskId": "t"}))
    made.server({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "Task not found"}})
    assert "task-lost" in made.closes().rules


def test_a_result_that_was_fetched_may_be_forgotten() -> None:
    made = Dialogue().client(tool_call(1, "render"))
    task = {"taskId": "t", "status": "working", "ttl": 60_000, "pollInterval": 10}
    made.server(result(1, {"task": task})).client(request(2, "tasks/result", {"taskId": "t"}))
    made.server(result(2, {"content": []})).client(request(3, "tasks/get", {"taskId": "t"}))
    made.server({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "Task not found"}})
    assert "task-lost" not in made.closes().rules
