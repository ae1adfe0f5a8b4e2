"""`mcpspy export share`, where `export` looks for it."""

from ..share.command import command

__all__ = ["command"]
