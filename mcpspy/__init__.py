"""mcpspy: a man-in-the-middle debugging proxy for MCP. This module is the library; docs/api.md describes every name.

`open` returns the transcript of captures, `read` the records of one, and `transcribe` a transcript of records. Other names are
imported on first use (PEP 562), because `mcpspy run` imports this module before it starts a server, and somebody waits for that.
"""

__version__ = "0.9.0"

_MODULES = {
    "capture.file.reader": ("read",),
    "errors": ("CaptureError", "McpspyError"),
    "records": (
        "Close", "Damage", "End", "Exit", "Frame", "Gap", "Header", "Intercept", "Note", "Open", "Partial", "Record", "Spawn",
        "Stall", "Unknown",
    ),
    "transcript.calls.call": ("Call", "CallPart", "Task"),
    "transcript.exchange": ("Exchange", "ForwardedCall", "UnpairedMessage"),
    "transcript.findings.rule": ("Finding", "Severity"),
    "transcript.http.head": ("Head",),
    "transcript.http.transaction": (
        "AnnouncedEndpoint", "Anomaly", "Closing", "KeepAlives", "Scope", "ScopeKind", "Stream", "Transaction",
    ),
    "transcript.llm.model_call": ("ModelCall",),
    "transcript.llm.prompt": ("Answer", "Prompt", "ToolOffer", "ToolReturn", "ToolUse", "Turn", "Usage"),
    "transcript.mcp.revisions": ("Era",),
    "transcript.message": ("Kind", "Message"),
    "transcript.model": ("CaptureInfo", "ChannelEvent", "Lane", "Log", "Numbered", "Row", "Transcript"),
    "transcript.outcome": ("Outcome",),
    "transcript.transcribe": ("transcribe",),
}  # fmt: skip
_PUBLIC = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "AnnouncedEndpoint", "Anomaly", "Answer", "Call", "CallPart", "CaptureError", "CaptureInfo", "ChannelEvent", "Close", "Closing",
    "Damage", "End", "Era", "Exchange", "Exit", "Finding", "ForwardedCall", "Frame", "Gap", "Head", "Header", "Intercept",
    "KeepAlives", "Kind", "Lane", "Log", "McpspyError", "Message", "ModelCall",
    "Note", "Numbered", "Open", "Outcome", "Partial", "Prompt", "Record", "Row", "Scope", "ScopeKind",
    "Severity", "Spawn", "Stall", "Stream", "Task", "ToolOffer", "ToolReturn", "ToolUse", "Transaction", "Transcript", "Turn",
    "Unknown", "UnpairedMessage", "Usage", "__version__", "open", "read", "transcribe",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from .capture.file.reader import read
    from .errors import CaptureError, McpspyError
    from .records import (
        Close,
        Damage,
        End,
        Exit,
        Frame,
        Gap,
        Header,
        Intercept,
        Note,
        Open,
        Partial,
        Record,
        Spawn,
        Stall,
        Unknown,
    )
    from .transcript.calls.call import Call, CallPart, Task
    from .transcript.exchange import Exchange, ForwardedCall, UnpairedMessage
    from .transcript.findings.rule import Finding, Severity
    from .transcript.http.head import Head
    from .transcript.http.transaction import (
        AnnouncedEndpoint,
        Anomaly,
        Closing,
        KeepAlives,
        Scope,
        ScopeKind,
        Stream,
        Transaction,
    )
    from .transcript.llm.model_call import ModelCall
    from .transcript.llm.prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
    from .transcript.mcp.revisions import Era
    from .transcript.message import Kind, Message
    from .transcript.model import CaptureInfo, ChannelEvent, Lane, Log, Numbered, Row, Transcript
    from .transcript.outcome import Outcome
    from .transcript.transcribe import transcribe


def open(*paths: "str | PathLike[str]", keep_frames: bool = False, with_findings: bool = True) -> "Transcript":  # noqa: A001 - nobody imports * from here
    """Return the transcript of the captures at these paths, merged by their clocks. For the options see `transcribe`.

    Raises: CaptureError: if a file is no capture, or needs a newer mcpspy. OSError: if it cannot be read.
    """
    from .capture.file.reader import read
    from .transcript.transcribe import transcribe

    for path in paths:
        if not isinstance(path, str) and not hasattr(path, "__fspath__"):
            name = type(path).__name__
            raise TypeError(
                f"open takes paths of captures, each as an argument of its own, not {name}: use mcpspy.open(*paths)"
            )
    if not paths:
        raise TypeError("open takes the path of at least one capture: use mcpspy.open('FILE.mcpspy')")
    return transcribe(*map(read, paths), keep_frames=keep_frames, with_findings=with_findings)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
