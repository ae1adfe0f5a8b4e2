// A live page: rows as they arrive, and recordings to choose from. Its server only reads captures, and nothing here asks for more.

const ASK_MS = 500; // the least time between requests for diagram, findings and numbers
const PAINT_MS = 100; // the least time between updates of overview, facets and search
const SHARE = 10; // and at least this many times the duration of the last one
const LIST_MS = 1000;
const TICK_MS = 250; // the time between redraws while calls are pending
const MANY_SERVERS = 4;

// Returns a function that schedules `work` once, however often it is called until then.
function seldom(work, leastMs) {
  let isDue = false;
  let pauseMs = leastMs;
  return () => {
    if (isDue) return;
    isDue = true;
    setTimeout(async () => {
      isDue = false;
      const before = performance.now();
      await work();
      pauseMs = Math.max(leastMs, SHARE * (performance.now() - before));
    }, pauseMs);
  };
}

const live = (() => {
  const scroll = byId("scroll");
  const wanted = location.hash; // the state in the address, until there are rows to apply it to
  let hasRows = false;
  let hasFindings = false;
  let isChecked = false; // by the server; the page may not have the findings yet
  let listed = "";
  const PARTS = { findings: mark, diagram: () => picture.lay(data.diagram), numbers: () => findings.render() };
  const stale = new Set();

  function start() {
    document.body.classList.add("live");
    byId("count").removeAttribute("aria-live"); // it would be read out all the time
    if (data.recording) stream.start(take, said);
    else said("nothing has been recorded yet");
    document.addEventListener("visibilitychange", choices);
    choices();
    setInterval(choices, LIST_MS);
    grow();
    watch((what) => {
      if (what === "tab") learn();
    });
  }

  // The bars of pending calls grow, and the axis with them.
  const grow = seldom(() => {
    if (document.visibilityState === "visible" && rows.some(isPending)) {
      clock = measured();
      list.render({ anew: true });
      waterfall.render();
    }
    setTimeout(grow);
  }, TICK_MS);

  function said(text) {
    byId("live").textContent = text;
  }

  function take(news) {
    const number = rows[state.chosen - 1]?.row;
    if (news.look) beginAnew(news.look);
    const follows = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 2 * ROW;
    for (const [index, ...values] of news.rows) put(index, values);
    Object.assign(data.progress, news.progress);
    if (news.captures) {
      byId("summary").textContent = news.summary;
      byId("captures").textContent = news.captures.join("\n");
      data.addresses = news.addresses;
      data.end = news.end;
      data.lanes = news.lanes;
      const wasChecked = isChecked;
      isChecked = news.checked;
      if (isChecked !== wasChecked) findings.render();
      exporting.render();
    }
    if (news.look && number) state.chosen = (rowByNumber.get(number)?.index ?? -1) + 1;
    if (!hasRows && rows.length) recallAll();
    show(news, follows);
  }

  // The server starts from the beginning for each connection: rows may have other positions than before.
  function beginAnew(name) {
    data.look = name;
    rows.length = 0;
    rowByNumber.clear();
    asked.clear();
    openFolds.clear();
  }

  function recallAll() {
    hasRows = true;
    history.replaceState(null, "", location.pathname + location.search + wanted);
    recall();
    controls.show();
    tell("tab");
    tell("chosen");
  }

  function show(news, follows) {
    clock = measured();
    sift({ scroll: false });
    if (news.rows.some(([index]) => index + 1 === state.chosen)) tell("chosen-here");
    if (follows && !state.chosen) scroll.scrollTop = scroll.scrollHeight;
    paint();
    search();
    Object.keys(PARTS).forEach((part) => stale.add(part));
    learn();
  }

  const paint = seldom(() => {
    waterfall.render();
    controls.facets();
  }, PAINT_MS);

  const search = seldom(() => lookUp({ anew: true }), PAINT_MS);

  // Data about all rows is requested now and then, and only for the visible tab.
  const learn = seldom(async () => {
    for (const [part, redraw] of Object.entries(PARTS)) {
      if (!stale.has(part) || (part !== "findings" && part !== state.tab)) continue;
      stale.delete(part);
      const made = await fetched(part).catch(() => undefined);
      if (made === undefined) continue;
      data[part] = made;
      redraw();
    }
  }, ASK_MS);

  function mark() {
    for (const row of rows) row.flagged = 0;
    for (const one of data.findings) if (rowByNumber.has(one.row)) rowByNumber.get(one.row).flagged = 1;
    hasFindings = true;
    findings.render();
    list.render({ anew: true });
  }

  async function choices() {
    if (document.visibilityState !== "visible") return;
    const recordings = await fetched("recordings").catch(() => undefined);
    const told = JSON.stringify(recordings);
    if (!recordings || told === listed) return;
    listed = told;
    const newest = recordings[0]?.recording;
    if (data.follows && newest && newest !== data.recording) location.replace(location.pathname);
    byId("recordings").replaceChildren(...recordings.map(entry));
  }

  function entry(one) {
    const others = one.servers.length - MANY_SERVERS;
    const servers = one.servers.slice(0, MANY_SERVERS).join(", ");
    return make(
      "a",
      {
        href: `?recording=${encodeURIComponent(one.recording)}`,
        title: one.servers.join(", "),
        "aria-current": one.recording === data.recording ? "page" : undefined,
      },
      make("strong", {}, one.client),
      make("span", { class: "dim" }, ` ${one.when}${one.live ? " · live" : ""}`),
      make("br"),
      make("span", { class: "servers" }, others > 0 ? `${servers} and ${others} more` : servers),
    );
  }

  return { start, knowsFindings: () => hasFindings && isChecked };
})();
