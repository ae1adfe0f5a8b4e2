"""The lane column of a timeline: it names the server of each row where there are several, else the client."""

from ...transcript.model import CaptureInfo, Row
from .escape import safe_text
from .line import lane_style


class Lanes:
    """Names and styles for the lane column: the server or model of a row if there are several, else its client if there are several.

    `role` is the column's title; empty where one server and one client make the column pointless.
    """

    __slots__ = ("_is_by_server", "_known", "_styles", "role", "captures")

    def __init__(self, captures: list[CaptureInfo]) -> None:
        self.captures = captures
        self._known = _participants(captures)
        servers = list(dict.fromkeys(capture.server for capture in captures))
        clients = list(dict.fromkeys(name for capture in captures for name in capture.clients))
        self._is_by_server = len(servers) > 1
        is_mixed = any(capture.is_model for capture in captures)
        self.role = ("lane" if is_mixed else "server") if self._is_by_server else "client" if len(clients) > 1 else ""
        names = servers if self._is_by_server else clients if self.role else []
        self._styles = {name: lane_style(index) for index, name in enumerate(names)}

    @property
    def names(self) -> list[str]:
        """The names for the column, safe; empty where the column is left out."""
        return [safe_text(name) for name in self._styles]

    def knows(self, captures: list[CaptureInfo]) -> bool:
        """Return whether no server and no client name has been added since."""
        return self._known == _participants(captures)

    def of(self, row: Row) -> tuple[str, str]:
        """Return name and style of the lane of a row."""
        if not self._styles or row.capture >= len(self.captures):
            return "", ""
        capture = self.captures[row.capture]
        name = capture.server if self._is_by_server else capture.client_of(row)
        return safe_text(name), self._styles.get(name, "")


def _participants(captures: list[CaptureInfo]) -> int:
    return len(captures) + sum(len(capture.client_names) for capture in captures)
