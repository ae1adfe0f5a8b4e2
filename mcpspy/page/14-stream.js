// The one stream of a live page: open while the page can be seen, and as long as this browser has few of them. Browsers open six
// connections to one server; were all of them streams, no page could ask for anything more.

const STREAMS = 4;
const PATIENCE_MS = 500;

const stream = (() => {
  let leave;

  // Call `take` with what comes and `say` with how things stand, for as long as the page is there.
  function start(take, say) {
    const look = () => {
      if (document.visibilityState !== "visible") leave?.();
      else if (!leave) begin(take, say);
    };
    document.addEventListener("visibilitychange", look);
    look();
  }

  // Wait for one of the browser's places, and hold it for as long as the stream is open.
  function begin(take, say) {
    const waiting = new AbortController();
    let close = () => {};
    leave = () => {
      leave = undefined;
      waiting.abort();
      close();
    };
    const hold = () => {
      if (waiting.signal.aborted) return undefined; // another place was free as well
      waiting.abort();
      return new Promise((resolve) => {
        const source = listen(take, say);
        close = () => {
          source.close();
          resolve();
        };
      });
    };
    setTimeout(() => {
      if (!waiting.signal.aborted) say(`not live: ${STREAMS} other windows are; hide one of them`);
    }, PATIENCE_MS);
    if (!navigator.locks) hold();
    else {
      for (let place = 0; place < STREAMS; place += 1) {
        navigator.locks.request(`stream ${place}`, { signal: waiting.signal }, hold).catch(() => undefined);
      }
    }
  }

  function listen(take, say) {
    const source = new EventSource(`events?sitting=${encodeURIComponent(data.sitting)}`);
    source.addEventListener("message", (event) => take(JSON.parse(event.data)));
    source.addEventListener("open", () => say("live"));
    source.addEventListener("error", async () =>
      say(source.readyState === EventSource.CLOSED ? await refusal() : "not connected: is mcpspy web still running?"),
    );
    return source;
  }

  // Why the server has no stream for this page.
  async function refusal() {
    const sittings = await fetched("sittings").catch(() => []);
    if (sittings.some((one) => one.sitting === data.sitting)) return "not live: too many pages look at once; close some";
    return rows.length ? "no longer in the store: what is shown is what was read" : "this sitting is not in the store";
  }

  return { start };
})();
