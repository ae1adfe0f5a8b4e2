"""mcpspy: a man-in-the-middle debugging proxy for MCP. The library's door.

`read` yields the records of a capture, `transcribe` makes a transcript of them. Names are resolved on first use (PEP 562),
because `mcpspy run` passes through here on its way to a server that somebody waits for.
"""

__version__ = "0.1.0"

_PUBLIC = {
    "read": "mcpspy.capture.file.reader",
    "transcribe": "mcpspy.transcript.transcribe",
    "Transcript": "mcpspy.transcript.model",
    "Message": "mcpspy.transcript.model",
    "Exchange": "mcpspy.transcript.model",
    "Transaction": "mcpspy.transcript.http.transaction",
    "Outcome": "mcpspy.transcript.model",
    "McpspyError": "mcpspy.errors",
    "CaptureError": "mcpspy.errors",
}

__all__ = [
    "CaptureError", "Exchange", "McpspyError", "Message", "Outcome", "Transaction", "Transcript", "__version__", "read", "transcribe",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .capture.file.reader import read
    from .errors import CaptureError, McpspyError
    from .transcript.http.transaction import Transaction
    from .transcript.model import Exchange, Message, Outcome, Transcript
    from .transcript.transcribe import transcribe


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
