"""Whose row it is: the column that names a server where there are several, else a client. Refuses to colour beyond one style each."""

from ...transcript.model import CaptureInfo, Row
from .escape import safe_text
from .line import lane_style


class Lanes:
    """What the lane column says of each row: its server, or its model, if there are several, else its client if there are several."""

    __slots__ = ("_is_by_server", "_known", "_styles", "role", "captures")

    def __init__(self, captures: list[CaptureInfo]) -> None:
        self.captures = captures
        self._known = _participants(captures)
        servers = list(dict.fromkeys(one.server for one in captures))
        clients = list(dict.fromkeys(name for one in captures for name in one.clients))
        self._is_by_server = len(servers) > 1
        is_mixed = any(one.is_model for one in captures)
        self.role = ("lane" if is_mixed else "server") if self._is_by_server else "client" if len(clients) > 1 else ""
        names = servers if self._is_by_server else clients if self.role else []
        self._styles = {name: lane_style(index) for index, name in enumerate(names)}

    @property
    def names(self) -> list[str]:
        """The names for the column: none where one server and one client make it pointless."""
        return [safe_text(name) for name in self._styles]

    def knows(self, captures: list[CaptureInfo]) -> bool:
        """Whether nobody has joined since: no server, and no client that says its name."""
        return self._known == _participants(captures)

    def of(self, row: Row) -> tuple[str, str]:
        """Name and style of the lane of a row."""
        if not self._styles or row.capture >= len(self.captures):
            return "", ""
        source = self.captures[row.capture]
        name = source.server if self._is_by_server else source.client_of(row)
        return safe_text(name), self._styles.get(name, "")


def _participants(captures: list[CaptureInfo]) -> int:
    return len(captures) + sum(len(one.client_names) for one in captures)
