"""Random words in a text: those with too much entropy to be language, and no name that makes them an id or a digest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final

from .encodings import runs
from .patterns import PSEUDONYM, SecretSpan

SHORTEST: Final = 20
LONGEST: Final = 512
"""Longer runs are data: an image, an archive."""

MIN_BITS: Final = 3.4
"""Entropy (Shannon) per letter; 20 random letters and digits have 4.0 and seldom less than 3.6, words about 3."""

MIN_CHANGES: Final = 0.3
"""Changes between capitals, small letters and digits, per letter: 0.6 in random words, 0.2 in names of programs."""

_runs = re.compile(rb"[A-Za-z0-9_+/-]{%d,}={0,2}" % SHORTEST).finditer
_words = re.compile(rb"[A-Za-z0-9_+-]{%d,}={0,2}" % SHORTEST).finditer
_turns = re.compile(rb"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_hex = re.compile(rb"[0-9a-f]{20,}|[0-9A-F]{20,}").fullmatch
_uuid = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_MIN_HEX_BITS: Final = 2.8

_is_id = re.compile(
    rb"(?i)(?:ids?|uuid|guid|hash|digest|sha|sha\d+|md5|etag|checksum|commit|revision|rev|cursor|tree|parent|integrity|nonce"
    rb"|traceparent|tracestate|blob|data|progresstoken|event-?id|uri|url)$"
).search
"""Names whose values may be random, and give access to nothing."""

_named = re.compile(
    rb"(?i)\b(?:id|uuid|hash|digest|sha\d*|md5|etag|checksum|commit|revision|tree|parent|index|merge|traceparent)\b\W{0,4}(?:W/.)?$"
).search
_BEFORE: Final = 24


def random_spans(data: bytes, name: bytes) -> Iterator[SecretSpan]:
    """Yield the words of `data` that look random; `name` is that of the member whose value it is.

    Pseudonyms are left out, and so are ids and digests that a name announces, in the text before them or of the member.
    """
    if _is_id(name) is not None:
        return
    for run in _runs(data):
        if run.end() - run.start() > LONGEST:
            continue
        if any(PSEUDONYM.search(base64.text) for base64 in runs(run[0])):
            continue
        for match in _words(data[run.start() : run.end()]):
            start = run.start() + match.start()
            bare = match[0].rstrip(b"=")
            if _is_random(bare) and not PSEUDONYM.search(bare) and not _named(data[max(start - _BEFORE, 0) : start]):
                yield SecretSpan(start, start + len(match[0]), "entropy", match[0])


def bits(word: bytes) -> float:
    """Return the entropy of a word's letters, in bits per letter."""
    return -sum(count / len(word) * log2(count / len(word)) for count in Counter(word).values())


def _is_random(word: bytes) -> bool:
    """Tell whether a word looks random: an id in hex, or a mixture of letters and digits."""
    if _uuid(word) or _hex(word):
        return bits(word) >= _MIN_HEX_BITS
    return bits(word) >= MIN_BITS and sum(1 for _ in _turns.finditer(word)) / len(word) >= MIN_CHANGES
