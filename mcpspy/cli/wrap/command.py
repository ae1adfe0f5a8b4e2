"""`mcpspy wrap` inserts mcpspy into clients' configuration files; `mcpspy unwrap` removes it."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from ...setup.clients import CLIENTS
from ...setup.plan import Aim
from ..click_types import QUOTA
from ..web.agent import ensure_sdk
from .apply import WrapOptions, change_files


def _shared_options(verb: Callable[[WrapOptions], int]) -> Callable[..., int]:
    """Give a verb the options that both have; they come in as one `WrapOptions`."""

    @click.option("--client", "clients", multiple=True, type=click.Choice(list(CLIENTS)), help="Only this client's servers.")
    @click.option(
        "--server", "servers", multiple=True, metavar="NAME", help="Only the server with this name, or a glob such as 'git*'."
    )
    @click.option("--yes", is_flag=True, help="Make all changes without asking.")
    @click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
    @click.option("--status", is_flag=True, help="Show which servers are wrapped, what is being recorded, and the last errors.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md); changes need --yes.")
    @functools.wraps(verb)
    def command(*, yes: bool, as_json: bool, **values: Any) -> int:
        asks = not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
        options = WrapOptions(asks=asks, yes=yes, as_json=as_json, **values)
        wraps_more = options.oauth or options.without_service or options.quota_bytes is not None
        if options.status and (options.dry_run or options.own or wraps_more):
            raise click.UsageError(
                "--status changes nothing; leave out --dry-run, --self, --oauth, --without-service and --quota."
            )
        if options.own and (options.servers or wraps_more):
            raise click.UsageError("--self wraps nothing; leave out --server, --oauth, --without-service and --quota.")
        return verb(options)

    return command


@click.command("wrap")
@_shared_options
@click.option(
    "--self",
    "own",
    is_flag=True,
    help="Wrap nothing: add mcpspy's own server, `mcpspy mcp`, to your clients, so that their agents can read recordings.",
)
@click.option(
    "--oauth", is_flag=True, help="Wrap also HTTP servers that the client may be logged in to; it then has to log in again."
)
@click.option(
    "--without-service",
    is_flag=True,
    help="Wrap HTTP servers without setting up a service: they work only while `mcpspy proxy --all` is running.",
)
@click.option(
    "--quota",
    "quota_bytes",
    type=QUOTA,
    metavar="SIZE",
    help="Keep the store below this size (2gb): the oldest recordings are deleted. `none` removes the quota. By default nothing is"
    " ever deleted.",
)
def command(options: WrapOptions) -> int:
    """Insert mcpspy between MCP clients and their servers: those of Claude Code, Cursor, VS Code and eight others.

    It shows all changes and asks once: all, some (then it asks server by server), or none. Without a terminal to ask on, as in a
    script or a pipe, and with --json, it changes nothing unless --yes is given.

    It changes the command and arguments of a stdio server. It changes the origin in the URL of an HTTP server to a port of this
    machine, and sets up a service of your user (systemd's mcpspy.socket) that starts `mcpspy proxy --all` when a client connects.
    Where that is impossible, it leaves HTTP servers alone, unless --without-service is given. The rest of a file stays byte for
    byte the same, and `mcpspy unwrap` restores it exactly and removes the service. Each file is copied first.

    \b
      mcpspy wrap --dry-run                       show what would change
      mcpspy wrap --client cursor --server time   wrap one server of one client
      mcpspy wrap --yes --quota 2gb               wrap all, and keep at most 2 GB
      mcpspy wrap --self                          let agents ask mcpspy (docs/mcp.md)
      mcpspy wrap --status                        show what is wrapped
    """
    if options.own:
        ensure_sdk()
    return change_files(Aim.ADD if options.own else Aim.WRAP, options)


@click.command("unwrap")
@_shared_options
@click.option("--self", "own", is_flag=True, help="Unwrap nothing: take mcpspy's own server out again.")
def unwrap(options: WrapOptions) -> int:
    """Remove mcpspy from between MCP clients and their servers: undo `mcpspy wrap`, byte for byte.

    Other changes of a file since then are kept. A wrapped server is recognised by its command or URL, whichever mcpspy or person
    wrapped it.

    \b
      mcpspy unwrap                          unwrap all servers, after asking
      mcpspy unwrap --server time --yes      unwrap one server, without asking
      mcpspy unwrap --self                   take out what mcpspy wrap --self added
    """
    return change_files(Aim.REMOVE if options.own else Aim.UNWRAP, options)
