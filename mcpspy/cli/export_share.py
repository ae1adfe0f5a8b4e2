"""`mcpspy export share`, where `export` looks for it."""

from .share import command

__all__ = ["command"]
