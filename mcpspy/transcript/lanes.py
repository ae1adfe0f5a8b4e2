"""Names for the participants: every server one of its own, every client one for all captures that it started.

A client of stdio is known by its process, since one client talks to many servers; what it is called it says itself, in what it
sends. An HTTP tap was started by somebody else, and has as many clients as come. A model is named as a server is.
"""

from collections.abc import Iterable

from .model import CaptureInfo


def name_lanes(captures: list[CaptureInfo], client_names: dict[int, str]) -> None:
    """Set the lanes of `captures`. `client_names` is what clients called themselves, by the index of the capture.

    Where an HTTP capture has several clients, its own lane is for those of whom no name is known.
    """
    for source, name in zip(captures, _unique(_label(source) for source in captures), strict=True):
        source.server = name
    clients: dict[tuple[str, ...], list[CaptureInfo]] = {}
    for source in captures:
        if not _is_http(source):
            clients.setdefault(_client(source), []).append(source)
    names = _unique(_client_name(group, client_names) for group in clients.values())
    for group, name in zip(clients.values(), names, strict=True):
        for source in group:
            source.client = name
    for source in filter(_is_http, captures):
        source.client = next(iter(source.client_names)) if len(source.client_names) == 1 else "client"
    _name_askers([source for source in captures if source.is_model], [source for source in captures if not source.is_model])


def _name_askers(models: list[CaptureInfo], others: list[CaptureInfo]) -> None:
    """Who asks a model does not say its name there: it is the client of the servers beside it, if that is one."""
    known = {name for source in others for name in (*source.client_names, source.client)}
    if len(known) > 1:
        known.discard("client")
    if len(known) == 1:
        (name,) = known
        for source in models:
            source.client = name


def _label(source: CaptureInfo) -> str:
    return (source.header.label if source.header else "") or "server"


def _client(source: CaptureInfo) -> tuple[str, ...]:
    """Equal for captures with the same parent process."""
    header = source.header
    if header is None or "pid" not in header.parent:
        return (str(source.index),)
    return (header.boot_id, str(header.parent["pid"]), str(header.parent.get("start")))


def _is_http(source: CaptureInfo) -> bool:
    return source.header is not None and source.header.tapped.get("transport") == "http"


def _client_name(group: list[CaptureInfo], client_names: dict[int, str]) -> str:
    said = next((client_names[source.index] for source in group if source.index in client_names), None)
    header = group[0].header
    return said or (str(header.parent.get("name") or "") if header else "") or "client"


def _unique(names: Iterable[str]) -> list[str]:
    """`names` with a number after those that are taken: `weather`, `weather 2`."""
    found: dict[str, None] = {}
    for name in names:
        free, count = name, 1
        while free in found:
            count += 1
            free = f"{name} {count}"
        found[free] = None
    return list(found)
