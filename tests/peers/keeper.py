"""An MCP server on the official Python SDK that gets secrets and says them again, everywhere and in every spelling.

    keeper.py [OPTION…] stdio
    keeper.py [OPTION…] http PORT

`login` answers with JSON in a text, a URL, base64 and structured content, and logs its arguments; `whoami` takes a token, and the
resource `vault://door?token=TOKEN` names one. What was given for a password is written to the file that KEEPER_LOG names.
"""

import prepared  # noqa: F401 - saves the imports that follow

import json
import os
import sys
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pyserver  # type: ignore[import-not-found]  # it is in this program's folder
from mcp.server.mcpserver import MCPServer

server = MCPServer("keeper")


@server.tool()
def login(user: str, password: str, note: str, pin: int = 0) -> dict[str, Any]:
    """Log in, and say too much."""
    with open(os.environ["KEEPER_LOG"], "a", encoding="utf-8") as log:
        log.write(password + "\n")
    print(f"login of {user} with password={password} and {json.dumps({'secret': password})}", file=sys.stderr, flush=True)
    print(f"GET https://{user}:{quote(password, safe='')}@host/?api_key={quote(password)}", file=sys.stderr, flush=True)
    token = "tok_" + password[::-1]
    return {
        "access_token": token,
        "said": json.dumps({"password": password, "escaped": json.dumps([token, password])}),
        "link": f"https://host/cb?code={quote(token)}&x=1#{quote(note, safe='')}",
        "basic": b64encode(f"{user}:{password}".encode()).decode(),
        "note": f"{note} and {pin}",
    }


@server.tool()
def whoami(token: str) -> str:
    """Say whose token it is."""
    return f"Authorization: Bearer {token}\r\nhello, {token}"


@server.resource("vault://{place}{?token}")
def vault(place: str, token: str = "") -> str:
    """Read the place that a token opens."""
    return f"behind {place}: {token}"


pyserver.server = server

if __name__ == "__main__":
    at = next(at for at, word in enumerate(sys.argv) if word in ("stdio", "http"))
    pyserver.main(*sys.argv[at:])
