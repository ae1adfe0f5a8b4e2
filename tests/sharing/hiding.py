"""Helpers of the tests of sharing: readable pseudonyms, secrets, and a search for secrets in any spelling."""

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
from mcpspy.sharing.patterns import PSEUDONYM
from mcpspy.sharing.share import Sharing

KEY = b"of the tests"


def pseudonym(value: bytes) -> bytes:
    """Make a pseudonym that looks like those of mcpspy."""
    return value if PSEUDONYM.fullmatch(value) else b"redacted-" + blake2b(value, key=KEY, digest_size=6).hexdigest().encode()


def finder(*known: bytes, **wanted: object) -> SecretFinder:
    """Make a finder that knows these values, and has ended learning."""
    values = KnownValues(pseudonym)
    for value in known:
        values.add(value, telling=True)
    made = SecretFinder(FinderOptions(pseudonym=pseudonym, **wanted), values)  # type: ignore[arg-type]  # whatever the test wants
    made.end_learning()
    return made


def shared(records: Iterable[Record], *known: bytes, **wanted: object) -> list[Record]:
    """Share records, in two passes. They are copied first, by way of the file format."""
    values = KnownValues(pseudonym)
    for value in known:
        values.add(value, telling=True)
    made = SecretFinder(FinderOptions(pseudonym=pseudonym, **wanted), values)  # type: ignore[arg-type]
    made.learns = True
    kept = list(records)
    _pass(made, kept)
    made.end_learning()
    return _pass(made, kept)


def _pass(made: SecretFinder, records: list[Record]) -> list[Record]:
    sharing = Sharing(made, pseudonym)
    passed: list[Record] = []
    for record in records:
        passed += sharing.feed(deepcopy(record))
    return [*passed, *sharing.close()]


def lines(records: Iterable[Record]) -> bytes:
    """Write records as a capture has them."""
    return b"".join(
        header_line(record) if isinstance(record, Header) else record_line(at, record) for at, record in enumerate(records)
    )


def spellings(secret: str) -> set[bytes]:
    """Spell a secret in all ways: plain, in JSON, in JSON in JSON, percent-encoded, in base64."""
    data = secret.encode()
    inner = json.dumps(secret)[1:-1]
    spelled = {data, inner.encode(), json.dumps(inner)[1:-1].encode(), quote(secret, safe="").encode(), quote(secret).encode()}
    spelled.add("".join(f"\\u{ord(letter):04x}" for letter in secret).encode())
    for shift in range(3):  # in the middle of a longer text
        whole = b64encode(b"x" * shift + data + b"xx").rstrip(b"=")
        spelled.add(whole[(0, 2, 3)[shift] : len(whole) - 4])
    return spelled


def held(data: bytes, secrets: Iterable[str]) -> list[str]:
    """List the secrets that these bytes hold in any spelling."""
    return [secret for secret in secrets if any(spelling in data for spelling in spellings(secret))]


def marked(data: bytes) -> bytes:
    """Put `R` for each pseudonym."""
    return re.sub(rb"redacted-[0-9a-f]{12}", b"R", data)
