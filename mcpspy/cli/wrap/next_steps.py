"""What `wrap` and `unwrap` say when they are done: where the copies are, who has to be started again, what is then of use."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...capture.store.quota import quota_bytes
from ...setup.commit import Done
from ...setup.plan import Aim
from ...views.text.escape import safe_text
from ..screen import say
from .status import keeping

if TYPE_CHECKING:
    from ...setup.clients import Client


def say_next(aim: Aim, done: Sequence[Done], *, capped: bool) -> None:
    """Say it. `capped` is whether the store's quota was set or lifted."""
    clients: dict[str, Client] = {}
    for one in done:
        config = one.change.looked.config
        clients[config.client.name] = config.client
        shared = config.sections[0].scope == "project"
        note = " The file belongs to the project: unwrap before you share it." if shared and aim is Aim.WRAP else ""
        say(f"Changed {safe_text(str(config.file))}; as it was: {safe_text(str(one.kept))}.{note}")
    for client in clients.values():
        say(f"{client.title}: {client.restart}.")
    if aim is Aim.UNWRAP or not (clients or capped):
        return
    http = sum(one.entry.is_http for made in done for one in made.change.servers)
    if http:
        say(
            f"{'The HTTP server answers' if http == 1 else f'The {http} HTTP servers answer'} while this runs: mcpspy proxy --all"
        )
    say(f"Recorded: {keeping()}.{'' if quota_bytes() else ' mcpspy wrap --max-size 2gb sets a quota.'}")
    if "MCPSPY_HOME" in os.environ and any(not one.entry.is_http for made in done for one in made.change.servers):
        say("MCPSPY_HOME is set here, but clients hand it on only from the env of an entry; else servers record in ~/.mcpspy.")
    if clients:
        say("Then: mcpspy show -f. Back again: mcpspy unwrap.")
