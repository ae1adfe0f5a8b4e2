"""Stands before the package of this name, so that mcpspy runs without it, as it does unless that was asked for."""

raise ModuleNotFoundError("mcpspy is run without its extras here", name=__name__)
