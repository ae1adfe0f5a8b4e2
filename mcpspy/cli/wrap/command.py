"""`mcpspy wrap`: put mcpspy before the servers of clients' configuration files."""

import click

from ...setup.plan import Aim
from .apply import Wanted, setup_options, work, wrap_options


@click.command("wrap")
@setup_options
@wrap_options
def command(wanted: Wanted) -> int:
    """Put mcpspy before the servers of MCP clients: Claude Code, Claude Desktop, Cursor, VS Code, Codex.

    Shows what it would change and asks, file by file; with --all, --yes or without a terminal it does not ask. Of a server that is
    started its command and arguments change, of an HTTP server the origin of its URL, which becomes a port of this machine: it
    answers there while `mcpspy proxy --all` runs. The rest of a file stays byte for byte, and `mcpspy unwrap` restores it exactly.
    A copy of each file is kept first.

    \b
      mcpspy wrap --dry-run                         what would change
      mcpspy wrap --client cursor --server time     one server of one client
      mcpspy wrap --all --max-size 2gb              everything, and no more than this on disk
      mcpspy wrap --status                          what is wrapped, what records now, the last errors
    """
    return work(Aim.WRAP, wanted)
