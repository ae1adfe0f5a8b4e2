// The event stream of a live page, open while the page is visible. Browsers open six connections to one server; if all were streams,
// no page could make a request, so their number is limited.

const STREAMS = 4;
const PATIENCE_MS = 500;

const stream = (() => {
  let leave;

  // Call `take` with each event and `say` with the state of the connection, as long as the page exists.
  function start(take, say) {
    const look = () => {
      if (document.visibilityState !== "visible") leave?.();
      else if (!leave) begin(take, say);
    };
    document.addEventListener("visibilitychange", look);
    look();
  }

  // Wait for one of the browser's slots, and hold it as long as the stream lasts.
  function begin(take, say) {
    const waiting = new AbortController();
    let close = () => {};
    leave = () => {
      leave = undefined;
      waiting.abort();
      close();
    };
    const hold = () => {
      if (waiting.signal.aborted) return undefined; // another slot was free as well
      waiting.abort();
      return new Promise((resolve) => {
        const source = listen(take, say, resolve);
        close = () => {
          source.close();
          resolve();
        };
      });
    };
    setTimeout(() => {
      if (!waiting.signal.aborted) say(`not live: ${STREAMS} other windows are; hide one of them`);
    }, PATIENCE_MS);
    if (navigator.locks) queue(hold, waiting.signal);
    else hold();
  }

  function queue(hold, signal) {
    for (let place = 0; place < STREAMS; place += 1) {
      navigator.locks.request(`stream ${place}`, { signal }, hold).catch(() => undefined);
    }
  }

  // The browser reconnects by itself, unless the server refuses; then the stream is `over`.
  function listen(take, say, over) {
    const source = new EventSource(`events?recording=${encodeURIComponent(data.recording)}`);
    source.addEventListener("message", (event) => take(JSON.parse(event.data)));
    source.addEventListener("open", () => say("live"));
    source.addEventListener("error", async () => {
      if (source.readyState !== EventSource.CLOSED) {
        say("not connected: is mcpspy web still running?");
        return;
      }
      over();
      say(await refusal());
    });
    return source;
  }

  // The reason why the server has no stream for this page.
  async function refusal() {
    const recordings = await fetched("recordings").catch(() => []);
    if (recordings.some((one) => one.recording === data.recording)) return "not live: too many pages look at once; close some";
    return rows.length ? "no longer in the store: what is shown is what was read" : "this recording is not in the store";
  }

  return { start };
})();
