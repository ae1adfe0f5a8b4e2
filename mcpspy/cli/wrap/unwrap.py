"""`mcpspy unwrap`: take `mcpspy run` away again from clients' configuration files."""

import click

from ...setup.plan import Aim
from .apply import Wanted, setup_options, work


@click.command("unwrap")
@setup_options
def command(wanted: Wanted) -> int:
    """Take mcpspy away from before the servers of MCP clients: what `mcpspy wrap` did, undone byte for byte.

    Whatever else was edited in between stays. A server is known by what stands before its command, so that one is found too that
    another mcpspy wrapped, or a person.

    \b
      mcpspy unwrap                                 all that is wrapped, after asking
      mcpspy unwrap --server time --yes             one server, without asking
    """
    return work(Aim.UNWRAP, wanted)
