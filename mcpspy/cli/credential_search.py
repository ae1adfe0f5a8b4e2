"""The search for credentials that `transcript` is told to use: what finds them is imported when the first payload is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sharing.finder import SecretFinder
    from ..sharing.patterns import SecretSpan
    from ..transcript.findings.rule import Finding

_words = lazy_pattern(r"(?<![A-Za-z0-9])[A-Za-z0-9][\w.-]{7,}")
_quoted = lazy_pattern(r"(?<=“)[^“”]+|[a-z]+://[^\s“”]+")
"""Captured text in a sentence: in quotes, or an address."""

_SHOWN = 3
_TELLING = 8
"""So many letters of a credential are never shown."""


class CredentialSearch:
    """A search for credentials in the texts of one transcript. It remembers them, so that no finding quotes one."""

    __slots__ = ("_beginnings", "_finder")

    def __init__(self) -> None:
        self._beginnings: set[str] = set()
        self._finder: SecretFinder | None = None

    def __call__(self, data: bytes) -> Sequence[SecretSpan]:
        """Return the credentials in a text."""
        from ..sharing.credentials import shown_credentials

        spans = shown_credentials(data)
        for span in spans:
            if span.kind == "token":
                self._beginnings.add(span.value[:_TELLING].decode("latin-1"))
        return spans

    def may_show(self, texts: Sequence[bytes]) -> bool:
        """Return whether any of these texts may show a credential."""
        from ..sharing.credentials import may_show

        return may_show(texts)

    def masked(self, findings: list[Finding]) -> list[Finding]:
        """Put `…` for what a share would mask in sentences of findings, and for credentials that are cut off."""
        from ..transcript.findings.rule import worded

        return [worded(finding, *map(self._without, (finding.what, finding.blame, finding.advice))) for finding in findings]

    def _without(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        self(data)
        text = _words.sub(lambda word: word[0][:_SHOWN] + "…" if word[0][:_TELLING] in self._beginnings else word[0], text)
        return _quoted.sub(lambda quoted: self._without_secrets(quoted[0]), text)

    def _without_secrets(self, text: str) -> str:
        """Put `…` for the secrets in a captured text that a sentence quotes."""
        from ..sharing.patterns import is_plain

        data = text.encode("utf-8", "surrogatepass")
        if is_plain(data):
            return text
        from ..wire.edits import apply_edits

        return apply_edits(data, self._secrets().text_edits(data)).decode("utf-8", "surrogatepass")

    def _secrets(self) -> SecretFinder:
        if self._finder is None:
            from ..sharing.finder import FinderOptions, SecretFinder
            from ..sharing.known import KnownValues

            known = KnownValues(_hidden)
            known.close()
            self._finder = SecretFinder(FinderOptions(pseudonym=_hidden, spares_pseudonyms=True), known)
        return self._finder


def _hidden(_value: bytes) -> bytes:
    return "…".encode()
