"""A check of the head of an HTTP request: whether it comes from this machine, and from no other site's page.

Such a page could reach a local server under a name of its own (DNS rebinding).
"""

from collections.abc import Mapping
from typing import Final

_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


def is_local(headers: Mapping[str, str], port: int) -> bool:
    """Return whether Host, Origin and Sec-Fetch-Site are those of a program or page of ours at `port`. Names are in lower case."""
    host, origin = headers.get("host", ""), headers.get("origin")
    is_here = host in {f"{name}:{port}" for name in _NAMES} and origin in (None, f"http://{host}")
    return is_here and headers.get("sec-fetch-site", "none") in ("none", "same-origin")
