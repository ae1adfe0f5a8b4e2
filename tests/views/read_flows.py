"""A script for mitmproxy's Python: prints the flows of a file as JSON, with method, URL, status, and both bodies."""

import json
import sys
from pathlib import Path

from mitmproxy.io import FlowReader  # type: ignore[import-not-found]  # it has an environment of its own

found = []
with Path(sys.argv[1]).open("rb") as file:
    for flow in FlowReader(file).stream():
        request, response = flow.request, flow.response
        answered = None if response is None else [response.status_code, (response.get_content(strict=False) or b"").decode()]
        said = (request.raw_content or b"").decode()
        found.append({"method": request.method, "url": request.url, "said": said, "answered": answered})
sys.stdout.write(json.dumps(found))
