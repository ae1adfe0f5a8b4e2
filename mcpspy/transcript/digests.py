"""Short digests of values, equal in every process. BLAKE2b comes from where `hashlib` has it, whose own import takes 4 ms."""

import json
from typing import Any, Final

import msgspec

try:
    from _blake2 import blake2b
except ImportError:  # a Python that has it elsewhere
    from hashlib import blake2b

_DIGEST_BYTES: Final = 8


def digest(*values: object) -> bytes:
    """Return a digest of values of those types that MessagePack knows, and of structs."""
    try:
        spelled = msgspec.msgpack.encode(values)
    except UnicodeEncodeError:  # half of a surrogate pair
        spelled = repr(values).encode("ascii", "backslashreplace")
    return blake2b(spelled, digest_size=_DIGEST_BYTES).digest()


def json_digest(value: Any) -> bytes | None:
    """Return a digest of a JSON value, whatever the order of its members; None if it is nested too deep, or has too long a number."""
    try:
        return digest(json.dumps(value, sort_keys=True))
    except (ValueError, TypeError, RecursionError):
        return None
