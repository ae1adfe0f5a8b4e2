// A live page: rows as they come, sittings to choose from. Its server only reads captures; nothing here asks it for more than that.

const DRAW_MS = 500; // diagram, findings and numbers are asked for again no sooner,
const DRAW_SHARE = 10; // nor before ten times as long as the server took over them the last time
const LIST_MS = 1000;

const live = (() => {
  const scroll = byId("scroll");
  const wanted = location.hash; // what the address asks for, until there are rows that it can be about
  let hasRows = false;
  let isWaiting = false;
  let pauseMs = DRAW_MS;

  function start() {
    document.body.classList.add("live");
    if (data.sitting) listen();
    else said("nothing has been recorded yet");
    choices();
    setInterval(choices, LIST_MS);
  }

  function said(text) {
    byId("live").textContent = text;
  }

  function listen() {
    const source = new EventSource(`events?sitting=${encodeURIComponent(data.sitting)}`);
    source.addEventListener("message", (event) => take(JSON.parse(event.data)));
    source.addEventListener("open", () => said("live"));
    source.addEventListener("error", () => said("not connected: is mcpspy web still running, and the sitting still there?"));
  }

  function take(news) {
    const number = rows[state.chosen - 1]?.row;
    if (news.look) beginAnew(news.look);
    const follows = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 2 * ROW;
    for (const [index, ...values] of news.rows) put(index, values);
    Object.assign(data.progress, news.progress);
    if (news.sources) {
      byId("verdict").textContent = news.verdict;
      byId("sources").textContent = news.sources.join("\n");
      data.addresses = news.addresses;
      controls.exports();
    }
    if (news.look && number) state.chosen = (rowByNumber.get(number)?.index ?? -1) + 1;
    if (!hasRows && rows.length) recallAll();
    show(news, follows);
    drawLater();
  }

  // The server begins anew, as it does for each connection: places of rows may be others than before.
  function beginAnew(name) {
    data.look = name;
    rows.length = 0;
    rowByNumber.clear();
    asked.clear();
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
    isOutdated = true;
    waterfall.render();
    controls.facets();
    sift({ scroll: false });
    if (news.rows.some(([index]) => index + 1 === state.chosen)) tell("chosen-here");
    if (follows && !state.chosen) scroll.scrollTop = scroll.scrollHeight;
  }

  // What is made of all rows is asked for now and then, and not with every row.
  function drawLater() {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(async () => {
      isWaiting = false;
      const before = performance.now();
      const made = await fetched("whole").catch(() => undefined);
      pauseMs = Math.max(DRAW_MS, DRAW_SHARE * (performance.now() - before));
      if (made) redraw(made);
    }, pauseMs);
  }

  function redraw(made) {
    Object.assign(data, made);
    for (const row of rows) row.marks = 0;
    for (const one of made.findings) if (rowByNumber.has(one.row)) rowByNumber.get(one.row).marks = 1;
    findings.render();
    picture.lay(data.diagram);
    list.render({ anew: true });
  }

  async function choices() {
    const sittings = await fetch("sittings").then((answer) => answer.json()).catch(() => undefined);
    if (!sittings) return;
    const newest = sittings[0]?.sitting;
    if (data.follows && newest && newest !== data.sitting) location.replace(location.pathname);
    byId("sittings").replaceChildren(...sittings.map(entry));
  }

  function entry(one) {
    return make("a", { href: `?sitting=${encodeURIComponent(one.sitting)}`, "aria-current": one.sitting === data.sitting ? "page" : undefined },
      make("strong", {}, one.client), make("span", { class: "dim" }, ` ${one.when}${one.live ? " · live" : ""}`), make("br"), one.servers.join(", "));
  }

  return { start };
})();
