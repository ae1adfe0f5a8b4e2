"""Masks of captured text in columns: credentials by their form everywhere, and in payloads all that `export share` replaces."""

from ...sharing.credentials import may_show, shown_credentials
from ...sharing.patterns import SecretSpan
from ..share.copy import Copier, Original, copier_of

_SHOWN = 3
"""So many letters of a credential stay: those of its kind, such as `ghp`."""


class CredentialMask:
    """A mask of credentials that can be told by their form: tokens of well-known services, private keys."""

    def texts(self, texts: list[str | None]) -> list[str | None]:
        """Mask the texts of a column."""
        data = [text.encode("utf-8", "surrogatepass") for text in set(texts) if text]
        if not may_show(data):
            return texts
        return [text if text is None else _masked(text) for text in texts]

    def payload(self, payload: bytes) -> str:
        """Return a payload as text."""
        return payload.decode("utf-8", "replace")


class ShareMask(CredentialMask):
    """A mask of captures, which are read for what `export share` would replace in them. Raises: CaptureError; OSError."""

    def __init__(self, *paths: str) -> None:
        self._copier: Copier = copier_of(personal=False, same_key=True)
        for path in paths:
            with open(path, "rb") as file:
                self._copier.learn(Original(file, path))
        self._copier.learned()

    def texts(self, texts: list[str | None]) -> list[str | None]:
        """Mask the texts of a column."""
        known: dict[str | None, str | None] = {None: None}
        for text in set(texts):
            if text is not None:
                known[text] = self._copier.masked(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        return [known[text] for text in texts]

    def payload(self, payload: bytes) -> str:
        """Return a payload without secrets."""
        return self._copier.masked(payload).decode("utf-8", "replace")


def _masked(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    spans = sorted(shown_credentials(data), key=lambda span: span.start)
    pieces, done = [], 0
    for span in spans:
        pieces += [data[done : span.start], _beginning(span), "…".encode()]
        done = max(done, span.end)
    return b"".join([*pieces, data[done:]]).decode("utf-8", "replace")


def _beginning(span: SecretSpan) -> bytes:
    return span.value[:_SHOWN]
