"""An upstream that speaks TLS, with a certificate of its own authority."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from tests.deadlines import DEADLINE_S
from tests.live.http.ends import Proxy, Upstream, Wire


class SecureUpstream(Upstream):
    """An upstream with TLS. `accept` shakes hands too; `ca` is a file with the certificate of its authority."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.url = f"https://localhost:{self.port}/mcp"
        authority = trustme.CA()
        self.ca = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(self._context)

    def accept(self) -> Wire:
        connection, _ = self.listener.accept()
        connection.settimeout(DEADLINE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # an answer is to be on its way before we close
        self._wires.append(Wire(self._context.wrap_socket(connection, server_side=True)))
        return self._wires[-1]


@contextmanager
def securely_between(folder: Path, *options: str) -> Iterator[tuple[SecureUpstream, Proxy]]:
    """Run an upstream with TLS and a tap in front of it, which must print nothing on stderr."""
    upstream = SecureUpstream(folder)
    try:
        proxy = Proxy(upstream.url, folder / "x.mcpspy", "--redact", "none", "--ca", str(upstream.ca), *options)
        try:
            yield upstream, proxy
            assert proxy.stop() == ""
        finally:
            proxy.end()
    finally:
        upstream.end()
