"""The server of the live page, without a browser: who is let in, and what each path answers."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import pytest_asyncio
from aiohttp import ClientResponse, ClientTimeout
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import AppRunner
from multidict import CIMultiDictProxy
from pytest_aiohttp.plugin import AiohttpClient
from yarl import URL

from mcpspy.capture.file.reader import read
from mcpspy.capture.store.folder import captures_folder
from mcpspy.cli import transcripts
from mcpspy.cli.web.stored_recordings import StoredRecordings
from mcpspy.live.web import MAX_LOOKS, SHUTDOWN_S, Web
from tests.cli.recording import Recording
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.transcript.llm.traffic import ModelTraffic, completion

pytestmark = pytest.mark.asyncio

TOKEN = "Secret-0"
NOT_YET = "not all checked yet"
SOUND = ROOT / "captures" / "memory.mcpspy"
PATHS = ("events", "row", "search", "diagram", "findings", "numbers", "recordings")


class Server(TestServer):
    """A test server that lets a handler run on when its client leaves, as `mcpspy web` does. Other test servers cancel it."""

    __test__ = False

    async def _make_runner(self, **options: Any) -> AppRunner:
        options["handler_cancellation"] = False
        return AppRunner(self.app, shutdown_timeout=SHUTDOWN_S, **options)


class Answer(NamedTuple):
    """An answer, whole."""

    status: int
    headers: CIMultiDictProxy[str]
    content_type: str
    body: bytes


class News:
    """The stream of events of a recording."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    async def next(self) -> dict[str, Any]:
        """Wait for the next event that is not a comment."""
        async with asyncio.timeout(DEADLINE_S):
            while line := await self._response.content.readline():
                if line.startswith(b"data: "):
                    news: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                    return news
        raise AssertionError("the stream ended")


class Page:
    """A client of the live page of the store, and the streams that it has open."""

    def __init__(self, client: TestClient[Any, Any], streams: AsyncExitStack) -> None:
        self._session = client.session
        self._streams = streams
        self.port = client.port

    def url(self, path: str, base: str = f"/{TOKEN}/") -> URL:
        """Return the URL of a path below the secret one, spelled exactly so."""
        return URL(f"http://127.0.0.1:{self.port}{base}{path}", encoded=True)

    async def ask(self, path: str = "", *, base: str = f"/{TOKEN}/", method: str = "GET", **headers: str) -> Answer:
        """Return the answer to a request; `headers` have `_` for `-`."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, self.url(path, base), headers=fields) as response:
            return Answer(response.status, response.headers, response.content_type, await response.read())

    async def json(self, path: str) -> Any:
        answer = await self.ask(path)
        assert (answer.status, answer.content_type) == (200, "application/json"), answer.body
        return json.loads(answer.body)

    async def news(self, recording: str) -> News:
        """Open the stream of a recording until the test ends."""
        response = await self._session.get(self.url(f"events?recording={recording}"), timeout=ClientTimeout())
        self._streams.callback(response.close)
        assert (response.status, response.content_type) == (200, "text/event-stream")
        return News(response)


@pytest_asyncio.fixture
async def page(aiohttp_client: AiohttpClient, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Page]:
    """The page of the store, served and open."""
    monkeypatch.setattr("mcpspy.live.web.COMMENT_TURNS", 1)  # a stream that nobody listens to ends at once
    listener = socket.create_server(("127.0.0.1", 0))  # the port is in the addresses that are let in
    application = Web(StoredRecordings(), TOKEN, listener.getsockname()[1]).application()
    server = Server(application, socket_factory=lambda *_: listener)
    client: TestClient[Any, Any] = await aiohttp_client(server, timeout=ClientTimeout(total=DEADLINE_S))
    async with AsyncExitStack() as streams:
        yield Page(client, streams)


@pytest.fixture
def recording() -> Recording:
    return Recording().ask(1, "initialize").answer(1).ask(2, name="search", arguments={"q": "天気 \ud800"}).answer(2)


async def test_the_page_is_there_for_who_knows_the_secret_and_comes_from_here(page: Page, recording: Recording) -> None:
    answer = await page.ask()
    assert (answer.status, answer.content_type) == (200, "text/html")
    assert f'"recording":"{recording.id}"' in answer.body.decode()
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert (await page.ask(Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{page.port}")).status == 200
    assert (await page.ask(Host=f"localhost:{page.port}")).status == 200


async def test_everybody_else_finds_nothing(page: Page, recording: Recording) -> None:
    refused = [
        await page.ask(base="/"),
        await page.ask(base="/wrong/"),
        *[await page.ask(path, base="/wrong/") for path in PATHS],
        *[await page.ask(path, Origin="http://evil.example") for path in PATHS],
        await page.ask(base=f"/{TOKEN[:-1]}/"),
        await page.ask(base=f"/{TOKEN.upper()}/"),
        await page.ask(Host=f"evil.example:{page.port}"),
        await page.ask(Host="127.0.0.1"),
        await page.ask(Host=f"127.0.0.1.evil.example:{page.port}"),
        await page.ask(Origin="http://evil.example"),
        await page.ask(Origin="null"),
        await page.ask(Origin=f"https://127.0.0.1:{page.port}"),
        await page.ask(Sec_Fetch_Site="cross-site"),
        await page.ask(Sec_Fetch_Site="same-site"),
        *[await page.ask(method=method) for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")],
        await page.ask("../"),
        await page.ask("page.html"),
    ]
    assert {response.status for response in refused} == {404}
    assert {response.body for response in refused} <= {b"", b"mcpspy: there is nothing here\n", b"mcpspy: Not Found\n"}


async def test_a_recording_is_no_path(page: Page, recording: Recording) -> None:
    names = ["", "no", "../../etc/passwd", "%2e%2e%2fstore", "/etc/passwd", "a%00b", "x" * 4000, recording.path]
    assert {(await page.ask(f"events?recording={name}")).status for name in names} == {404}


async def test_a_recording_is_told_from_its_beginning_and_as_it_grows(page: Page, recording: Recording) -> None:
    news = await page.news(recording.id)
    first = await news.next()
    assert [line[8:11] for line in first["rows"] if line[1]] == [["initialize", "", "ok"], ["tools/call", "search", "ok"]]
    recording.ask(3, name="later")
    (line,) = (await news.next())["rows"]
    assert line[8:11] == ["tools/call", "later", "pending"]
    recording.answer(3)
    (after,) = (await news.next())["rows"]
    assert (after[0], after[10]) == (line[0], "ok")


async def test_no_page_calls_a_session_well_before_its_findings_are_known(page: Page) -> None:
    recording = Recording()
    recording.write(list(read(str(SOUND)))[4:-1])
    news = await page.news(recording.id)
    first = await news.next()
    assert (first["summary"][:2], first["checked"], NOT_YET in first["summary"]) == ("· ", False, True)
    assert "all ok" not in first["summary"]
    assert await page.json(f"findings?look={first['look']}") == []
    known = await news.next()
    assert (known["summary"][:2], known["checked"], NOT_YET in known["summary"]) == ("✓ ", True, False)
    assert "recording" in known["summary"]


async def test_what_came_after_the_findings_is_not_called_well_either(page: Page) -> None:
    begin, sound = list(read(str(SOUND)))[4:-1], Recording()
    sound.write(begin)
    news = await page.news(sound.id)
    look = (await news.next())["look"]
    await page.json(f"findings?look={look}")
    assert (await news.next())["summary"].startswith("✓ ")
    sound.line(1, b"Listening on stdio\n")
    later = await news.next()
    assert (later["summary"][:2], later["checked"]) == ("· ", False)
    assert [finding["rule"] for finding in await page.json(f"findings?look={look}")] == ["stdout-noise"]
    assert (await news.next())["summary"].startswith("✗ ")


@pytest.mark.parametrize("has_index", [False, True])
async def test_a_page_says_in_the_end_what_show_says(page: Page, monkeypatch: pytest.MonkeyPatch, *, has_index: bool) -> None:
    monkeypatch.setattr(transcripts, "LARGE_BYTES", 1)
    monkeypatch.setenv("SPY_LARGE_BYTES", "1")
    Recording().close()  # makes the store
    for name in ("everything", "question", "streamable"):
        (Path(captures_folder()) / f"{name}.mcpspy").write_bytes((ROOT / "captures" / f"{name}.mcpspy").read_bytes())
        if has_index:
            run("show", name)
    for listed in await page.json("recordings"):
        news = await page.news(listed["recording"])
        first = await news.next()
        assert first["checked"] or not first["summary"].startswith("✓")
        await page.json(f"findings?look={first['look']}")
        last = first if first["checked"] else await news.next()
        shown = run("show", f"@{listed['recording']}").stdout.splitlines()[0]
        assert last["summary"] == shown


async def test_what_joins_a_recording_later_is_told_too(page: Page, recording: Recording) -> None:
    news = await page.news(recording.id)
    await news.next()
    Recording("files").ask(1, "initialize").answer(1)
    assert {line[7] for line in (await news.next())["rows"]} == {"files"}


async def test_what_is_damaged_is_told_and_what_follows_it_too(page: Page, recording: Recording) -> None:
    news = await page.news(recording.id)
    await news.next()
    with open(recording.path, "ab") as file:
        file.write(b'{"torn\n\xff\xfe\n')
    recording.ask(3, name="after")
    words: list[str] = []
    while "after" not in words:
        words += [word for line in (await news.next())["rows"] for word in line[8:10]]
    assert "damage" in words


async def test_what_has_no_header_is_no_recording_and_hinders_none(page: Page, recording: Recording) -> None:
    folder = Path(recording.path).parent
    for number, data in enumerate((b"", b"garbage\n", b'{"mcpspy":99,"reads":99}\n', Path(recording.path).read_bytes()[:40])):
        (folder / f"broken-{number}.mcpspy").write_bytes(data)
    (folder / "folder.mcpspy").mkdir()
    assert [row["recording"] for row in await page.json("recordings")] == [recording.id]
    news = await page.news(recording.id)
    assert (await news.next())["rows"]


async def test_a_capture_that_is_removed_stays_as_far_as_it_was_read(page: Page, recording: Recording) -> None:
    name = recording.id
    news = await page.news(name)
    look = (await news.next())["look"]
    Path(recording.path).unlink()
    assert "incomplete" in (await news.next())["summary"]
    assert (await page.json(f"row?look={look}&row=2"))["messages"]
    assert await page.json("recordings") == []
    assert (await page.ask(f"events?recording={name}")).status == 404


async def test_rows_texts_and_all_together_are_asked_of_the_stream_s_own_reading(page: Page, recording: Recording) -> None:
    news = await page.news(recording.id)
    look = (await news.next())["look"]
    row = await page.json(f"row?look={look}&row=2")
    assert json.loads(row["messages"][0]["text"])["params"]["arguments"] == {"q": "天気 \ud800"}
    assert await page.json(f"search?look={look}&q={quote('天気')}") == [2]
    assert await page.json(f"search?look={look}&q=SEARCH") == [2]
    assert (await page.json(f"diagram?look={look}"))["lanes"] == ["claude", "weather"]
    assert {finding["severity"] for finding in await page.json(f"findings?look={look}")} <= {"error", "warning", "note"}
    assert "tools/call" in await page.json(f"numbers?look={look}")


async def test_model_calls_are_told_and_searched_in_prompts_and_answers(page: Page) -> None:
    traffic = ModelTraffic()
    traffic.ask("user: 天気は?").answer(200, completion("sunny"))
    tapped = {"transport": "http", "url": "http://127.0.0.1:3001/v1", "leg": "model"}
    recording = Recording("gpt", tapped=tapped)
    recording.write(traffic.records[1:])
    Recording("weather").ask(1, "initialize").answer(1)
    news = await page.news((await page.json("recordings"))[0]["recording"])
    first = await news.next()
    (line,) = (line for line in first["rows"] if line[2] == "model call")
    assert line[7:11] == ["gpt", "chat.completions", "m", "ok"]
    look, number = first["look"], line[1]
    row = await page.json(f"row?look={look}&row={number}")
    assert any("sunny" in line for line in row["description"])
    assert [message["kind"] for message in row["messages"]] == ["prompt", "answer"]
    assert await page.json(f"search?look={look}&q={quote('天気')}") == [number]
    assert await page.json(f"search?look={look}&q=SUNNY") == [number]


async def test_rows_that_are_not_there_are_not_found(page: Page, recording: Recording) -> None:
    news = await page.news(recording.id)
    look = (await news.next())["look"]
    statuses = {"99": 404, "0": 404, "-1": 400, "x": 400, "": 400, "9" * 40: 400, "%D9%A1": 400}
    assert {row: (await page.ask(f"row?look={look}&row={row}")).status for row in statuses} == statuses
    assert (await page.ask("row?look=99&row=2")).status == 404


async def test_so_many_may_look_at_once_and_no_more(page: Page, recording: Recording) -> None:
    for _ in range(MAX_LOOKS):
        await (await page.news(recording.id)).next()
    assert (await page.ask(f"events?recording={recording.id}")).status == 503


async def test_an_empty_store_has_a_page(page: Page) -> None:
    assert (await page.ask()).status == 200
    assert await page.json("recordings") == []
