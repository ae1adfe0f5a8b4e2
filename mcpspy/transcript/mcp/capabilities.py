"""Capabilities and names that peers declare. Source: MCP specification, schema (`ClientCapabilities`, `ServerCapabilities`).

Refuses to raise: what is no object declares nothing.
"""

from typing import Any

from .blocks import Facts, member, texts


def capabilities(declared: Any) -> list[str]:
    """Declared capabilities as dotted paths: `tools`, `tools.listChanged`, `extensions.io.modelcontextprotocol/tasks`.

    What is declared as false is not declared. Deeper than the name of an extension or an experiment nothing is told.
    """
    if not isinstance(declared, dict):
        return []
    found: list[str] = []
    for name, value in declared.items():
        if value is False or value is None:
            continue
        named = (
            []
            if not isinstance(value, dict)
            else [one for one, said in value.items() if said is not False and said is not None]
        )
        if name not in ("extensions", "experimental"):
            found.append(name)
        found += [f"{name}.{one}" for one in named]
    return found


def implementation(info: Any) -> Facts:
    """Who a peer says it is: `name`, `version`, `title`."""
    return texts(info, name="name", version="version", title="title") if isinstance(member(info, "name"), str) else {}
