"""`mcpspy proxy --model`: where programs that talk to a model's API have to be pointed, so that they come through the tap.

Refuses to set anything: it says which variables do.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ...live.http.listener import after_origin

ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages")
"""What stands behind the base of an API: a URL that ends so was copied from a request."""

VERSION = "/v1"
"""OpenAI's base URL ends in it, and Anthropic's client adds it by itself."""


def base_url(url: str) -> str:
    """The base URL of an API, from a URL of it or of a place below. It ends without a slash."""
    base = url.partition("#")[0].partition("?")[0].rstrip("/")
    return next((base.removesuffix(end) for end in ENDPOINTS if base.endswith(end)), base)


def variables(own_origin: str, url: str) -> list[str]:
    """What to set for the clients of the API with the base `url`, `NAME=value` each, now that it is reached at `own_origin`.

    Of an API whose host or path says that it is Anthropic's, or OpenAI's, only what its own clients read.
    """
    base = after_origin(url)
    root = base.removesuffix(VERSION)
    host, named = urlsplit(url).hostname or "", url.lower()
    lines = []
    if "anthropic" not in named:
        lines.append(f"OPENAI_BASE_URL={own_origin}{base or VERSION}")
    if "openai" not in named or "anthropic" in host:
        lines.append(f"ANTHROPIC_BASE_URL={own_origin}{root}")
    return lines
