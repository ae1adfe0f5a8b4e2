"""A reverse proxy before an MCP server over HTTP, which is correct but for the faults that its command line names.

    reverseproxy.py PORT UPSTREAM_URL [FAULT[=VALUE]]…

    login           it answers calls of tools with 302 and the URL of a login page
    drops=NAME      it does not pass this field of requests on
    gathers         it passes responses on when they are whole
    cuts=MS         it breaks off streams of GET that were silent for so long
    tires=MS        it breaks off answers to calls of tools that were silent for so long
    holds=MS        it passes the answers to calls of tools on so much later
    refuses=STATUS  it answers calls of tools with this status and a page of its own
    swallows        it passes calls of tools on, and leaves their answers out
    rounds          it reads numbers of requests as doubles, and writes them as integers again
    doubles         it sends calls of tools twice, and passes the second answer on
    caches          it answers calls of tools with the first answer that it got
    mutes           it leaves progress out
    merges          all its clients share one session of the server, and their ids are passed on as they are

On PORT 0 a free port is taken; either way it is the first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import sys
from typing import Final

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, web

PORT, UPSTREAM = int(sys.argv[1]), sys.argv[2]
FAULTS: Final = dict(word.partition("=")[::2] for word in sys.argv[3:])
SESSION: Final = "Mcp-Session-Id"
OF_ONE_HOP: Final = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "content-encoding",
    "date",
    "server",
}


class ReverseProxy:
    """The requests of all clients, and the session that they share with the fault `merges`."""

    def __init__(self, session: ClientSession) -> None:
        self.upstream = session
        self.shared = ""
        self.cached: tuple[bytes, bytes, dict[str, str]] | None = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on, and its response back."""
        body = await request.read()
        is_call = b'"tools/call"' in body
        if is_call and "rounds" in FAULTS:
            body = json.dumps(json.loads(body, parse_int=lambda digits: int(float(digits)))).encode()
        if is_call and "login" in FAULTS:
            return web.Response(status=302, headers={"Location": "https://login.example/oauth?next=/mcp"})
        if is_call and "refuses" in FAULTS:
            return web.Response(status=int(FAULTS["refuses"]), text="<html><h1>No</h1></html>", content_type="text/html")
        dropped = {*OF_ONE_HOP, FAULTS.get("drops", "").lower()}
        fields = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        if is_call and "doubles" in FAULTS:
            async with self.upstream.request(request.method, UPSTREAM, data=body, headers=fields) as first:
                await first.read()
        if is_call and "caches" in FAULTS:
            return await self.from_cache(request, body, fields)
        if "merges" in FAULTS and self.shared and SESSION in fields:
            fields[SESSION] = self.shared
        try:
            async with self.upstream.request(
                request.method, UPSTREAM, data=body or None, headers=fields, allow_redirects=False
            ) as answer:
                if b'"initialize"' in body:
                    self.shared = self.shared or answer.headers.get(SESSION, "")
                return await self.answer(request, answer, is_call=is_call)
        except ClientError:
            return web.Response(status=502, text="<html><h1>Bad Gateway</h1></html>", content_type="text/html")

    async def from_cache(self, request: web.Request, body: bytes, fields: dict[str, str]) -> web.Response:
        """Give the first answer that came, under the id of this request."""
        id = b'"id": %d' % json.loads(body)["id"]
        if self.cached is None:
            async with self.upstream.request(request.method, UPSTREAM, data=body, headers=fields) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in OF_ONE_HOP}
                self.cached = id, await answer.read(), kept
        old, text, kept = self.cached
        return web.Response(headers=kept, body=text.replace(old, id))

    async def answer(self, request: web.Request, answer: ClientResponse, *, is_call: bool) -> web.StreamResponse:
        """Pass a response back, piece by piece."""
        fields = {name: value for name, value in answer.headers.items() if name.lower() not in OF_ONE_HOP}
        if is_call and "holds" in FAULTS:
            await asyncio.sleep(int(FAULTS["holds"]) / 1000)
        if is_call and "swallows" in FAULTS:
            await answer.read()
            await asyncio.Event().wait()
        if "gathers" in FAULTS or answer.content_type != "text/event-stream":
            return web.Response(status=answer.status, headers=fields, body=await answer.read())
        response = web.StreamResponse(status=answer.status, headers=fields)
        await response.prepare(request)
        limit = FAULTS.get("tires") if is_call else FAULTS.get("cuts") if request.method == "GET" else None
        patience_s = None if limit is None else int(limit) / 1000
        try:
            while data := await asyncio.wait_for(self.piece(answer), patience_s):
                await response.write(data)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response

    async def piece(self, answer: ClientResponse) -> bytes:
        """Give what came next on a stream; without progress, event by event."""
        if "mutes" not in FAULTS:
            return await answer.content.readany()
        while event := await answer.content.readuntil(b"\n\n"):
            if b"notifications/progress" not in event:
                return event
        return b""


async def main() -> None:
    """Serve on the loopback, and print the port first."""
    async with ClientSession(timeout=ClientTimeout(total=None), auto_decompress=False) as session:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", ReverseProxy(session).serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", PORT)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
