"""The hook of the build that compiles mcpspy/speedups.c, and goes on without it where there is no C compiler.

A wheel with it serves every CPython from 3.11 on (abi3), one without it every machine. An editable install gets it in place.
`MCPSPY_PURE=1` leaves it out.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
