// JSON as a tree that is opened level by level. It is read by a reader of its own, so that numbers keep all their digits, and members
// that stand twice stand twice.

const MAX_ITEMS = 200; // more are added when somebody asks for them
const LONG = 2000;
const SMALL = 4000; // a message of fewer letters is open down to its leaves, another this deep:
const LEVELS = 2;

// The value in `text`: {type: object|array|string|literal, …}. Throws where it is no JSON.
function readJson(text) {
  const token = /\s*(?:([{}[\],:])|("[^"\\]*(?:\\.[^"\\]*)*")|([^\s{}[\],:"]+))/gys;
  let found = token.exec(text);
  const next = () => { const now = found; found = token.exec(text); return now; };
  const fail = () => { throw new SyntaxError("no JSON"); };
  const stack = [];
  let value;
  for (;;) {
    const now = next() ?? fail();
    if (now[1] === "{" || now[1] === "[") {
      value = { type: now[1] === "{" ? "object" : "array", items: [], key: undefined };
      if (found && found[1] === (now[1] === "{" ? "}" : "]")) next();
      else { stack.push(value); if (value.type === "object") value.key = key(); continue; }
    } else if (now[2]) value = { type: "string", text: now[2] };
    else if (now[3] && /^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(now[3])) value = { type: "literal", text: now[3] };
    else fail();
    for (;;) {
      const parent = stack.at(-1);
      if (!parent) return found && found[0].trim() ? fail() : value;
      parent.items.push([parent.key, value]);
      const after = next() ?? fail();
      if (after[1] === ",") { if (parent.type === "object") parent.key = key(); break; }
      if (after[1] !== (parent.type === "object" ? "}" : "]")) fail();
      value = stack.pop();
    }
  }
  function key() {
    const name = next() ?? fail();
    if (!name[2] || (next() ?? fail())[1] !== ":") fail();
    return name[2];
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
  const text = spelled(value.text);
  if (text.length <= LONG) return make("span", { class: "string" }, text);
  const made = make("span", { class: "string" }, `${text.slice(0, LONG)}… `);
  const button = make("button", { type: "button", onclick: () => made.replaceChildren(text) }, `all ${text.length.toLocaleString("en")} letters`);
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
    return make("pre", {}, text);
  }
}
