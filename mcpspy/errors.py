"""Every exception that mcpspy raises on purpose.

    McpspyError
    ├── CaptureError    a capture file that cannot be used at all
    ├── ImportFileError a file that cannot be imported
    ├── RepairError     a capture that cannot be repaired, or not into that file
    ├── ShareError      a capture that cannot be shared, or not into that file
    ├── AddressError    a WHAT on the command line that names nothing
    ├── FilterError     a filter that cannot be read, and the column where
    ├── InterceptError  an intercept that cannot be read, and the column where
    ├── PathError       a JSON path that cannot be read, and the column where
    ├── RuleError       a name that means no rule of findings, and the nearest that do
    ├── BaselineError   a file of accepted definitions that cannot be read
    ├── ReplayError     a capture that cannot be played
    ├── MissingExtraError a package that was not installed with mcpspy
    ├── SqlError        a question in SQL that cannot be answered
    ├── SetupError      a client's configuration file that cannot be read or changed
    ├── AgentToolError  a call of a tool of `mcpspy mcp` that cannot be answered
    ├── TapError        one end of a tap could not be started or reached
    ├── CollectorError  a collector of telemetry that does not take what is sent
    └── UpstreamError   a live server that cannot be started or reached

Input from a peer never raises: it becomes a `Malformed` message or a finding. These are for callers. Each holds values
and formats them in `__str__`, as one sentence on what is wrong and one on what to do next.
"""


def sentence(text: str) -> str:
    """Return `text` with a full stop, unless it ends with a mark of its own."""
    return text if text.endswith((".", "?", "…")) else f"{text}."


class McpspyError(Exception):
    """A failure of mcpspy, in a sentence for a person; `exit_status` is that of the command line."""

    exit_status = 2


class _AboutError(McpspyError):
    """A failure of something that has a name: `what` names it, and `reason` says what is wrong."""

    sentences = "{what}: {reason}"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        return self.sentences.format(what=self.what, reason=self.reason)


class _ExpressionError(McpspyError):
    """A text that cannot be read; `column` is where, the first being 1, and `advice` what to write instead."""

    sentences: str

    def __init__(self, expression: str, column: int, reason: str, advice: str = "") -> None:
        super().__init__(expression, column, reason, advice)
        self.expression = expression
        self.column = column
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        where = self.sentences.format(expression=self.expression, column=self.column)
        return f"{where}: {self.reason}. {self.advice}".rstrip()


class CaptureError(McpspyError):
    """A capture whose header is whole but unusable, or newer than this mcpspy; or a file that is no capture.

    Also one that was changed or removed, when a message that was left in it is looked at.
    Never raised for damage after a sound header: that becomes a `Damage` record.
    """

    exit_status = 3

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(file, line, reason)
        self.file = file
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ImportFileError(_AboutError):
    """A file that something else recorded and that cannot be imported. No capture was made."""

    sentences = "{what}: {reason}"


class RepairError(McpspyError):
    """A capture with nothing sound in it, or a file to repair into that exists. Nothing was written."""


class ShareError(McpspyError):
    """A capture without a header, or a file to share into that exists. Nothing was written."""


class AddressError(_AboutError):
    """A WHAT that names no capture or no row; `searched_folder` says where it was looked for."""

    def __init__(self, what: str, reason: str, *, searched_folder: str = "") -> None:
        super().__init__(what, reason)
        self.searched_folder = searched_folder

    def __str__(self) -> str:
        where = f" Looked in {self.searched_folder}." if self.searched_folder else ""
        return f"{self.what}: {sentence(self.reason)}{where}"


class ReplayError(_AboutError):
    """A capture that cannot be played: `what` names it, `reason` says what it lacks."""

    sentences = "{what}: {reason}."


class TrialError(_AboutError):
    """A client or a server that cannot be tried: `what` is its command, `reason` says why."""

    exit_status = 4
    sentences = "{what}: {reason}."


class TapError(_AboutError):
    """One end of a tap failed before traffic could flow; `what` is `client` or `server`."""

    exit_status = 4
    sentences = "{reason}"


class AgentToolError(McpspyError):
    """Arguments of a tool of `mcpspy mcp` that cannot be used; `reason` says why, and `advice` what to pass instead.

    `quoted` is what a program said about it, which may hold captured text.
    """

    def __init__(self, reason: str, advice: str, quoted: str = "") -> None:
        super().__init__(reason, advice, quoted)
        self.reason = reason
        self.advice = advice
        self.quoted = quoted

    def __str__(self) -> str:
        return f"{sentence(self.reason)} {self.advice}"


class ControlError(McpspyError):
    """A running tap that cannot be controlled, or that refuses what a controller asks for."""


class MissingExtraError(McpspyError):
    """A package that only some verbs need, and that is not installed. `what` needs it, and `packages` are what pip installs."""

    def __init__(self, what: str, packages: list[str]) -> None:
        super().__init__(what, packages)
        self.what = what
        self.packages = packages

    def __str__(self) -> str:
        names = " and ".join(package.partition(">")[0] for package in self.packages)
        return f"{self.what} needs {names}; pip install {' '.join(map(repr, self.packages))}"


class CollectorError(McpspyError):
    """A collector that cannot be reached, or refuses what is sent; `name` is its URL.

    `status` is the HTTP status of its answer; None if there was none. `takes_spans` is true if it refused metrics only.
    `retry_s` is how long it asks to wait. `trouble` is why nothing could be sent, though it may be there: as with TLS.
    """

    exit_status = 4
    busy_statuses = frozenset({429, 502, 503, 504})
    """Those after which OTLP has a sender try again."""

    def __init__(
        self,
        name: str,
        status: int | None = None,
        *,
        takes_spans: bool = False,
        retry_s: float | None = None,
        trouble: str = "",
    ) -> None:
        super().__init__(name)
        self.name = name
        self.status = status
        self.takes_spans = takes_spans
        self.retry_s = retry_s
        self.trouble = trouble

    @property
    def state(self) -> str:
        """The state of the collector: `away` if it did not answer, `busy` if it may take the same later, else `refused`.

        It is `unsent` if nothing could be sent to it.
        """
        if self.trouble:
            return "unsent"
        return "away" if self.status is None else "busy" if self.status in self.busy_statuses else "refused"

    @property
    def problem(self) -> str:
        """The state in words, without what to do next."""
        return f"the collector at {self.name} {self._words()[0]}"

    def __str__(self) -> str:
        return f"{self.problem}; {self._words()[1]}."

    def _words(self) -> tuple[str, str]:
        """Return what the collector does, and what to do next."""
        answer = f" (HTTP status {self.status})"
        other = "name another with --endpoint"
        if self.state == "busy":
            wait = "" if self.retry_s is None else f" and asks to wait {self.retry_s:,.0f} s"
            return f"is busy{answer}{wait}", "try again later"
        if self.trouble:
            return f"cannot be sent anything: {self.trouble}", "OTEL_EXPORTER_OTLP_CERTIFICATE names certificates to trust"
        if self.status is None and self.name.endswith(":4317"):
            return "does not answer over HTTP", "port 4317 is usually that of gRPC, and 4318 that of HTTP"
        if self.status is None:
            metrics = " when it gets metrics" * self.takes_spans
            return f"does not answer{metrics}", "add --no-metrics if it has none" if metrics else f"start it, or {other}"
        if self.status in range(300, 400):
            return f"redirects to another URL{answer}", "name that one with --endpoint"
        if self.status in (401, 403):
            return f"wants credentials{answer}", "give them in OTEL_EXPORTER_OTLP_HEADERS"
        if self.takes_spans:
            return f"takes spans, but no metrics{answer}", "add --no-metrics if it has none"
        if self.status == 404 and self.name.endswith("/v1/traces"):
            other = "leave out /v1/traces in OTEL_EXPORTER_OTLP_ENDPOINT: it is added"
        return f"does not take spans{answer}", other


class SqlError(McpspyError):
    """SQL that the database refuses; `reason` is in its words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the query cannot be run: {sentence(self.reason.strip())} docs/columns.md has the tables and their columns"


class UpstreamError(McpspyError):
    """A live server that cannot be started or reached; `server` is its command or URL, `reason` why, and `advice` what to do."""

    exit_status = 4

    def __init__(self, server: str, reason: str, advice: str = "") -> None:
        super().__init__(server, reason, advice)
        self.server = server
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.server}: {self.reason}. {self.advice}".rstrip()


class FilterError(_ExpressionError):
    """A filter that cannot be read."""

    sentences = "in the filter, column {column}"


class InterceptError(_ExpressionError):
    """An intercept that cannot be read."""

    sentences = "the intercept {expression}, column {column}"


class PathError(_ExpressionError):
    """A JSON path that cannot be read."""

    sentences = "the path {expression}, column {column}"


class RuleError(McpspyError):
    """A name that is no rule, no glob of rules and no family; `nearest` are similar names."""

    def __init__(self, name: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        meant = f" Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"there is no rule {self.name!r}.{meant} mcpspy check --rules lists them."


class BaselineError(_AboutError):
    """A file in a baseline's folder that holds no accepted definitions, or those of a newer mcpspy."""

    exit_status = 3
    sentences = "{what}: {reason}. Move it away, then accept again with mcpspy check --baseline DIR --accept."


class SetupError(_AboutError):
    """A client's configuration file that cannot be read, or was not changed; nothing of it was lost. `what` is its path."""
