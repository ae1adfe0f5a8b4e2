"""The code of an error, read from its bytes without parsing the rest."""

from typing import Final

import msgspec

from ...wire.json_spans import UNREADABLE


class _ErrorCode(msgspec.Struct, gc=False):
    code: msgspec.Raw
    message: str


class _ErrorResponse(msgspec.Struct, gc=False):
    error: _ErrorCode


_decode: Final = msgspec.json.Decoder(_ErrorResponse).decode
_LONGEST: Final = 8


def plain_error_code(raw: bytes) -> int | None:
    """Return the code of an error whose message is a string; None if the code is missing, or no integer of at most 8 digits."""
    try:
        digits = bytes(_decode(raw).error.code)
        return int(digits) if len(digits) <= _LONGEST else None
    except (*UNREADABLE, ValueError):
        return None
