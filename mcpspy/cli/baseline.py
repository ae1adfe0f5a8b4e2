"""The files of a baseline: one for each server, to be reviewed, kept under version control and compared with git diff."""

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from ..errors import BaselineError
from ..lazy_pattern import lazy_pattern
from ..setup.files import write_through
from ..transcript.definitions import Baseline, Offer, document, read_document
from ..transcript.model import Transcript
from ..views.text.escape import json_text

MAX_BYTES = 1 << 26
"""No server offers more: a larger file is not a baseline."""

_unsafe_in_name = lazy_pattern(r"[^A-Za-z0-9._-]")


def file_name(server: str) -> str:
    """Name the file of a server: its label, and a digest of the label where it had to be changed."""
    plain = _unsafe_in_name.sub("-", server)[:80]
    if plain and plain == server and not plain.startswith((".", "-")):
        return f"{plain}.json"
    return f"{plain.lstrip('.-') or 'server'}-{sha256(server.encode('utf-8', 'replace')).hexdigest()[:8]}.json"


def baselines(folder: str, transcript: Transcript) -> dict[str, Baseline]:
    """Read the accepted definitions of the servers in `transcript`, by label; a server without a file is left out.

    Raises: BaselineError: for a file that cannot be read as one. OSError: if the folder cannot be read.
    """
    accepted: dict[str, Baseline] = {}
    for server in dict.fromkeys(capture.baseline for capture in transcript.captures):
        path = os.path.join(folder, file_name(server))
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES)
        except FileNotFoundError:
            continue
        accepted[server] = _read(path, data)
    return accepted


def accept(folder: str, offered: Iterable[Offer], before: dict[str, Baseline]) -> dict[str, tuple[str, Baseline]]:
    """Write what is offered as the new baseline, and give by label its file and content. Of several captures the last counts.

    Kinds of definitions whose complete list is in no capture stay as they were accepted. Raises: OSError.
    """
    accepted = dict(before)
    for offer in offered:
        label = offer.capture_info.baseline
        accepted[label] = accepted.get(label, Baseline(label)).updated(offer)
    os.makedirs(folder, exist_ok=True)
    written: dict[str, tuple[str, Baseline]] = {}
    for label, baseline in accepted.items():
        if baseline.by_kind:
            path = os.path.join(folder, file_name(label))
            _write(path, baseline)
            written[label] = path, baseline
    return written


def _read(path: str, data: bytes) -> Baseline:
    try:
        return read_document(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BaselineError(path, str(error)) from error


def _write(path: str, baseline: Baseline) -> None:
    """Replace the file in one step: a reader finds the old file or the new one, and a full disk leaves the old one."""
    text = json.dumps(document(baseline), ensure_ascii=False, indent=2)
    data = "\n".join(map(json_text, text.split("\n"))).encode() + b"\n"
    write_through(Path(path), data, 0o644)  # it will be committed, and holds no secrets
