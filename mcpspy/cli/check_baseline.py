"""The files of a baseline: one for each server, made to be looked at, kept under version control and compared with git diff."""

import json
import os
import re
import tempfile
from collections.abc import Iterable
from hashlib import sha256

from ..errors import BaselineError
from ..transcript.model import Transcript
from ..transcript.offers.baseline import Baseline, document, label_of, read_document
from ..transcript.offers.definitions import Offer
from ..views.text.escape import json_text

MAX_BYTES = 1 << 26
"""No server offers so much: a file that is larger is no baseline."""

_unsafe_in_name = re.compile(r"[^A-Za-z0-9._-]").sub


def file_name(server: str) -> str:
    """What the file of a server is called: its label, and a digest of it where it had to be changed."""
    plain = _unsafe_in_name("-", server)[:80]
    if plain and plain == server and not plain.startswith((".", "-")):
        return f"{plain}.json"
    return f"{plain.lstrip('.-') or 'server'}-{sha256(server.encode('utf-8', 'replace')).hexdigest()[:8]}.json"


def baselines(folder: str, transcript: Transcript) -> dict[str, Baseline]:
    """The accepted definitions of the servers in `transcript`, by label; a server without a file is not among them.

    Raises: BaselineError: for a file that cannot be read as one. OSError: if the folder cannot be read.
    """
    found: dict[str, Baseline] = {}
    for server in dict.fromkeys(map(label_of, transcript.captures)):
        path = os.path.join(folder, file_name(server))
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES)
        except FileNotFoundError:
            continue
        found[server] = _read(path, data)
    return found


def accept(folder: str, offered: Iterable[Offer], before: dict[str, Baseline]) -> dict[str, tuple[str, Baseline]]:
    """Write what is offered as the new baseline: by label the file and what stands in it now. Of several captures the last counts.

    What the captures show no whole list of stays as it was accepted. Raises: OSError.
    """
    accepted = dict(before)
    for one in offered:
        label = label_of(one.capture_info)
        accepted[label] = accepted.get(label, Baseline(label)).taken(one)
    os.makedirs(folder, exist_ok=True)
    written: dict[str, tuple[str, Baseline]] = {}
    for label, baseline in accepted.items():
        if baseline.parts:
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
    """In one step: whoever reads meanwhile finds the old file or the new one, and a full disk leaves the old one."""
    text = json.dumps(document(baseline), ensure_ascii=False, indent=2)
    data = "\n".join(map(json_text, text.split("\n"))).encode() + b"\n"
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".baseline-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # it is to be committed, and holds no secrets
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
