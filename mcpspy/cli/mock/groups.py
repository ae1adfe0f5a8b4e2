"""What captures a mock that listens is given: those of each server together, and those of a model's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...capture.file.reader import read
from ...records import Header
from ..run.options import SEVERAL, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MAX_PORT: Final = 65_535


class Group(NamedTuple):
    """The captures of one server, or of one model's API. `url` is the live one that goes on after a miss; empty where none does.

    `gets_fields` says that it is the one for which --header and `MCPSPY_AUTHORIZATION` are meant: a login is shown at one place.
    """

    label: str
    is_model: bool
    paths: tuple[str, ...]
    url: str = ""
    gets_fields: bool = True


def grouped(paths: Iterable[str]) -> list[Group]:
    """The captures at these paths, those of models first, each kind in the order of the paths. Raises: CaptureError; OSError."""
    found: dict[tuple[bool, str], list[str]] = {}
    for path in paths:
        first = next(read(path), None)
        header = first if isinstance(first, Header) else None
        is_model = header is not None and header.tapped.get("leg") == "model"
        found.setdefault((not is_model, header.label if header else ""), []).append(path)
    every = sorted(found.items(), key=lambda one: one[0][0])
    return [Group(label, not is_server, tuple(of)) for (is_server, label), of in every]


def with_urls(groups: list[Group], values: Mapping[str, str]) -> list[Group]:
    """The same with the URLs of live servers: `--url LABEL=URL`, or the URL alone for the model's API, or for the only one.

    Where there are several, the URL alone gets the fields of a login. Raises: UsageError.
    """
    if "url" not in values:
        return groups
    urls: dict[str, str] = {}
    named: set[str] = set()
    labels = [one.label for one in groups]
    for text in values["url"].split(SEVERAL):
        label, sign, url = text.partition("=")
        if not sign or label not in labels:
            sign, label, url = "", groups[0].label, text
            if len(groups) > 1 and not groups[0].is_model:
                raise UsageError(f"--url {text}: of which server? Say --url LABEL=URL; the labels are {', '.join(labels)}")
        urls[label] = url
        named.update([label] if sign and len(groups) > 1 else [])
    return [one._replace(url=urls.get(one.label, ""), gets_fields=one.label not in named) for one in groups]


def check(groups: list[Group], values: Mapping[str, str], command: tuple[str, ...], port: int) -> None:
    """Options that are for one mock, and a `port` behind which there are too few. Raises: UsageError."""
    if port + len(groups) - 1 > MAX_PORT:
        raise UsageError(f"{len(groups)} mocks want a port each, and there is none behind {MAX_PORT}; port 0 picks them")
    if len(groups) > 1 and "label" in values:
        raise UsageError(f"--label names one mock, and these are {len(groups)}: {', '.join(one.label for one in groups)}")
    if command and (len(groups) > 1 or groups[0].is_model):
        raise UsageError("a command behind -- goes on for one server; name live ones with --url LABEL=URL")
