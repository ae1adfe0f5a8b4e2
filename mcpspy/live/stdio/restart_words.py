"""Messages that mcpspy sends in its own name during a restart, and words for what happened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...platform import signals
from ...transcript.mcp.codes import SUBSCRIPTION_ID
from ...wire.jsonrpc import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

ERROR_CODE: Final = -32000
"""JSON-RPC leaves -32000 to -32099 to implementations."""

NO_SERVER: Final = "mcpspy: no server runs: the last one ended, and was not replaced yet"

_WANTED: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}


def error_answer(id: str, text: str) -> bytes:
    """Return the answer to the request with this id key."""
    message = json.dumps({"code": ERROR_CODE, "message": text}, ensure_ascii=False)
    return f'{{"jsonrpc":"2.0","id":{id},"error":{message}}}'.encode("utf-8", "surrogatepass")


def withdrawn(id: str) -> bytes:
    """Return the notification that a server's request with this id key is cancelled."""
    reason = json.dumps("the server that asked has ended")
    text = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}'
    return text.encode("utf-8", "surrogatepass")


def list_changed(method: str, subscriptions: Iterable[bytes]) -> list[bytes]:
    """Return the notifications that a list has changed: one for each subscription that wants them; without any, a plain one."""
    requests = [request for request in map(parse, subscriptions) if isinstance(request, dict)]
    if not requests:
        return [json.dumps({"jsonrpc": "2.0", "method": method}).encode()]
    wanted = [request for request in requests if _wants(request, _WANTED.get(method, ""))]
    return [
        json.dumps({"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION_ID: request["id"]}}}).encode()
        for request in wanted
    ]


def how_it_ended(code: int | None) -> str:
    """Say how a process ended: `exit 1`, or `SIGKILL` for -9."""
    if code is None:
        return "it closed its output"
    return signals.name(-code) if code < 0 else f"exit {code}"


def _wants(request: dict[str, Any], name: str) -> bool:
    params = request.get("params")
    wanted = params.get("notifications") if isinstance(params, dict) else None
    return isinstance(wanted, dict) and bool(wanted.get(name))
