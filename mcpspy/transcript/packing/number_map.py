"""A map from numbers that count up to other numbers, in little memory."""

from array import array
from collections.abc import Iterator
from typing import Final

_FAR: Final = 1 << 16
_MOST: Final = (1 << 32) - 1


class NumberMap:
    """Numbers by numbers that count up, at 4 bytes each; 0 for those that have none."""

    __slots__ = ("_dense", "_others")

    def __init__(self) -> None:
        self._dense = array("I")
        self._others: dict[int, int] = {}

    def __setitem__(self, key: int, value: int) -> None:
        dense = self._dense
        if 0 <= key <= 2 * len(dense) + _FAR and 0 <= value <= _MOST:
            if key >= len(dense):
                dense.frombytes(bytes(dense.itemsize * (key + 1 - len(dense))))
            dense[key] = value
        else:
            self._others[key] = value

    def __getitem__(self, key: int) -> int:
        value = self._dense[key] if 0 <= key < len(self._dense) else 0
        return value or self._others.get(key, 0)

    def __iter__(self) -> Iterator[int]:
        yield from (key for key, value in enumerate(self._dense) if value)
        yield from self._others
