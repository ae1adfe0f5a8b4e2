// JSON as a tree that is opened level by level. It is read by a reader of its own, so that numbers keep all their digits, and members
// that stand twice stand twice.

const MAX_ITEMS = 200; // more are added when somebody asks for them
const LONG = 20_000;
const SMALL = 4000; // a message of fewer letters is open down to its leaves, another this deep:
const LEVELS = 2;

const BACKSLASH = 0x5c;
const QUOTE = 0x22;

// Where the string ends that begins at `from`, behind its quote; the text's end and more if it does not. No regular expression looks
// for it: a string of megabytes is too much for the stack of one.
function stringEnd(text, from) {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

// The tokens of a text of JSON, each as [kind, text]: a sign is its own kind, others are `string` and `word`. Throws where one has no end.
function tokens(text) {
  const sign = /\s*([{}[\],:"]|[^\s{}[\],:"]+)/y;
  return () => {
    const found = sign.exec(text);
    if (!found) return undefined;
    const [, token] = found;
    if (token !== '"') return ["{}[],:".includes(token) ? token : "word", token];
    const begin = sign.lastIndex - 1;
    const end = stringEnd(text, begin + 1);
    if (end > text.length) throw new SyntaxError("no JSON");
    sign.lastIndex = end;
    return ["string", text.slice(begin, end)];
  };
}

// The value in `text`: {type: object|array|string|literal, …}. Throws where it is no JSON.
function readJson(text) {
  const read = tokens(text);
  let ahead = read();
  const next = () => { const now = ahead; ahead = read(); return now ?? fail(); };
  const fail = () => { throw new SyntaxError("no JSON"); };
  const stack = [];
  let value;
  for (;;) {
    const [kind, token] = next();
    if (kind === "{" || kind === "[") {
      value = { type: kind === "{" ? "object" : "array", items: [], key: undefined };
      if (ahead?.[0] === (kind === "{" ? "}" : "]")) next();
      else { stack.push(value); if (kind === "{") value.key = key(); continue; }
    } else if (kind === "string") value = { type: "string", text: token };
    else if (kind === "word" && /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(token)) value = { type: "literal", text: token };
    else fail();
    for (;;) {
      const parent = stack.at(-1);
      if (!parent) return ahead ? fail() : value;
      parent.items.push([parent.key, value]);
      const [after] = next();
      if (after === ",") { if (parent.type === "object") parent.key = key(); break; }
      if (after !== (parent.type === "object" ? "}" : "]")) fail();
      value = stack.pop();
    }
  }
  function key() {
    const [kind, name] = next();
    if (kind !== "string" || next()[0] !== ":") fail();
    return name;
  }
}

function label(key) {
  return key === undefined ? "" : make("span", {}, make("span", { class: "key" }, key), ": ");
}

function branch(value, key, levels) {
  if (value.type !== "object" && value.type !== "array") return make("span", { class: "leaf" }, label(key), leaf(value));
  const [open, close] = value.type === "object" ? "{}" : "[]";
  if (!value.items.length) return make("span", { class: "leaf" }, label(key), open + close);
  const made = make("details", { open: levels > 0 }, make("summary", {}, label(key), `${open} ${counted(value.items.length, value.type === "object" ? "member" : "item")} ${close}`));
  const fill = () => { if (made.open && made.childElementCount === 1) more(made, value, levels, 0); };
  made.addEventListener("toggle", fill);
  fill();
  return made;
}

function more(element, value, levels, from) {
  const to = Math.min(value.items.length, from + MAX_ITEMS);
  for (let at = from; at < to; at += 1) element.append(branch(value.items[at][1], value.items[at][0], levels - 1));
  if (to < value.items.length) {
    const button = make("button", { type: "button", onclick: () => { button.remove(); more(element, value, levels, to); } }, `${(value.items.length - to).toLocaleString("en")} more`);
    element.append(button);
  }
}

function leaf(value) {
  if (value.type === "literal") return make("span", { class: "literal" }, value.text);
  return cutText("span", { class: "string" }, value.text, spelled);
}

// An element with a text, of a long one its beginning and a button for the rest.
function cutText(name, attributes, text, shownAs = (letters) => letters) {
  if (text.length <= LONG) return make(name, attributes, shownAs(text));
  const made = make(name, attributes, `${shownAs(text.slice(0, LONG))}… `);
  const button = make("button", { type: "button", onclick: () => made.replaceChildren(harmless(shownAs(text))) }, `all ${text.length.toLocaleString("en")} letters`);
  made.append(button);
  return made;
}

// A string as JSON spells it, with its letters as letters and line ends as line ends. What steers or hides stays spelled out.
function spelled(text) {
  return text.replace(/\\u([0-9a-fA-F]{4})/g, (whole, code) => {
    const letter = String.fromCharCode(parseInt(code, 16));
    return /[\p{L}\p{N}\p{P}\p{S}]/u.test(letter) ? letter : whole;
  }).replace(/\\n/g, "\n").replace(/\\"/g, '"').replace(/\\\//g, "/");
}

function tree(text) {
  try {
    return make("div", { class: "json" }, branch(readJson(text), undefined, text.length < SMALL ? Infinity : LEVELS));
  } catch {
    return cutText("pre", {}, text);
  }
}
