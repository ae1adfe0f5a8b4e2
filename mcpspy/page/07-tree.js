// JSON as a tree that is opened level by level. It is read by a reader of its own, so that numbers keep all their digits, and members
// that stand twice stand twice.

const MAX_ITEMS = 200; // more are added when somebody asks for them
const LONG = 20_000;
const SMALL = 4000; // a message of fewer letters is open this deep, another less. Chromium crashes where elements lie 1,900 deep
const LEVELS = { small: 30, large: 2 };

const BACKSLASH = 0x5c;
const QUOTE = 0x22;

// Where the string ends that begins at `from`, behind its quote; the text's end and more if it does not. No regular expression looks
// for it: a string of megabytes is too much for the stack of one.
function stringEnd(text, from) {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

// The tokens of a text of JSON, each as [kind, text]: a sign is its own kind, others are `string` and `word`. Throws where one
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

// A value as its first token begins it: {type: object|array|string|literal, …}. Throws where none begins so.
function begun([kind, token]) {
  if (kind === "{") return { type: "object", items: [], key: undefined };
  if (kind === "[") return { type: "array", items: [], key: undefined };
  if (kind === "string") return { type: "string", text: token };
  if (kind === "word" && /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(token)) return { type: "literal", text: token };
  throw new SyntaxError("no JSON");
}

// The value in `text`. Throws where it is no JSON. It calls itself for no level, for there may be more levels than a stack holds.
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

// An element with a text, of a long one its beginning and a button for the rest.
function cutText(name, attributes, text, shownAs = (letters) => letters) {
  if (text.length <= LONG) return make(name, attributes, shownAs(text));
  const made = make(name, attributes, `${shownAs(text.slice(0, LONG))}… `);
  const rest = makeButton(`all ${text.length.toLocaleString("en")} letters`, () => made.replaceChildren(harmless(shownAs(text))));
  made.append(rest);
  return made;
}

// A string as JSON spells it, with its letters as letters and line ends as line ends. What steers or hides stays spelled out.
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
