// JSON as a tree that opens level by level. It has its own reader, so that numbers keep all digits and duplicate members are shown.

const MAX_ITEMS = 200; // more are added on request
const LONG = 20_000;
const SMALL = 4000; // messages up to this size are opened this deep, larger ones less. Chromium crashes at 1,900 nested elements
const LEVELS = { small: 30, large: 2 };

const BACKSLASH = 0x5c;
const QUOTE = 0x22;

// Find the position after the closing quote of the string at `from`; past the end of the text if there is none. Not a regular
// expression: strings of megabytes overflow its stack.
function stringEnd(text, from) {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

// The tokens of a JSON text, as [kind, text]: punctuation is its own kind, the others are `string` and `word`. Throws if a string
// has no end.
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

const CLOSES = { object: "}", array: "]" };

// A value begun by its first token: {type: object|array|string|literal, …}. Throws if no value begins so.
function begun([kind, token]) {
  if (kind === "{") return { type: "object", items: [], key: undefined };
  if (kind === "[") return { type: "array", items: [], key: undefined };
  if (kind === "string") return { type: "string", text: token };
  if (kind === "word" && /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(token)) return { type: "literal", text: token };
  throw new SyntaxError("no JSON");
}

// Parse `text`. Throws if it is not JSON. Not recursive, because there may be more levels than the stack holds.
function readJson(text) {
  const read = tokens(text);
  let ahead = read();
  const next = (wanted) => {
    const now = ahead;
    if (!now || (wanted && now[0] !== wanted)) throw new SyntaxError("no JSON");
    ahead = read();
    return now;
  };
  const key = () => {
    const [, name] = next("string");
    next(":");
    return name;
  };
  const stack = [];
  for (;;) {
    let value = begun(next());
    if (value.items && ahead?.[0] !== CLOSES[value.type]) {
      stack.push(value);
      if (value.type === "object") value.key = key();
      continue;
    }
    if (value.items) next();
    for (let parent = stack.at(-1); ; parent = stack.at(-1)) {
      if (!parent && !ahead) return value;
      if (!parent) throw new SyntaxError("no JSON");
      parent.items.push([parent.key, value]);
      if (ahead?.[0] === ",") break;
      next(CLOSES[parent.type]);
      value = stack.pop();
    }
    next(",");
    if (stack.at(-1).type === "object") stack.at(-1).key = key();
  }
}

function label(key) {
  return key === undefined ? "" : make("span", {}, make("span", { class: "key" }, key), ": ");
}

function branch(value, key, levels) {
  if (value.type !== "object" && value.type !== "array") return make("span", { class: "leaf" }, label(key), leaf(value));
  const [open, close] = value.type === "object" ? "{}" : "[]";
  if (!value.items.length) return make("span", { class: "leaf" }, label(key), open + close);
  const made = make(
    "details",
    { open: levels > 0 },
    make("summary", {}, label(key), `${open} ${counted(value.items.length, value.type === "object" ? "member" : "item")} ${close}`),
  );
  const fill = () => {
    if (made.open && made.childElementCount === 1) more(made, value, levels, 0);
  };
  made.addEventListener("toggle", fill);
  fill();
  return made;
}

function more(element, value, levels, from) {
  const to = Math.min(value.items.length, from + MAX_ITEMS);
  for (let at = from; at < to; at += 1) element.append(branch(value.items[at][1], value.items[at][0], levels - 1));
  if (to < value.items.length) {
    const rest = makeButton(`${(value.items.length - to).toLocaleString("en")} more`, () => {
      rest.remove();
      more(element, value, levels, to);
    });
    element.append(rest);
  }
}

function leaf(value) {
  if (value.type === "literal") return make("span", { class: "literal" }, value.text);
  return cutText("span", { class: "string" }, value.text, spelled);
}

// An element with a text; of a long text its beginning, and a button for the rest.
function cutText(name, attributes, text, shownAs = (letters) => letters) {
  if (text.length <= LONG) return make(name, attributes, shownAs(text));
  const made = make(name, attributes, `${shownAs(text.slice(0, LONG))}… `);
  const rest = makeButton(`all ${text.length.toLocaleString("en")} letters`, () => made.replaceChildren(harmless(shownAs(text))));
  made.append(rest);
  return made;
}

// A JSON string with its characters and line ends unescaped. Control and invisible characters stay escaped.
function spelled(text) {
  return text
    .replace(/\\u([0-9a-fA-F]{4})/g, (whole, code) => {
      const letter = String.fromCharCode(parseInt(code, 16));
      return /[\p{L}\p{N}\p{P}\p{S}]/u.test(letter) ? letter : whole;
    })
    .replace(/\\n/g, "\n")
    .replace(/\\"/g, '"')
    .replace(/\\\//g, "/");
}

function tree(text) {
  try {
    return make("div", { class: "json" }, branch(readJson(text), undefined, text.length < SMALL ? LEVELS.small : LEVELS.large));
  } catch {
    return cutText("pre", {}, text);
  }
}
