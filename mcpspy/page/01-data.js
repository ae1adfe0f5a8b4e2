// What the page is about, as its maker wrote it into the page: rows at once, what they carry when somebody looks.

const data = JSON.parse(document.getElementById("data").textContent);

// A row as it is listed. `kind` is exchange, stray, transaction, log or event; times are in nanoseconds from the beginning.
const FIELDS = ["row", "kind", "at", "took", "from", "client", "server", "method", "target", "outcome", "style", "detail", "bytes", "marks"];
const rows = data.rows.map((values, index) => {
  const made = { index };
  FIELDS.forEach((name, at) => { made[name] = values[at]; });
  made.words = [made.method, made.target, made.outcome, made.detail].join(" ").toLowerCase();
  return made;
});
const rowByNumber = new Map(rows.filter((row) => row.row).map((row) => [row.row, row]));

const chunks = new Map();

function chunkElement(row) {
  return document.getElementById(`rows-${Math.floor(row.index / data.chunk)}`);
}

// What a row carries: messages, HTTP, commands. Parsed when it is asked for the first time, with its neighbours.
function carried(row) {
  const element = chunkElement(row);
  if (!element) return undefined;
  if (!chunks.has(element.id)) chunks.set(element.id, JSON.parse(element.textContent));
  return chunks.get(element.id)[row.index];
}

// Whether a payload of the row holds `text`, which is in lower case. The text of a block is looked at before it is parsed, where that
// can tell: letters beyond ASCII may be spelled in two ways.
function payloadHolds(row, text) {
  const element = chunkElement(row);
  if (!element) return false;
  if (!chunks.has(element.id) && /^[\w .:/-]+$/.test(text)) {
    element.lower ??= element.textContent.toLowerCase();
    if (!element.lower.includes(text)) return false;
  }
  return Boolean(carried(row)?.messages?.some((message) => {
    message.words ??= spelled(message.text ?? "").toLowerCase();
    return message.words.includes(text);
  }));
}
