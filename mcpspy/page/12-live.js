// A live page: rows as they come, sittings to choose from. Its server only reads captures; nothing here asks it for more than that.

const DRAW_MS = 500; // diagram, findings and numbers are asked for again no sooner
const LIST_MS = 3000;

const live = (() => {
  let waiting = 0;
  let isDrawn = false;

  function start() {
    document.body.classList.add("live");
    const source = new EventSource(`events?sitting=${encodeURIComponent(data.sitting)}`);
    source.addEventListener("message", (event) => take(JSON.parse(event.data)));
    source.addEventListener("open", () => { byId("live").textContent = "live"; });
    source.addEventListener("error", () => { byId("live").textContent = "not connected: is mcpspy web still running?"; });
    list();
    setInterval(list, LIST_MS);
  }

  function take(news) {
    if (news.anew) { rows.length = 0; rowByNumber.clear(); }
    const follows = isAtEnd();
    for (const [index, ...values] of news.rows) put(index, values);
    Object.assign(data.progress, news.progress);
    byId("verdict").textContent = news.verdict;
    byId("sources").textContent = news.sources.join("\n");
    clock = measured();
    found.clear();
    waterfall.render();
    controls.facets();
    sift();
    if (news.rows.some(([index]) => index + 1 === state.chosen)) tell("chosen-here");
    if (follows) list_end();
    isDrawn = false;
    later();
  }

  function isAtEnd() {
    const { scrollTop, scrollHeight, clientHeight } = list_element();
    return scrollTop + clientHeight >= scrollHeight - 2 * ROW;
  }

  const list_element = () => byId("scroll");
  const list_end = () => { list_element().scrollTop = list_element().scrollHeight; };

  // What is made of all rows is asked for when it is looked at, and not with every row.
  function later() {
    if (waiting || isDrawn) return;
    waiting = setTimeout(async () => {
      waiting = 0;
      if (state.tab === "timeline" && isDrawn) return;
      isDrawn = true;
      const made = await fetched("whole").catch(() => undefined);
      if (!made) return;
      Object.assign(data, made);
      findings.render();
      picture.lay(data.diagram);
    }, DRAW_MS);
  }

  async function list() {
    const found_sittings = await fetch("sittings").then((answer) => answer.json()).catch(() => undefined);
    if (!found_sittings) return;
    const newest = found_sittings[0]?.sitting;
    if (data.follows && newest && newest !== data.sitting) location.replace(location.pathname);
    byId("sittings").replaceChildren(...found_sittings.map((one) => make("a", {
      href: `?sitting=${encodeURIComponent(one.sitting)}`, "aria-current": one.sitting === data.sitting ? "page" : undefined,
    }, make("strong", {}, one.client), make("span", { class: "dim" }, ` ${one.when}${one.live ? " · live" : ""}`), make("br"), one.servers.join(", "))));
  }

  return { start };
})();
