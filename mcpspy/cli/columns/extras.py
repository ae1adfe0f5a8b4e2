"""A check for the packages that columns and telemetry need, and that `pip install mcpspy` leaves out."""

from importlib.util import find_spec
from typing import Final

from ...errors import MissingExtraError

COLUMNS: Final = {"pyarrow": "pyarrow>=18", "duckdb": "duckdb>=2.0.1"}
"""By the name of the module: what pip installs."""


def require(what: str, *modules: str, packages: dict[str, str] = COLUMNS) -> None:
    """Refuse to go on without these modules, for `what`. Raises: MissingExtraError."""
    if any(_is_missing(module) for module in modules):
        raise MissingExtraError(what, [packages[module] for module in modules])


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ImportError:  # of the package that it is in
        return True
