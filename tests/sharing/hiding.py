"""What tests of sharing share: pseudonyms that can be told by eye, secrets, and whether bytes hold one in any spelling."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from copy import deepcopy
from hashlib import blake2b
from urllib.parse import quote

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.records import Header, Record
from mcpspy.sharing.finder import FinderOptions, SecretFinder
from mcpspy.sharing.known import KnownValues
from mcpspy.sharing.patterns import STAND_IN
from mcpspy.sharing.share import Sharing

KEY = b"of the tests"


def stand_in(value: bytes) -> bytes:
    """A pseudonym as those of mcpspy are."""
    return value if STAND_IN.fullmatch(value) else b"redacted-" + blake2b(value, key=KEY, digest_size=6).hexdigest().encode()


def finder(*known: bytes, **wanted: object) -> SecretFinder:
    """A finder that knows these values, and has learned all it will."""
    values = KnownValues(stand_in)
    for value in known:
        values.add(value, telling=True)
    made = SecretFinder(FinderOptions(stand_in=stand_in, **wanted), values)  # type: ignore[arg-type]  # whatever the test wants
    made.learned()
    return made


def shared(records: Iterable[Record], *known: bytes, **wanted: object) -> list[Record]:
    """Records as they can be shared, in two passes. They are copied first, by way of the file format."""
    values = KnownValues(stand_in)
    for value in known:
        values.add(value, telling=True)
    made = SecretFinder(FinderOptions(stand_in=stand_in, **wanted), values)  # type: ignore[arg-type]
    made.learns = True
    kept = list(records)
    _pass(made, kept)
    made.learned()
    return _pass(made, kept)


def _pass(made: SecretFinder, records: list[Record]) -> list[Record]:
    sharing = Sharing(made, stand_in)
    found: list[Record] = []
    for record in records:
        found += sharing.feed(deepcopy(record))
    return [*found, *sharing.close()]


def lines(records: Iterable[Record]) -> bytes:
    """Records as a capture has them."""
    return b"".join(header_line(one) if isinstance(one, Header) else record_line(at, one) for at, one in enumerate(records))


def spellings(secret: str) -> set[bytes]:
    """A secret as it may stand somewhere: plain, in JSON, in JSON in JSON, percent-encoded, in base64."""
    data = secret.encode()
    inner = json.dumps(secret)[1:-1]
    found = {data, inner.encode(), json.dumps(inner)[1:-1].encode(), quote(secret, safe="").encode(), quote(secret).encode()}
    found.add("".join(f"\\u{ord(one):04x}" for one in secret).encode())
    for shift in range(3):  # in the middle of a longer text
        whole = b64encode(b"x" * shift + data + b"xx").rstrip(b"=")
        found.add(whole[(0, 2, 3)[shift] : len(whole) - 4])
    return found


def held(data: bytes, secrets: Iterable[str]) -> list[str]:
    """The secrets that these bytes hold in any spelling."""
    return [secret for secret in secrets if any(spelling in data for spelling in spellings(secret))]


def told(data: bytes) -> bytes:
    """Bytes with `R` for each pseudonym."""
    return re.sub(rb"redacted-[0-9a-f]{12}", b"R", data)
