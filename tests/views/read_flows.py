"""A script for mitmproxy's Python: prints the flows of a file as JSON, with method, URL, status, and both bodies."""

import json
import sys
from pathlib import Path

from mitmproxy.io import FlowReader  # type: ignore[import-not-found]  # it has an environment of its own

flows = []
with Path(sys.argv[1]).open("rb") as file:
    for flow in FlowReader(file).stream():
        request, response = flow.request, flow.response
        answered = None if response is None else [response.status_code, (response.get_content(strict=False) or b"").decode()]
        body = (request.raw_content or b"").decode()
        flows.append({"method": request.method, "url": request.url, "said": body, "answered": answered})
sys.stdout.write(json.dumps(flows))
