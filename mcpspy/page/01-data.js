// What the page is about: rows at once, what they carry when somebody looks. A page in a file holds all of it; a live one asks
// its server.

const data = JSON.parse(document.getElementById("data").textContent);
const isLive = Boolean(data.live);

// A row as it is listed. `kind` is exchange, model call, stray, transaction, log or event; times are in nanoseconds from the
// beginning.
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
];
const rows = [];
const rowByNumber = new Map();

// Take in a row, or what became of it. Returns it.
function put(index, values) {
  const row = rows[index] ?? (rows[index] = { index });
  FIELDS.forEach((name, at) => {
    row[name] = values[at];
  });
  row.words = [row.method, row.target, row.outcome, row.detail].join(" ").toLowerCase();
  if (row.row) rowByNumber.set(row.row, row);
  asked.delete(index);
  return row;
}

const asked = new Map();
data.rows.forEach((values, index) => put(index, values));

const blocks = new Map();

function block(row) {
  return document.getElementById(`rows-${Math.floor(row.index / data.chunk)}`);
}

function opened(element) {
  if (!blocks.has(element.id)) blocks.set(element.id, JSON.parse(element.textContent));
  return blocks.get(element.id);
}

// What a row carries: messages, HTTP, commands; a promise of it.
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
  const element = block(row);
  return Promise.resolve(element ? opened(element)[row.index] : undefined);
}

// JSON from the server of a live page.
async function fetched(path) {
  const answer = await fetch(`${path}${path.includes("?") ? "&" : "?"}look=${encodeURIComponent(data.look ?? "")}`);
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return answer.json();
}

// Of a live page: which rows hold a text, as its server found.
const holders = new Map();

// Whether a payload of the row holds `text`, which is in lower case. The text of a block is looked at before it is parsed, where that
// can tell: letters beyond ASCII may be spelled in two ways.
function payloadHolds(row, text) {
  if (isLive) return Boolean(holders.get(text)?.has(row.row));
  const element = block(row);
  if (!element) return false;
  if (!blocks.has(element.id) && /^[\w .:/-]+$/.test(text)) {
    element.lower ??= element.textContent.toLowerCase();
    if (!element.lower.includes(text)) return false;
  }
  return Boolean(
    opened(element)[row.index]?.messages?.some((message) => {
      message.words ??= spelled(message.text ?? "").toLowerCase();
      return message.words.includes(text);
    }),
  );
}
