"""The search for credentials that `transcript` is told to use: what finds them is imported when the first payload is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sharing.patterns import SecretSpan
    from ..transcript.findings.rule import Finding

_words = lazy_pattern(r"(?<![A-Za-z0-9])[A-Za-z0-9][\w.-]{7,}")
_SHOWN = 3
_TELLING = 8
"""So many letters of a credential are never shown."""


class CredentialSearch:
    """A search for credentials in the texts of one transcript. It remembers them, so that no finding quotes one."""

    __slots__ = ("_beginnings",)

    def __init__(self) -> None:
        self._beginnings: set[str] = set()

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
        """Put `…` for the credentials in sentences of findings, also for those that are cut off."""
        from ..transcript.findings.rule import worded

        return [worded(finding, self._without(finding.what), self._without(finding.blame)) for finding in findings]

    def _without(self, text: str) -> str:
        self(text.encode("utf-8", "surrogatepass"))
        return _words.sub(lambda word: word[0][:_SHOWN] + "…" if word[0][:_TELLING] in self._beginnings else word[0], text)
