"""`mcpspy web`: the page in the browser, live. Serves what it is given; it reads no capture itself and starts nothing.

Every path begins with a secret, and only a page of ours may ask: Host, Origin and Sec-Fetch are held against our own address, for
a page elsewhere could reach us by a name of its own (DNS rebinding). Refuses all but GET.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from hmac import compare_digest
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import web

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

LOOK_S: Final = 0.05
"""How often a recording that is on a page is read on. Costs 12 ms of processor time a second for each visible page."""

SHUTDOWN_S: Final = 0.5

MAX_DIGITS: Final = 12

MAX_LOOKS: Final = 32
"""So many may look at once: each has its own reading of a recording, which takes memory as that is large."""

COMMENT_TURNS: Final = 20
"""Every so many looks without news a comment says that the stream is alive, and finds out whether anybody still listens."""

_SAFE: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Looking(Protocol):
    """A recording that somebody looks at. Calls may take their time: they are made in a thread, one at a time."""

    def take(self) -> dict[str, Any] | None:
        """What is new since the last time; None if nothing is."""

    def row(self, number: int) -> dict[str, Any] | None:
        """What the row with this number carries; None if there is none."""

    def search(self, text: str) -> list[int]:
        """The numbers of the rows that hold a text in a payload."""

    def part(self, name: str) -> Any:
        """What is shown of all rows together: the `diagram`, `findings` or `numbers`."""

    def close(self) -> None:
        """Nobody looks any more."""


class Recordings(Protocol):
    """What there is to look at."""

    def listed(self) -> list[dict[str, Any]]:
        """The recordings, newest first."""

    def page(self, recording: str) -> str:
        """The page for a recording, or for the newest where the name is empty. It may name one that does not exist."""

    def open(self, recording: str) -> Looking | None:
        """A recording by its name, read from its beginning; None if there is none."""


class Web:
    """Serves `recordings` below `/token/` at `port` of the loopback address."""

    def __init__(self, recordings: Recordings, token: str, port: int) -> None:
        self._recordings = recordings
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._looks: dict[str, tuple[Looking, asyncio.Lock]] = {}
        """What is read for each stream of events while that lasts, by a name that its first event tells."""
        self._names = count(1)

    def application(self) -> web.Application:
        """What a server runs."""
        made = web.Application(middlewares=[self._guard])
        for path, answer in {
            "": self._page,
            "events": self._events,
            "row": self._row,
            "search": self._search,
            "diagram": self._part,
            "findings": self._part,
            "numbers": self._part,
            "recordings": self._listed,
        }.items():
            made.router.add_get(f"/{{token}}/{path}", answer, allow_head=False)
        return made

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Let in who knows the secret and comes from here; everybody else finds nothing."""
        if not self._may(request):
            return web.Response(status=404, text="mcpspy: there is nothing here\n", headers=_SAFE)
        try:
            return await handler(request)
        except web.HTTPException as refused:
            return web.Response(status=refused.status, text=f"mcpspy: {refused.reason}\n", headers=_SAFE)

    def _may(self, request: web.Request) -> bool:
        token = request.match_info.get("token", "")
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_here = host in self._hosts and (origin is None or origin == f"http://{host}") and site in ("none", "same-origin")
        return is_here and request.method == "GET" and compare_digest(token.encode(), self._token.encode())

    async def _page(self, request: web.Request) -> web.Response:
        text = await asyncio.to_thread(self._recordings.page, request.query.get("recording", ""))
        return web.Response(text=text, content_type="text/html", headers=_SAFE)

    async def _listed(self, _: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(self._recordings.listed))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """News of a recording for as long as somebody listens, each connection from the beginning."""
        if len(self._looks) >= MAX_LOOKS:
            raise web.HTTPServiceUnavailable
        looking = await asyncio.to_thread(self._recordings.open, request.query.get("recording", ""))
        if looking is None:
            raise web.HTTPNotFound
        name, lock = str(next(self._names)), asyncio.Lock()
        self._looks[name] = looking, lock
        try:
            response = web.StreamResponse(headers={**_SAFE, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            with suppress(ConnectionResetError):  # whoever looked has closed the page
                await self._tell(response, name)
        finally:
            del self._looks[name]
            async with lock:
                await asyncio.to_thread(looking.close)
        return response

    async def _tell(self, response: web.StreamResponse, name: str) -> None:
        looking, lock = self._looks[name]
        first: dict[str, Any] | None = {"look": name, "rows": [], "progress": {}}
        for turn in count(1):
            async with lock:
                news = await asyncio.to_thread(looking.take)
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
        found = await self._asked(request, lambda looking: looking.row(int(number)))
        if found is None:
            raise web.HTTPNotFound
        return _json(found)

    async def _search(self, request: web.Request) -> web.Response:
        return _json(await self._asked(request, lambda looking: looking.search(request.query.get("q", ""))))

    async def _part(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        return _json(await self._asked(request, lambda looking: looking.part(name)))

    async def _asked(self, request: web.Request, ask: Callable[[Looking], Any]) -> Any:
        """What somebody asks beside their stream, of the same reading. Raises: web.HTTPNotFound: if the stream is over."""
        found = self._looks.get(request.query.get("look", ""))
        if found is None:
            raise web.HTTPNotFound
        looking, lock = found
        async with lock:
            return await asyncio.to_thread(ask, looking)


def serve(recordings: Recordings, token: str, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    application = Web(recordings, token, listener.getsockname()[1]).application()
    web.run_app(application, sock=listener, print=None, access_log=None, shutdown_timeout=SHUTDOWN_S)


def _json(value: Any) -> web.Response:
    return web.Response(body=_compact(value), content_type="application/json", headers=_SAFE)


def _compact(value: Any) -> bytes:
    """As JSON on one line. Lone surrogates are spelled, for no encoding takes them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
