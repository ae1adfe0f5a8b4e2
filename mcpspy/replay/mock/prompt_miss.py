"""A prompt that the recording has no answer for, told to a client in the words of the API that it asked.

A status that the official clients do not try again. Refuses to decide what matches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .miss import Miss

NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400

CODE: Final = "never_recorded"
"""What OpenAI's errors say in `code`; what else there is to tell is in `mcpspy`, as in the data of MCP's misses."""


class ApiError(NamedTuple):
    """An error of an API: the status, and the body."""

    status: int
    body: bytes


def api_error(miss: Miss, *, is_anthropic: bool) -> ApiError:
    """The error that answers a miss."""
    return error(f"mcpspy mock: {miss.sentence}", miss, is_anthropic=is_anthropic)


def error(text: str, miss: Miss, *, is_anthropic: bool) -> ApiError:
    """The same with other words."""
    status = NOT_FOUND if miss.is_unknown else BAD_REQUEST
    kind = "not_found_error" if miss.is_unknown and is_anthropic else "invalid_request_error"
    if is_anthropic:
        body = {"type": "error", "error": {"type": kind, "message": text}, "mcpspy": miss.data}
    else:
        places = [] if miss.differences is None else [one.path for one in miss.differences.listed]
        told = {"message": text, "type": kind, "param": next(iter(places), None), "code": CODE, "mcpspy": miss.data}
        body = {"error": told}
    return ApiError(status, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))
