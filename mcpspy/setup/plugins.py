"""The files in which the installed plugins of Claude Code name servers: `.mcp.json`, `plugin.json`, or a file that the latter names.

`.mcp.json` has its servers under `mcpServers`, or at the top. Source: https://code.claude.com/docs/en/plugins-reference#mcp-servers
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Keys = tuple[str, ...]

INSTALLED = "installed_plugins.json"
SERVERS = "mcpServers"


def plugin_files(folder: Path) -> Iterator[tuple[Path, Keys]]:
    """Find the files of the plugins that `folder`, Claude Code's for plugins, lists as installed, and the keys of their servers."""
    plugins = _object(_object(folder / INSTALLED).get("plugins"))
    installs = [install for value in plugins.values() for install in (value if isinstance(value, list) else [value])]
    roots = [Path(str(_object(install).get("installPath") or "")) for install in installs]
    for root in dict.fromkeys(root for root in roots if root.is_absolute()):
        manifest = root / ".claude-plugin" / "plugin.json"
        yield manifest, (SERVERS,)
        named = _object(manifest).get(SERVERS)
        names = [".mcp.json", *([named] if isinstance(named, str) and named.endswith(".json") else [])]
        for file in dict.fromkeys(root / name for name in names):
            if file.resolve().is_relative_to(root.resolve()):  # a plugin names its own files only
                yield file, (SERVERS,) if SERVERS in _object(file) else ()


def _object(value: Any) -> dict[str, Any]:
    """Return an object; that of the file, if `value` is a path. Anything else is an empty one."""
    if isinstance(value, Path):
        try:
            value = json.loads(value.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
