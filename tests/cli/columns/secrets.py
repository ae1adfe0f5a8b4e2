"""A capture with secrets: a token of a well-known service, and a password that only its name gives away."""

from pathlib import Path

from tests.sharing.hiding import lines as written
from tests.views.scenes import call, failed, opened, refused

TOKEN = "ghp_" + "a1B2" * 9


def secretive(folder: Path) -> Path:
    scene = opened("weather").client(call(1, "login", password="tr0ub4dor-and-3")).server(failed(1, f"no such token: {TOKEN}"))
    scene.client(call(2, "again", text="it was tr0ub4dor-and-3")).server(refused(2, -32000, "tr0ub4dor-and-3 is wrong"))
    path = folder / "secretive.mcpspy"
    path.write_bytes(written(scene.closes().records))
    return path
