"""The server of `mcpspy web`: the page of a recording in the browser, updated live. The caller reads the recordings.

Every path begins with a secret token, and only our own page may call. GET is the only method.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hmac import compare_digest
from itertools import count
from typing import Any, Final, Protocol

from aiohttp import web

from .local_request import is_local

LOOK_S: Final = 0.05
"""Time between two reads of an open page's recording. Costs 12 ms of processor time a second for each visible page."""

SHUTDOWN_S: Final = 0.5

MAX_DIGITS: Final = 12

MAX_LOOKS: Final = 32
"""Most pages that may be open at once: each reads its recording separately, which takes memory in proportion to its size."""

COMMENT_TURNS: Final = 20
"""After how many reads without news a comment is sent, which shows that the stream is alive and finds out whether the page is."""

_SAFE: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class OpenRecording(Protocol):
    """A recording that a page shows. Its methods may block: they are called in a thread, one at a time."""

    def take(self) -> dict[str, Any] | None:
        """Return what is new since the last call; None if nothing is."""

    def row(self, number: int) -> dict[str, Any] | None:
        """Return the content of the row with this number; None if there is no such row."""

    def search(self, text: str) -> list[int]:
        """Return the numbers of the rows that have a text in a payload."""

    def filter(self, expression: str) -> list[int]:
        """Return the indexes of the rows that a filter lets through; none if it cannot be read."""

    def part(self, name: str) -> Any:
        """Return a view of all rows: the `diagram`, `findings` or `numbers`."""

    def close(self) -> None:
        """Close the recording: the page has gone."""


class Recordings(Protocol):
    """All recordings of the store."""

    def listed(self) -> list[dict[str, Any]]:
        """Return the recordings, newest first."""

    def page(self, recording: str) -> str:
        """Return the page of a recording; of the newest if the name is empty. The name may be of no recording."""

    def open(self, recording: str) -> OpenRecording | None:
        """Open a recording by its name, from its beginning; None if there is none."""


class Web:
    """A server of `recordings` below `/token/` at `port` of the loopback address."""

    def __init__(self, recordings: Recordings, token: str, port: int) -> None:
        self._recordings = recordings
        self._token = token
        self._port = port
        self._looks: dict[str, tuple[OpenRecording, asyncio.Lock]] = {}
        """The open recording of each stream of events, by the name that the stream's first event gives."""
        self._names = count(1)

    def application(self) -> web.Application:
        """Return the application with all its routes."""
        application = web.Application(middlewares=[self._guard])
        for path, answer in {
            "": self._page,
            "events": self._events,
            "row": self._row,
            "search": self._search,
            "filter": self._filter,
            "diagram": self._part,
            "findings": self._part,
            "numbers": self._part,
            "recordings": self._listed,
        }.items():
            application.router.add_get(f"/{{token}}/{path}", answer, allow_head=False)
        return application

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Let in requests of our own page that have the secret; all others get a 404."""
        if not self._is_allowed(request):
            return web.Response(status=404, text="mcpspy: there is nothing here\n", headers=_SAFE)
        try:
            return await handler(request)
        except web.HTTPException as refused:
            return web.Response(status=refused.status, text=f"mcpspy: {refused.reason}\n", headers=_SAFE)

    def _is_allowed(self, request: web.Request) -> bool:
        token = request.match_info.get("token", "")
        headers = {name.lower(): value for name, value in request.headers.items()}
        return (
            is_local(headers, self._port) and request.method == "GET" and compare_digest(token.encode(), self._token.encode())
        )

    async def _page(self, request: web.Request) -> web.Response:
        text = await asyncio.to_thread(self._recordings.page, request.query.get("recording", ""))
        return web.Response(text=text, content_type="text/html", headers=_SAFE)

    async def _listed(self, _: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(self._recordings.listed))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Stream the news of a recording as long as the page listens, from the beginning on each connection."""
        if len(self._looks) >= MAX_LOOKS:
            raise web.HTTPServiceUnavailable
        recording = await asyncio.to_thread(self._recordings.open, request.query.get("recording", ""))
        if recording is None:
            raise web.HTTPNotFound
        name, lock = str(next(self._names)), asyncio.Lock()
        self._looks[name] = recording, lock
        try:
            response = web.StreamResponse(headers={**_SAFE, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the page was closed
                await self._send_news(response, name)
        finally:
            del self._looks[name]
            async with lock:
                await asyncio.to_thread(recording.close)
        return response

    async def _send_news(self, response: web.StreamResponse, name: str) -> None:
        recording, lock = self._looks[name]
        first: dict[str, Any] | None = {"look": name, "rows": [], "progress": {}}
        for turn in count(1):
            async with lock:
                news = await asyncio.to_thread(recording.take)
            if news or first:
                await response.write(b"data: " + _compact({**(first or {}), **(news or {})}) + b"\n\n")
                first = None
            elif turn % COMMENT_TURNS == 0:
                await response.write(b": alive\n\n")
            await asyncio.sleep(LOOK_S)

    async def _row(self, request: web.Request) -> web.Response:
        number = request.query.get("row", "")
        if not number.isascii() or not number.isdecimal() or len(number) > MAX_DIGITS:
            raise web.HTTPBadRequest
        row = await self._call(request, lambda recording: recording.row(int(number)))
        if row is None:
            raise web.HTTPNotFound
        return _json(row)

    async def _search(self, request: web.Request) -> web.Response:
        return _json(await self._call(request, lambda recording: recording.search(request.query.get("q", ""))))

    async def _filter(self, request: web.Request) -> web.Response:
        return _json(await self._call(request, lambda recording: recording.filter(request.query.get("q", ""))))

    async def _part(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        return _json(await self._call(request, lambda recording: recording.part(name)))

    async def _call(self, request: web.Request, method: Callable[[OpenRecording], Any]) -> Any:
        """Call a method of the recording that the page's stream has open. Raises: web.HTTPNotFound: if the stream is over."""
        look = self._looks.get(request.query.get("look", ""))
        if look is None:
            raise web.HTTPNotFound
        recording, lock = look
        async with lock:
            return await asyncio.to_thread(method, recording)


def serve(recordings: Recordings, token: str, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    application = Web(recordings, token, listener.getsockname()[1]).application()
    web.run_app(application, sock=listener, print=None, access_log=None, shutdown_timeout=SHUTDOWN_S)


def _json(value: Any) -> web.Response:
    return web.Response(body=_compact(value), content_type="application/json", headers=_SAFE)


def _compact(value: Any) -> bytes:
    """Write a value as JSON on one line. Lone surrogates are escaped, because no encoding takes them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
