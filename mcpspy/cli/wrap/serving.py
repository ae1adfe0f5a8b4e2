"""The service of the user in `wrap` and `unwrap`: whether it is needed, its lines on the screen, and its ports kept in step."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ...capture.store.folder import home_folder
from ...errors import SetupError
from ...setup.commit import setup_lock
from ...setup.entry import EntryState
from ...setup.plan import Aim, ConfigChange, ConfiguredServer, WrapSettings
from ...setup.ports import ReservedPorts, read_reserved_ports
from ...setup.service import (
    SOCKET,
    UnitOwner,
    UserService,
    active_state,
    ensure_ours,
    has_same_home,
    program,
    read_service,
    remove,
    service_folder,
    set_up,
    wanted_service,
    why_no_service,
)
from ...views.text.escape import safe_text
from ...views.text.line import Line

ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """The service of the user as it is now. `active` is empty without one."""

    units: UserService
    active: str

    @property
    def served_ports(self) -> frozenset[int]:
        """The ports at which it answers."""
        return frozenset(self.units.ports) if self.active == ACTIVE and self.program_exists else frozenset()

    @property
    def program_exists(self) -> bool:
        """False if the mcpspy that it starts is gone."""
        return os.access(self.units.program, os.X_OK)


@cache
def service_status() -> ServiceStatus:
    """Read the units, and ask systemd for their state if there are any. Raises: SetupError."""
    units = read_service(_folder())
    return ServiceStatus(units=units, active=active_state(SOCKET) if units.socket else "")


def served_ports() -> frozenset[int]:
    """Find the ports at which the service answers."""
    try:
        return service_status().served_ports
    except SetupError:
        return frozenset()


def with_service(
    settings: WrapSettings, servers: Iterable[ConfiguredServer], problems: list[SetupError], *, without: bool
) -> WrapSettings:
    """Settle how HTTP servers are served, if any of `servers` is one."""
    if settings.aim is not Aim.WRAP or without or not any(map(_is_wrappable, servers)):
        return settings
    obstacle = why_no_service()
    if obstacle:
        return replace(settings, http_obstacle=obstacle)
    try:
        ensure_ours(read_service(_folder()), _new_service(()))
    except SetupError as error:
        problems.append(error)
        return replace(settings, http_obstacle=f"the service {SOCKET} cannot be set up, as reported below")
    return replace(settings, by_service=True)


def _is_wrappable(server: ConfiguredServer) -> bool:
    return server.entry.is_http and server.entry.state is not EntryState.UNUSABLE


def needs_service(settings: WrapSettings, ports: ReservedPorts) -> bool:
    """Return whether the service has to be set up or changed to serve `ports`."""
    if not settings.by_service or not ports.by_port:
        return False
    status = service_status()
    return status.units != _wanted(ports.by_port) or status.active != ACTIVE


def ports_after(planned: Sequence[ConfigChange], now: ReservedPorts) -> ReservedPorts:
    """Put the ports of all plans together with those that are reserved now."""
    plans = [reserved for change in planned for reserved in change.ports.by_port.values()]
    return ReservedPorts([*now.by_port.values(), *plans])


def serve(ports: ReservedPorts) -> None:
    """Set up the service, or change it, for `ports`. Raises: SetupError."""
    with setup_lock(Path(home_folder())):
        set_up(_wanted(ports.by_port))
    service_status.cache_clear()


def keep_in_step(aim: Aim) -> str:
    """Let our service serve the ports that are reserved now; remove it if none is. Returns what to say. Raises: SetupError.

    Unwrapping does not mind a service that is not for these ports.
    """
    units = read_service(_folder())
    ports = read_reserved_ports(Path(home_folder()))
    is_foreign = units.owner is UnitOwner.OTHERS or not has_same_home(units, _new_service(()))
    if units.owner is UnitOwner.NOBODY or (aim is Aim.UNWRAP and is_foreign):
        return ""
    if not ports.by_port:
        remove(_folder())
        return f"Removed the service {SOCKET}. Clients that still use its ports reach nothing until they are restarted."
    if set(units.ports) != set(ports.by_port):
        serve(ports)
    return ""


def service_change_lines() -> list[Line]:
    """Show what setting up the service means, or changing it, as for a file."""
    verb = "listens at other ports" if service_status().units.socket else "is new"
    what = f"{verb}; it starts `mcpspy proxy --all` when a client connects, also after a reboot"
    return [
        [("systemd", "strong"), (f"  {safe_text(str(_folder() / SOCKET))}", "dim")],
        [("  ", ""), (SOCKET, "key")],
        [("    + ", "good"), (what, "good")],
    ]


def service_lines() -> list[Line]:
    """Show the service for `--status`; nothing without one."""
    try:
        status = service_status()
    except SetupError as error:
        return [[("service", "strong"), (f"  {safe_text(str(error))}", "warn")]]
    units = status.units
    if units.owner is UnitOwner.NOBODY:
        return []
    title: Line = [("service", "strong"), (f"  {SOCKET}", "key")]
    if units.problem:
        return [[*title, (f"  {safe_text(str(units.problem_file))} {units.problem}", "warn")]]
    ports = ", ".join(map(str, units.ports))
    if not status.program_exists:
        gone = f"  cannot start: {safe_text(units.program)} does not exist any more; mcpspy wrap repairs this"
        return [[*title, (gone, "warn")]]
    if status.active != ACTIVE:
        return [[*title, (f"  {status.active}: nothing listens at {ports}; mcpspy wrap starts it", "warn")]]
    return [[*title, (f"  listens at {ports}, and starts `mcpspy proxy --all` when a client connects", "dim")]]


def service_object() -> dict[str, Any]:
    """Describe the service for programs (docs/json.md)."""
    try:
        status = service_status()
    except SetupError:
        return {"unit": SOCKET, "owner": UnitOwner.OTHERS.value, "state": "unknown", "ports": []}
    units = status.units
    return {"unit": SOCKET, "owner": units.owner.value, "state": status.active, "ports": list(units.ports)}


def _folder() -> Path:
    return service_folder(Path(os.path.expanduser("~")))


def _wanted(ports: Iterable[int]) -> UserService:
    """Write the units for `ports`. A service of ours keeps its mcpspy as long as that exists, like a wrapped command."""
    new, present = _new_service(ports), read_service(_folder())
    keeps = present.owner is UnitOwner.MCPSPY and os.access(present.program, os.X_OK)
    return replace(new, service=present.service) if keeps else new


def _new_service(ports: Iterable[int]) -> UserService:
    home = home_folder() if os.environ.get("MCPSPY_HOME") else ""
    return wanted_service(_folder(), ports, program(), home)
