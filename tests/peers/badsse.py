r"""A hostile HTTP+SSE server: every request is answered with a stream whose `endpoint` event names what the caller asked for.

    badsse.py PORT ENDPOINT

ENDPOINT may hold Python escapes (`\n`, `\u202e`): it goes out as it is, so that it can name another host, break out of
its line, or be no URL at all. The stream then stays open and silent. On PORT 0 a free port is taken; either way it is the
first line on standard output; the request lines that came follow.
"""

import asyncio
import sys

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
SILENCE_S = 60


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: bytes) -> None:
    """Read one request head, send the event, and keep the stream open."""
    head = await reader.readuntil(b"\r\n\r\n")
    print(head.split(b"\r\n")[0], flush=True)
    writer.write(HEAD + b"event: endpoint\ndata: " + endpoint + b"\n\n")
    await writer.drain()
    await asyncio.sleep(SILENCE_S)
    writer.close()


async def main(port: str, endpoint: str) -> None:
    """Serve on the loopback, and print the port first."""
    raw = endpoint.encode("latin-1", "backslashreplace").decode("unicode_escape").encode()
    server = await asyncio.start_server(lambda reader, writer: answer(reader, writer, raw), "127.0.0.1", int(port))
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
