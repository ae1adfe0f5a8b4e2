"""Captures of one transcript: their headers to one time axis, and their clients and servers to lanes with unique names.

A client of stdio is known by its process, because one client talks to many servers; its name comes from its own messages. An HTTP
tap is started by somebody else, and has any number of clients. A model is named as a server is. No clock is read: headers say
when captures began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records import Header
    from .model import CaptureInfo


class TimeAxis:
    """The common axis of several captures, which begins with the first one asked about.

    Captures of one boot are compared by the monotonic clock, which nobody sets; others by wall time.
    """

    __slots__ = ("_boots", "_wall_ns")

    def __init__(self) -> None:
        self._wall_ns: int | None = None
        self._boots: dict[str, int] = {}

    def shift_ns(self, header: Header) -> int:
        """Return the time to add to the times of this capture's records."""
        if self._wall_ns is None:
            self._wall_ns = header.wall_ns
        shift_ns = header.wall_ns - self._wall_ns
        if not header.boot_id:
            return shift_ns
        began_ns = self._boots.setdefault(header.boot_id, header.monotonic_ns - shift_ns)
        return header.monotonic_ns - began_ns


def name_lanes(captures: list[CaptureInfo], client_names: dict[int, str]) -> None:
    """Set the lanes of `captures`: a name for every server, and one name for a client in all captures that it started.

    `client_names` are the names that clients gave themselves, by the index of the capture. If an HTTP capture has several
    clients, its own lane is for those without a name.
    """
    for info, name in zip(captures, _unique(_label(info) for info in captures), strict=True):
        info.server = name
    clients: dict[tuple[str, ...], list[CaptureInfo]] = {}
    for info in captures:
        if not _is_http(info):
            clients.setdefault(_client(info), []).append(info)
    names = _unique(_client_name(group, client_names) for group in clients.values())
    for group, name in zip(clients.values(), names, strict=True):
        for info in group:
            info.client = name
    for info in filter(_is_http, captures):
        info.client = next(iter(info.client_names)) if len(info.client_names) == 1 else "client"
    _name_model_clients([info for info in captures if info.is_model], [info for info in captures if not info.is_model])


def _name_model_clients(models: list[CaptureInfo], others: list[CaptureInfo]) -> None:
    """Name the client of model APIs, which carry no name: it is the client of the other captures, if these have only one."""
    known = {name for info in others for name in (*info.client_names, info.client)}
    if len(known) > 1:
        known.discard("client")
    if len(known) == 1:
        (name,) = known
        for info in models:
            info.client = name


def _label(info: CaptureInfo) -> str:
    return (info.header.label if info.header else "") or "server"


def _client(info: CaptureInfo) -> tuple[str, ...]:
    """Return a key that is equal for captures with the same parent process."""
    header = info.header
    if header is None or "pid" not in header.parent:
        return (str(info.index),)
    return (header.boot_id, str(header.parent["pid"]), str(header.parent.get("start")))


def _is_http(info: CaptureInfo) -> bool:
    return info.header is not None and info.header.tapped.get("transport") == "http"


def _client_name(group: list[CaptureInfo], client_names: dict[int, str]) -> str:
    own = next((client_names[info.index] for info in group if info.index in client_names), None)
    header = group[0].header
    return own or (str(header.parent.get("name") or "") if header else "") or "client"


def _unique(names: Iterable[str]) -> list[str]:
    """Return `names` with a number after those that are taken: `weather`, `weather 2`."""
    unique: dict[str, None] = {}
    for name in names:
        free, count = name, 1
        while free in unique:
            count += 1
            free = f"{name} {count}"
        unique[free] = None
    return list(unique)
