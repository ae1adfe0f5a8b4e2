"""HTTP sessions for OpenTelemetry's exporters, which note what a collector answered: exporters tell only whether they succeeded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final

import requests

_PROVIDERS: Final = "opentelemetry_otlp_credential_provider"
_PROVIDER: Final = "OTEL_PYTHON_EXPORTER_OTLP_HTTP_{}CREDENTIAL_PROVIDER"


class CollectorSession(requests.Session):
    """A session that trusts the certificates that were named for it: else REQUESTS_CA_BUNDLE would go before."""

    trouble = ""
    """The reason why the last request did not reach anybody, unless nobody was there."""

    def request(self, *words: Any, **facts: Any) -> requests.Response:
        """Send a request, and note why it could not be sent."""
        self.trouble = ""
        try:
            return super().request(*words, **facts)
        except requests.exceptions.SSLError as error:
            self.trouble = _tls_reason(error)
            raise
        except (requests.exceptions.ConnectionError, requests.exceptions.Timeout):
            raise
        except (OSError, ValueError) as error:  # no file of certificates, or a time to wait that is none
            self.trouble = str(error)
            raise

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """Return what a request uses."""
        if verify is None and isinstance(self.verify, str):
            verify = self.verify
        return super().merge_environment_settings(url, proxies, stream, verify, cert)


def _tls_reason(error: BaseException) -> str:
    """Return what TLS says, without the objects around it."""
    match = re.search(r"\[SSL[^\]]*\] (.+?)(?: \(_ssl\.c:\d+\))?[)'\"]", str(error))
    return match[1] if match else "no TLS"


def session_for(signal: str, environment: Mapping[str, str]) -> requests.Session:
    """Return a session for a signal such as `TRACES`: that of the provider of credentials which these variables name, if they do."""
    name = environment.get(_PROVIDER.format("")) or environment.get(_PROVIDER.format(f"{signal}_"))
    provider = next(iter(entry_points(group=_PROVIDERS, name=name)), None) if name else None
    if provider is None:
        return CollectorSession()
    session = provider.load()()
    return session if isinstance(session, requests.Session) else CollectorSession()
