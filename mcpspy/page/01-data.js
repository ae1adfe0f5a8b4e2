// The data of the page: all rows at once, and the details of a row when it is selected. A page in a file contains everything; a
// live page asks its server.

const data = JSON.parse(document.getElementById("data").textContent);
const isLive = Boolean(data.live);

// The script runs when the browser has read the first rows. The other rows, the diagram and the details of the rows follow it.
const isRead = () => document.readyState !== "loading";
const allRead = new Promise((resolve) => {
  if (isRead()) resolve();
  else document.addEventListener("DOMContentLoaded", resolve);
});

// A row of the list. `kind` is exchange, model call, unpaired, transaction, log or event; times are nanoseconds since the start.
const CALLS = new Set(["exchange", "model call"]);
const FIELDS = [
  "row",
  "kind",
  "at",
  "took",
  "from",
  "client",
  "server",
  "method",
  "target",
  "outcome",
  "style",
  "detail",
  "bytes",
  "capture",
  "flagged",
  "params",
  "waited",
];
const rows = [];
const rowByNumber = new Map();

// Add a row, or replace its earlier state. Returns the row.
function put(index, values) {
  const row = rows[index] ?? (rows[index] = { index, putAt: 0, words: undefined });
  for (let at = 0; at < FIELDS.length; at += 1) row[FIELDS[at]] = values[at];
  if (isLive) row.putAt = performance.now();
  row.words = undefined;
  if (row.row) rowByNumber.set(row.row, row);
  asked.delete(index);
  return row;
}

function wordsOf(row) {
  row.words ??= [row.method, row.target, row.params, row.outcome, row.detail].join(" ").toLowerCase();
  return row.words;
}

const asked = new Map();
data.rows.forEach((values, index) => put(index, values));

// Add the rows that follow the first ones, as soon as they have been read. Returns whether they are there.
function putRest() {
  if (rows.length === data.total) return true;
  if (!document.getElementById("diagram")) return false; // it comes after them
  JSON.parse(document.getElementById("rest").textContent).forEach((values, at) => put(data.rows.length + at, values));
  return true;
}

const blocks = new Map();

function block(row) {
  return document.getElementById(`rows-${Math.floor(row.index / data.chunk)}`);
}

function opened(element) {
  if (!blocks.has(element.id)) blocks.set(element.id, JSON.parse(element.textContent));
  return blocks.get(element.id);
}

function carriedAt(index) {
  const element = block(rows[index]);
  return element ? opened(element)[index] : undefined;
}

// Texts stored as differences: new text, and runs of the text of the same name in the row `like`.
const PIECED = {
  prompt: (what) => what.messages[0],
  curl: (what) => (typeof what.curl === "string" ? { text: what.curl } : what.curl),
};
const lastPut = { prompt: {}, curl: {} }; // the last ones restored, for readers that go through the rows in order

function putTogether(index, name) {
  const parts = [];
  let at = index;
  let said = PIECED[name](carriedAt(at));
  while (said.pieces && lastPut[name].index !== at) {
    parts.push(said.pieces);
    at = said.like;
    said = PIECED[name](carriedAt(at));
  }
  let text = said.pieces ? lastPut[name].text : said.text;
  for (const pieces of parts.reverse()) {
    const before = text;
    text = pieces.map((one) => (typeof one === "string" ? one : before.slice(one[0], one[1]))).join("");
  }
  lastPut[name] = { index, text };
  return text;
}

function wholeAt(index) {
  const what = carriedAt(index);
  if (!what?.messages?.[0]?.pieces) return what;
  const [prompt, ...others] = what.messages;
  return { ...what, messages: [{ ...prompt, text: putTogether(index, "prompt") }, ...others], curl: putTogether(index, "curl") };
}

// A promise of the details of a row: messages, HTTP and commands.
function carried(row) {
  if (isLive) {
    if (!row.row) return Promise.resolve(undefined);
    if (!asked.has(row.index)) {
      const answer = fetched(`row?row=${row.row}`);
      answer.catch(() => asked.delete(row.index));
      asked.set(row.index, answer);
    }
    return asked.get(row.index);
  }
  return allRead.then(() => wholeAt(row.index));
}

// Fetch JSON from the server of a live page.
async function fetched(path) {
  const answer = await fetch(`${path}${path.includes("?") ? "&" : "?"}look=${encodeURIComponent(data.look ?? "")}`);
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return answer.json();
}

// On a live page: the rows that contain a text, as the server found them.
const holders = new Map();

// Return whether a payload of the row contains `text`, in lower case: in its own text, or in the prompt that it continues.
function payloadHolds(row, text) {
  if (isLive) return Boolean(holders.get(text)?.has(row.row));
  if (!isRead()) return false; // the list is filtered again when all has been read
  if (sought.text !== text) sought = { text, found: new Map() };
  const { found } = sought;
  const passed = [];
  let at = row.index;
  while (at !== undefined && !found.has(at)) {
    passed.push(at);
    if (newHolds(rows[at], text)) found.set(at, true);
    else at = rows[at].kind === "model call" ? carriedAt(at)?.messages?.[0]?.like : undefined; // other rows are not parsed for this
  }
  for (const one of passed) found.set(one, found.get(at) ?? false);
  return found.get(row.index);
}

let sought = { text: "", found: new Map() };

// Facts about rows for filters; undefined until they have been read.
let factsRead;

function filterFacts() {
  const element = isRead() ? document.getElementById("facts") : undefined;
  if (element) factsRead ??= JSON.parse(element.textContent);
  return factsRead;
}

// Return whether the payload of a message, of a line of stderr, of an event or of a model call contains one of the spellings.
function payloadHas({ row, facts, at }, spellings) {
  const has = (text) => spellings.some((spelling) => text.includes(spelling));
  if (row.kind === "log" || row.kind === "event") return has(facts[3]?.text ?? "");
  const element = block(row);
  if (!element || row.kind === "transaction") return false;
  if (row.kind === "model call") {
    const [prompt] = opened(element)[row.index].messages;
    return has(prompt.pieces ? putTogether(row.index, "prompt") : (prompt.text ?? "")) || has(facts[3].answer);
  }
  if (!blocks.has(element.id) && /^[\w .:-]+$/.test(spellings[0]) && !element.textContent.includes(spellings[0])) return false;
  const { text = "", base64 } = opened(element)[row.index].messages[at];
  if (base64 === undefined) return has(text);
  const bytesOf = (spelling) => String.fromCharCode(...new TextEncoder().encode(spelling));
  return spellings.some((spelling) => atob(base64).includes(bytesOf(spelling)));
}

function piecesOf(message) {
  return (message.pieces ?? []).filter((one) => typeof one === "string").join(" ");
}

// Search a block as text before parsing it. Only for ASCII: other characters can be spelled in two ways.
function newHolds(row, wanted) {
  const element = block(row);
  if (!element) return false;
  if (!blocks.has(element.id) && /^[\w .:/-]+$/.test(wanted)) {
    element.lower ??= element.textContent.toLowerCase();
    if (!element.lower.includes(wanted)) return false;
  }
  return Boolean(
    opened(element)[row.index]?.messages?.some((message) => {
      message.words ??= spelled(message.text ?? piecesOf(message)).toLowerCase();
      return message.words.includes(wanted);
    }),
  );
}
