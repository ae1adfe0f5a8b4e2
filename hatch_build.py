"""Two hooks of the build: one compiles mcpspy/speedups.c, the other puts the address of the project into its metadata.

A wheel with speedups serves every CPython from 3.11 on (abi3), one without them every machine. An editable install gets them in
place. Without a C compiler the build goes on without them; `MCPSPY_PURE=1` leaves them out.
The address is `repository` in pyproject.toml: see docs/release.md.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SOURCE = "mcpspy/speedups.c"
TARGET = "mcpspy/speedups.abi3.so"


class SpeedupsHook(BuildHookInterface[Any]):
    """The compilation, before the files of a wheel are collected."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source, in_place = Path(self.root, SOURCE), Path(self.root, TARGET)
        is_editable = version == "editable"
        target = in_place if is_editable else Path(tempfile.mkdtemp(), in_place.name)
        target.unlink(missing_ok=True)
        if os.environ.get("MCPSPY_PURE") == "1":
            return
        if reason := compile_speedups(source, target):
            self.app.display_warning(f"mcpspy is built without its speedups: {reason}")
        elif not is_editable:
            platform = sysconfig.get_platform().translate(str.maketrans("-.", "__"))
            build_data.update(pure_python=False, tag=f"cp311-abi3-{platform}")
            build_data["force_include"][str(target)] = TARGET


def compile_speedups(source: Path, target: Path) -> str:
    """Compile; return why that failed, or an empty text."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-fPIC"]
    given = [word for name in ("CFLAGS", "ARCHFLAGS") for word in shlex.split(os.environ.get(name, ""))]  # the latter on macOS
    flags = ["-std=c11", "-O2", *given, f"-I{sysconfig.get_path('include')}"]
    try:
        subprocess.run([*compiler, *flags, *shared, str(source), "-o", str(target), "-lz"], check=True, capture_output=True)
    except OSError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        return str(error.stderr.decode(errors="replace"))
    return ""


class AddressHook(MetadataHookInterface):
    """The links of the project and of its README, which is shown outside of the repository. Without an address there are none."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        repository = self.config["repository"].rstrip("/")
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        here = f"{repository}/blob/v{metadata['version']}" if repository else ""
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(readme, here)}
        if repository:
            metadata["urls"] = {
                "Homepage": repository,
                "Documentation": f"{here}/docs/README.md",
                "Changelog": f"{here}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }


def with_absolute_links(markdown: str, folder: str) -> str:
    """Let relative links begin with `folder`, an URL; if it is empty, keep their words alone."""
    return re.sub(r"\[([^]]*)\]\((?!\w+:)([^)]*)\)", rf"[\1]({folder}/\2)" if folder else r"\1", markdown)
