"""Messages that are seen to be as specified without the official types: importing the package `mcp-types` takes 0.4 s."""

from functools import cache
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Decoder

from ...records import Side
from .revisions import Era


def is_plain(era: Era, sender: Side, method: str, member: str, content: bytes) -> bool:
    """Return whether `params` or `result` of a message fits the type that usual ones have; `null` is an absent one."""
    decoder = _decoder(era, sender, member, method)
    if decoder is None:
        return False
    try:
        decoder.decode(content)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


@cache
def _decoder(era: Era, sender: Side, member: str, method: str) -> Any:
    """Make the decoder of a kind of message, once; None if it has no type."""
    if era is Era.MODERN:
        from .plain_modern_types import TYPES  # the types of an era take 2 ms to make
    else:
        from .plain_types import TYPES
    wanted = TYPES.get((sender, member), {}).get(method)
    return None if wanted is None else Decoder(wanted)
