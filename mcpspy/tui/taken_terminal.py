"""Textual's driver for a terminal that shows the first frame already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from textual.driver import Driver

CLEARS: Final = "\x1b[?1049h"
"""The first that the driver writes: it gives the program the whole screen, and clears it."""


def taking_over(driver_class: type[Driver], hand_over: Callable[[], bool]) -> type[Driver]:
    """Return a driver that first calls `hand_over`, and does not clear the screen if that returns True."""

    class TakenTerminal(driver_class):  # type: ignore[valid-type, misc]  # Textual's class differs by system
        _keeps = False

        def start_application_mode(self) -> None:
            self._keeps = hand_over()
            super().start_application_mode()

        def write(self, data: str) -> None:
            if self._keeps and data == CLEARS:
                self._keeps = False
            else:
                super().write(data)

    return TakenTerminal
