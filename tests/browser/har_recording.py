"""HARs of an MCP client in a web page, recorded by Chromium's DevTools and by Playwright, beside the capture of a tap.

    python -m tests.browser.har_recording     record the files of tests/imports/recorded anew

The client speaks to tests/peers/pyserver.py. DevTools write their HAR in their own front end, which Chromium serves on its debugging
port: the text that "Save all as HAR" writes to a file is taken from the function that makes it.
"""

import re
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from captures.make import DEMO
from captures.serving import PEERS, port, started, tapped
from docs.draw import CALM
from tests.deadlines import DEADLINE_S

KEPT = Path(__file__).parents[1] / "imports" / "recorded"
PATHS = {"streamable": ("http", "/mcp"), "sse": ("sse", "/sse")}
"""The transports: the server's word for each, and its path."""

NOT_DEVTOOLS = re.compile("^(?!.*/devtools/)")

PAGE = "<!doctype html><title>client</title>"
CLIENT = """
async ([kind, path]) => {
  let endpoint = path, session = null, id = 0
  const waiting = new Map()
  const asked = {protocolVersion: "2025-06-18", capabilities: {elicitation: {}}, clientInfo: {name: "page", version: "1"}}

  const take = (message) => {
    if (message.method === "elicitation/create")
      send({id: message.id, result: {action: "accept", content: {name: "Zoë → €"}}})
    else if (message.method === undefined)
      waiting.get(message.id)?.(message)
    else
      waiting.get(message.method)?.(message)
  }
  const read = async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      text += piece.value.replaceAll("\\r\\n", "\\n")
      for (let end = text.indexOf("\\n\\n"); end >= 0; end = text.indexOf("\\n\\n")) {
        const data = text.slice(0, end).split("\\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6))
        text = text.slice(end + 2)
        if (data.length && data[0]) take(JSON.parse(data.join("\\n")))
      }
    }
  }
  const fields = () => {
    const common = {"Content-Type": "application/json", Accept: "application/json, text/event-stream"}
    return session ? {...common, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"} : common
  }
  const send = async (message, signal) => {
    const body = JSON.stringify({jsonrpc: "2.0", ...message})
    const response = await fetch(endpoint, {method: "POST", headers: fields(), body, signal})
    session ??= response.headers.get("mcp-session-id")
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) read(response).catch(() => {})
    else await response.text()
  }
  const heard = (key) => new Promise((resolve) => waiting.set(key, resolve))
  const call = async (method, params) => {
    id += 1
    const answer = heard(id)
    await send({id, method, ...(params && {params})})
    return answer
  }

  let source = null, stop = new AbortController()
  if (kind === "sse") {
    source = new EventSource(path)
    endpoint = await new Promise((resolve) => source.addEventListener("endpoint", (event) => resolve(event.data)))
    source.addEventListener("message", (event) => take(JSON.parse(event.data)))
  }
  await call("initialize", asked)
  await send({method: "notifications/initialized"})
  if (kind !== "sse") {
    const listening = await fetch(endpoint, {headers: {...fields(), Accept: "text/event-stream"}, signal: stop.signal})
    read(listening).catch(() => {})
  }
  await call("tools/list")
  await call("tools/call", {name: "add", arguments: {a: 1, b: 2}})
  await call("tools/call", {name: "slow", arguments: {n: 2}, _meta: {progressToken: "steps"}})
  await call("tools/call", {name: "greet", arguments: {}})
  await call("resources/read", {uri: "lab://café/x"})
  await call("tools/call", {name: "sing", arguments: {}})
  if (kind !== "sse") {
    const begun = heard("notifications/progress")
    const slow = {id: "last", method: "tools/call", params: {name: "slow", arguments: {n: 50}, _meta: {progressToken: "cut"}}}
    const cut = new AbortController()
    await send(slow, cut.signal)
    await begun
    cut.abort()
    stop.abort()
    await fetch(endpoint, {method: "DELETE", headers: fields()})
  }
  source?.close()
  return id
}
"""
SAVE_ALL_AS_HAR = """
async () => {
  const {Writer} = await import("./models/har/har.js")
  const {NetworkLog} = await import("./models/logs/logs.js")
  const {Progress} = await import("./core/common/common.js")
  const progress = new Progress.CompositeProgress(new Progress.Progress())
  return Writer.Writer.harStringForRequests(NetworkLog.NetworkLog.instance().requests(), {sanitize: false}, progress)
}
"""


@dataclass(frozen=True, slots=True)
class Hars:
    """Paths of what one session left: the HAR of DevTools, that of Playwright, and the tap's capture."""

    devtools: Path
    playwright: Path
    capture: Path

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """All three."""
        return self.devtools, self.playwright, self.capture

    @classmethod
    def of(cls, kind: str, folder: Path) -> "Hars":
        """Return the paths for a session over the transport `kind`."""
        return cls(*(folder / f"chromium-{kind}{end}" for end in (".devtools.har", ".playwright.har", ".mcpspy")))


def record(kind: str, folder: Path, program: str) -> Hars:
    """Play a session over the transport `kind` in Chromium, the `program`, and record it in `folder`, which is empty."""
    transport, path = PATHS[kind]
    made = Hars.of(kind, folder)
    (folder / "home").mkdir()
    with ExitStack() as running:
        words = [sys.executable, str(PEERS / "pyserver.py"), transport, "0"]
        said = running.enter_context(started(words, folder, folder / "server.log", {}))
        url = running.enter_context(
            tapped(f"http://127.0.0.1:{port(said)}{path}", folder, "--label", "lab", "--capture", str(made.capture))
        )
        made.devtools.write_text(browsed(url, kind, path, program, made.playwright), encoding="utf-8")
    return made


def browsed(url: str, kind: str, path: str, program: str, har: Path) -> str:
    """Run the client in a page of the origin of `url`. Returns the HAR of DevTools; that of Playwright is written to `har`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = [*CALM, "--remote-debugging-port=0", "--remote-allow-origins=*"]
        profile = har.parent / "profile"
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program,
            args=options,
            timeout=DEADLINE_S * 1000,
            record_har_path=har,
            record_har_content="embed",
            record_har_url_filter=NOT_DEVTOOLS,
        )
        try:
            page = context.new_page()
            page.route("**/client", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
            page.goto(url.removesuffix(path) + "/client")
            page.unroute_all()
            number = (profile / "DevToolsActivePort").read_text().split()[0]
            target = context.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]["targetId"]
            front = context.new_page()
            host = f"127.0.0.1:{number}"
            front.goto(f"http://{host}/devtools/devtools_app.html?panel=network&ws={host}/devtools/page/{target}")
            front.locator(".panel.network").wait_for()
            page.evaluate(CLIENT, [kind, path])
            text = front.evaluate(SAVE_ALL_AS_HAR)
            assert isinstance(text, str)
        finally:
            context.close()
    return text


def main() -> None:
    """Record the kept files anew."""
    for kind in PATHS:
        DEMO.mkdir(mode=0o700)
        try:
            made, kept = record(kind, DEMO, shutil.which("chromium") or "chromium"), Hars.of(kind, KEPT)
            for source, target in zip(made.files, kept.files, strict=True):
                shutil.copyfile(source, target)
        finally:
            shutil.rmtree(DEMO)


if __name__ == "__main__":
    main()
