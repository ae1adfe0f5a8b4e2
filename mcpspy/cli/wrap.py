"""`mcpspy wrap`: put `mcpspy run` before the servers of clients' configuration files."""

import click

from ..setup.plan import Aim
from .wrapping import Wanted, setup_options, work


@click.command("wrap")
@setup_options
def command(wanted: Wanted) -> int:
    """Put mcpspy before the stdio servers that MCP clients start: Claude Code, Claude Desktop, Cursor, VS Code, Codex.

    Shows what it would change and asks, file by file; with --all, --yes or without a terminal it does not ask. Only a server's
    command and arguments change; the rest of a file stays byte for byte, and `mcpspy unwrap` restores it exactly. A copy of each
    file is kept first.

    \b
      mcpspy wrap --dry-run                         what would change
      mcpspy wrap --client cursor --server time     one server of one client
      mcpspy wrap --status                          what is wrapped, what records now
    """
    return work(Aim.WRAP, wanted)
