// The state of the page: search, facets, the selected row, the tab. It is kept in the address, so that a view can be shared.

const FACETS = ["from", "method", "tool", "outcome", "lane", "kind"];
const state = { search: "", facets: {}, slow: 0, chosen: 0, tab: "timeline", isSifted: false, sort: "" };
let shown = rows;
const watchers = [];

// `watch(what => …)` reports changes: `rows` (the list), `chosen`, `tab`. Listeners that change the layout are called `early`, so
// that others know the room when they scroll to the selected row.
function watch(watcher, { early = false } = {}) {
  if (early) watchers.unshift(watcher);
  else watchers.push(watcher);
}

function tell(what) {
  watchers.forEach((watcher) => watcher(what));
}

// The values of a row for a facet. A row has two lanes, and may have no tool.
function facetValues(row, facet) {
  switch (facet) {
    case "tool":
      return row.method === "tools/call" ? [row.target] : [];
    case "lane":
      return [row.client, row.server];
    case "outcome":
      return [row.outcome.split(" after ")[0]]; // of a cancelled call it has the time
    default:
      return [row[facet]];
  }
}

// What is searched for: `{ kind, text }`, where `kind` is `none`, `text` (plain text), `filter` (with its `test`) or `wrong` (with
// the `error`). While a filter is wrong, the rows stay as they were.
let query = { kind: "none", text: "" };
let lastQuery = query;

function readQuery() {
  const text = state.search;
  if (query.text === text) return;
  query = queryOf(text);
  if (query.kind !== "wrong") lastQuery = query;
}

function queryOf(text) {
  if (!text.trim()) return { kind: "none", text };
  try {
    return { kind: "filter", text, test: filterOf(text) };
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    return isMeant(text) ? { kind: "wrong", text, error } : { kind: "text", text };
  }
}

// What a live page asks its server for.
function searched() {
  if (lastQuery.kind === "filter") return [lastQuery.text];
  return lastQuery.kind === "text" ? lastQuery.text.toLowerCase().split(/\s+/).filter(Boolean) : [];
}

function matches(row) {
  if (state.slow && !(lasted(row) >= state.slow)) return false;
  for (const facet of FACETS) {
    if (state.facets[facet] && !facetValues(row, facet).includes(state.facets[facet])) return false;
  }
  if (lastQuery.kind === "filter") return isLive ? Boolean(holders.get(lastQuery.text)?.has(row.index)) : lastQuery.test(row);
  return searched().every((word) => wordsOf(row).includes(word) || String(row.row) === word || payloadHolds(row, word));
}

// The columns by which rows are sorted, with the value that is compared. A minus before the name means the largest first.
const SORTS = {
  took: (row) => row.took ?? row.waited,
  call: (row) => `${row.method} ${row.target} ${row.params}`,
  outcome: (row) => [row.outcome, row.detail].filter(Boolean).join(": "),
};
const FIRST_UP = new Set(["call", "outcome"]);

// Sort rows; those without a value come last, and equal ones stay in the order of time.
function sorted(some) {
  const value = SORTS[state.sort.replace("-", "")];
  if (!value) return some;
  const sign = state.sort.startsWith("-") ? -1 : 1;
  const has = (row) => row.kind !== "log" && value(row) !== null && value(row) !== "";
  const compare = (a, b) => (typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0);
  const valued = some.filter(has).sort((a, b) => sign * compare(value(a), value(b)) || a.index - b.index);
  return [...valued, ...some.filter((row) => !has(row))];
}

// Long runs of stderr show their first and last lines, as on the terminal, until a line between them is chosen.
const FOLD = { head: 3, tail: 2 };
const openFolds = new Set();
const hiddenRows = new Set();

function withFolds(some) {
  const seen = [];
  for (let from = 0, to; from < some.length; from = to) {
    const first = some[from];
    to = from + 1;
    while (first.kind === "log" && some[to]?.kind === "log" && some[to].capture === first.capture) to += 1;
    const hidden = some.slice(from + FOLD.head, Math.max(from, to - FOLD.tail));
    if (hidden.some((row) => row.index + 1 === state.chosen)) openFolds.add(hidden[0].index);
    if (hidden.length < 2 || openFolds.has(hidden[0].index)) {
      for (let at = from; at < to; at += 1) seen.push(some[at]);
      continue;
    }
    const tail = some.slice(to - FOLD.tail, to);
    const target = `… ${counted(hidden.length, "more line")} of stderr`;
    hidden.forEach((row) => hiddenRows.add(row.index));
    seen.push(...some.slice(from, from + FOLD.head), { ...hidden[0], at: tail[0].at, kind: "fold", target }, ...tail);
  }
  return seen;
}

// Compute which rows are shown.
function sift({ scroll = true } = {}) {
  readQuery();
  if (isLive) lookUp();
  state.isSifted = Boolean(lastQuery.kind !== "none" || state.slow || Object.values(state.facets).some(Boolean));
  hiddenRows.clear();
  const isAll = !state.isSifted && !state.sort && !data.isPart;
  shown = isAll ? withFolds(rows) : sorted(state.isSifted ? rows.filter(matches) : rows);
  tell(scroll ? "rows" : "rows-here");
  keep();
}

const awaited = new Set();
const missed = new Set(); // rows that changed while the server was searching

// A live page asks its server which payloads contain the words, then filters again. Until then the previous answer applies.
function lookUp({ anew = false } = {}) {
  const words = searched();
  for (const word of holders.keys()) if (!words.includes(word)) holders.delete(word);
  return Promise.all(words.filter((word) => anew || !holders.has(word)).map(ask));
}

async function ask(word) {
  if (awaited.has(word)) {
    missed.add(word);
    return;
  }
  if (!holders.has(word)) holders.set(word, new Set());
  awaited.add(word);
  const way = lastQuery.kind === "filter" ? "filter" : "search";
  const numbers = await fetched(`${way}?q=${encodeURIComponent(word)}`).catch(() => undefined);
  awaited.delete(word);
  if (numbers && holders.has(word)) {
    holders.set(word, new Set(numbers));
    sift({ scroll: false });
  }
  if (missed.delete(word)) await ask(word);
}

function choose(index) {
  state.chosen = index;
  if (hiddenRows.has(index - 1)) sift({ scroll: false });
  tell("chosen");
  keep();
}

function turn(tab) {
  state.tab = tab;
  tell("tab");
  keep();
}

// The address: `#row=7&q=…`. Unset values are left out.
function keep() {
  const words = new URLSearchParams();
  if (state.tab !== "timeline") words.set("tab", state.tab);
  const row = rows[state.chosen - 1];
  if (row) words.set(row.row ? "row" : "line", row.row || row.index + 1);
  if (state.search) words.set("q", state.search);
  if (state.sort) words.set("sort", state.sort);
  if (state.slow) words.set("slow", state.slow / 1e6);
  for (const facet of FACETS) if (state.facets[facet]) words.set(facet, state.facets[facet]);
  const hash = words.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  state.search = words.get("q") ?? "";
  state.slow = Number(words.get("slow") ?? 0) * 1e6 || 0;
  state.sort = words.get("sort") ?? "";
  FACETS.forEach((facet) => {
    state.facets[facet] = words.get(facet) ?? "";
  });
  state.tab = ["timeline", "diagram", "findings", "numbers"].includes(words.get("tab")) ? words.get("tab") : "timeline";
  const row = rowByNumber.get(Number(words.get("row"))) ?? rows[Number(words.get("line")) - 1];
  state.chosen = row ? row.index + 1 : 0;
}
