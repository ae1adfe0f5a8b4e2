"""A collector that is a process of its own, to be killed: it writes each body that it takes to a file, and then answers.

Its arguments are a port and a folder.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path


def main(port: int, folder: Path) -> None:
    """Take what comes until somebody ends us. The port is written to a file; bodies of an earlier collector stay."""
    numbers = count(len(list(folder.glob("*.body"))))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            name = f"{next(numbers):06}-{self.path.rpartition('/')[2]}"
            (folder / f"{name}.part").write_bytes(body)
            os.replace(folder / f"{name}.part", folder / f"{name}.body")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        (folder / "port.part").write_text(str(server.server_address[1]))
        os.replace(folder / "port.part", folder / "port")
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
