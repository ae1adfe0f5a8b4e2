// The filter language: an expression to a test of rows. docs/filter.md explains it; `filter_vectors.toml` holds it and the language
// of the command line to the same meaning. The keys come with the page, and so do the facts about rows that a test compares.

const MAX_DEPTH = 50;
const MAX_KEY_LETTERS = 40;
const MAX_LISTED = 24;
const OPERATORS = [">=", "<=", ">", "<", ":"];

// What is wrong in an expression: `at` is the position in it, `advice` says what to write.
class FilterError extends Error {
  constructor(at, reason, advice) {
    super(reason);
    Object.assign(this, { at, advice });
  }
}

// A value, or the operator before it (`isOperator`), that a key does not take.
class BadValue extends Error {
  constructor(reason, advice, isOperator = false) {
    super(reason);
    Object.assign(this, { advice, isOperator });
  }
}

const inQuotes = (text) => (text.length > 40 ? `“${text.slice(0, 40)}…”` : `“${text}”`);

// --- Values ---

// A test for texts: `*` is any letters or none, `?` is one letter. Each part after a `*` is looked for once, from left to right.
function glob(value, isQuoted) {
  if (isQuoted || !/[*?]/.test(value)) return (text) => text === value;
  const parts = value.split("*").map((part) => [...part]);
  return (text) => {
    const letters = [...text];
    const has = (part, at) => part.every((sign, next) => (sign === "?" ? at + next < letters.length : letters[at + next] === sign));
    const [first, last] = [parts[0], parts.at(-1)];
    if (!has(first, 0)) return false;
    if (parts.length === 1) return letters.length === first.length;
    let at = first.length;
    for (const part of parts.slice(1, -1)) {
      while (at + part.length <= letters.length && !has(part, at)) at += 1;
      at += part.length;
    }
    return at + last.length <= letters.length && has(last, letters.length - last.length);
  };
}

function unitAdvice(units) {
  const names = Object.keys(units).filter((unit) => /^[a-z]+$/.test(unit));
  if (!names.length) return "Write a whole number.";
  return `Write a number and its unit (${names.join(", ")}), as in ${units.ms ? "2s, 1.5s, 300ms" : "500, 10kb, 1.5mb"}.`;
}

function amount(text, units) {
  const match = /^(\d{1,18})(?:\.(\d{1,18}))?([a-zµμ]{0,2})$/i.exec(text);
  if (!match) throw new BadValue(`${inQuotes(text)} is not a number`, unitAdvice(units));
  const [, integer, fraction = "", unit] = match;
  const size = units[unit.toLowerCase()];
  if (!size) throw new BadValue(`${inQuotes(text)} has ${unit ? "an unknown" : "no"} unit`, unitAdvice(units));
  if (fraction && size === 1) throw new BadValue(`${inQuotes(text)} is not a whole number`, "Write it without a fraction.");
  return Number((BigInt(integer + fraction) * BigInt(size)) / 10n ** BigInt(fraction.length));
}

// A test for amounts: `>2s`, or after a colon one amount or a range.
function compared(operator, text, units) {
  const [begin, end] = operator === ":" ? text.split(/\.\.(.*)/s) : [text];
  const low = amount(begin, units);
  const high = end === undefined ? low : amount(end, units);
  if (high < low) throw new BadValue(`${inQuotes(text)} ends before it begins`, `Write ${end}..${begin}.`);
  return {
    ":": (value) => low <= value && value <= high,
    ">": (value) => value > low,
    ">=": (value) => value >= low,
    "<": (value) => value < low,
    "<=": (value) => value <= low,
  }[operator];
}

// A point in time: `{ since }` the beginning, `{ ofDay }` on its day, or `{ wall }`, all in nanoseconds but the date.
function moment(text) {
  if (text.startsWith("+")) return { since: amount(text.slice(1), data.filter.keys.dur.units) };
  const time = /^(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?$/.exec(text);
  if (time) {
    const [hours, minutes, secs] = [time[1], time[2], time[3] ?? 0].map(Number);
    if (hours > 23 || minutes > 59 || secs > 59) {
      throw new BadValue(`${inQuotes(text)} is not a time of day`, "The last one is 23:59:59.");
    }
    return { ofDay: [hours, minutes, secs], ns: Number((time[4] ?? "").padEnd(9, "0")) };
  }
  if (/^\d{4}-\d\d-\d\d([T ].+)?$/.test(text)) return { wall: dated(text) };
  throw new BadValue(
    `${inQuotes(text)} is not a point in time`,
    "Write +2.5s since the beginning, a time of day as 12:30:05, a date as 2026-11-21, or both as 2026-11-21T12:30:05.",
  );
}

// A date in milliseconds; one without a zone is in the zone of the browser.
function dated(text) {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,6}))?)?)?(Z|[+-]\d\d:?\d\d)?)?$/.exec(text);
  const parts = match?.slice(1, 7).map((part) => Number(part ?? 0)) ?? [];
  const [year, month, day, hours, minutes, secs] = parts;
  const date = match && new Date(Date.UTC(2000, month - 1, day));
  date?.setUTCFullYear(year, month - 1, day);
  if (!date || !year || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hours > 23 || minutes > 59 || secs > 59) {
    throw new BadValue(`${inQuotes(text)} is not a date`, "Write a date as 2026-11-21, and a time as 2026-11-21T12:30:05.");
  }
  const [fraction, zone] = [Number(`0.${match[7] ?? 0}`) * 1000, match[8]];
  if (!zone) {
    const local = new Date(2000, 0, 1, hours, minutes, secs);
    local.setFullYear(year, month - 1, day);
    return local.getTime() + fraction;
  }
  const [, sign, h, m] = /([+-])(\d\d):?(\d\d)/.exec(zone) ?? ["", "+", "0", "0"];
  date.setUTCHours(hours, minutes, secs);
  return date.getTime() + fraction - Number(`${sign}1`) * (h * 60 + Number(m)) * 60_000;
}

// The time of a moment on the clock of the page; undefined if the beginning of that clock is unknown.
function sinceBegin(when) {
  if (when.since !== undefined) return when.since;
  const { begin } = filterFacts();
  if (!begin) return undefined;
  const [beginSeconds, beginNs] = begin;
  let ms = when.wall;
  if (when.ofDay) ms = new Date(beginSeconds * 1000).setHours(...when.ofDay, 0);
  const wholeSeconds = Math.floor(ms / 1000);
  return (wholeSeconds - beginSeconds) * 1e9 + (when.ns ?? Math.round((ms - wholeSeconds * 1000) * 1e6)) - beginNs;
}

// --- Words that resemble others ---

// How many letters two words share, in blocks from the longest on.
function shared(one, other) {
  let [from, at, size] = [0, 0, 0];
  for (let a = 0; a < one.length; a += 1) {
    for (let b = 0; b < other.length; b += 1) {
      let length = 0;
      while (a + length < one.length && one[a + length] === other[b + length]) length += 1;
      if (length > size) [from, at, size] = [a, b, length];
    }
  }
  if (!size) return 0;
  return size + shared(one.slice(0, from), other.slice(0, at)) + shared(one.slice(from + size), other.slice(at + size));
}

function nearest(word, known) {
  if (word.length > MAX_KEY_LETTERS) return undefined;
  let [best, most] = [undefined, 0.6];
  for (const one of known) {
    const ratio = (2 * shared(one, word)) / (one.length + word.length);
    if (ratio > most || (ratio === most && !best)) [best, most] = [one, ratio];
  }
  return best;
}

function unknownWord(value, known) {
  const reason = `${inQuotes(value)} is not a word that it takes`;
  if (value.includes(",")) return new BadValue(reason, "For one of several words write (… or …).");
  const near = nearest(value.toLowerCase(), known);
  if (near) return new BadValue(reason, `Did you mean ${near}?`);
  const listed = `It takes ${known.join(", ")}.`;
  return new BadValue(reason, known.length <= MAX_LISTED ? listed : "`mcpspy help filter` shows where they are listed.");
}

// --- Terms to tests. A subject is { row, facts, message }: the facts of a row and one of its messages. ---

const textsOf = (subject, key) => shapeOf(subject, key)[key] ?? [];

// The facts of the message, or those of its row.
function shapeOf({ facts, message }, key) {
  return filterFacts().shapes[data.filter.keys[key].ofMessages || key === "http" ? message[0] : facts[0]];
}

function closed({ value, isQuoted }, known) {
  const fits = glob(value.replaceAll(" ", "-"), isQuoted);
  if (!known.some(fits)) throw unknownWord(value.replaceAll(" ", "-"), known);
  return fits;
}

function refuseComparison({ key, operator, value }) {
  if (operator === ":" && /^[<>]/.test(value)) {
    throw new BadValue("a comparison needs no colon", `Write ${key}${value.slice(0, MAX_KEY_LETTERS)}.`, true);
  }
}

const AMOUNTS = {
  dur: ({ row }) => row.took,
  total: ({ row, facts }) => (facts[3]?.call ? facts[3].total : row.took),
  size: ({ row }) => (row.kind === "event" ? null : row.bytes),
  bytes: ({ row, message }) => message[2] ?? (row.kind === "event" ? null : row.bytes),
  progress: ({ row, facts }) => (row.kind === "exchange" ? (facts[3]?.progress ?? 0) : null),
  row: ({ row }) => row.row || null,
  call: ({ row, facts }) => facts[3]?.call ?? (row.kind === "exchange" ? row.row : null),
};

const FORMS = {
  texts: ({ key, value, isQuoted }) => {
    const fits = glob(value, isQuoted);
    if (key === "id") return ({ facts }) => facts[1].some(fits);
    if (key === "token") return ({ message }) => (message[3] ?? []).some(fits);
    return (subject) => textsOf(subject, key).some(fits);
  },
  words: (term, { words }) => {
    const fits = closed(term, words);
    return (subject) => textsOf(subject, term.key).some(fits);
  },
  status: (term, { words }) => {
    const isCode = /^-?\d{1,20}$/.test(term.value.replace(/[*?]/g, "0")) && /[^*?]/.test(term.value);
    const fits = isCode ? glob(term.value, term.isQuoted) : closed(term, words);
    return (subject) => textsOf(subject, "status").some(fits);
  },
  side: (term) => {
    const fits = closed({ value: data.filter.arrows[term.value] ?? term.value }, ["client", "server"]);
    return (subject) => textsOf(subject, term.key).some(fits);
  },
  amount: (term, { units, range, orMore }) => {
    refuseComparison(term);
    const { key, operator, value } = term;
    const fits = compared(operator, value, units);
    if (range && operator === ":" && !value.includes("..")) {
      const advice = `Write ${key}>${value}, or a range as ${key}:${range}.`;
      throw new BadValue(`${key} is measured and hardly ever equal to a value`, advice, true);
    }
    const of = orMore && operator.startsWith(">") ? ({ row }) => row.took ?? row.waited : AMOUNTS[key];
    return (subject) => {
      const found = of(subject);
      return found !== null && found !== undefined && fits(found);
    };
  },
  time: ({ key, value }) => {
    const when = moment(value);
    return ({ row, message }) => {
      const [at, bound] = [row.at + message[1], sinceBegin(when)];
      return bound !== undefined && (key === "after" ? at >= bound : at < bound);
    };
  },
  http: (term) => {
    refuseComparison(term);
    const { operator, value, isQuoted } = term;
    const of = (test) => (subject) => textsOf(subject, "http").some(test);
    if (operator !== ":" || /^[1-5]\d\d(\.\.[1-5]\d\d)?$/.test(value)) {
      if (operator !== ":" && !/^[1-5]\d\d$/.test(value)) {
        throw new BadValue(`${inQuotes(value)} is not an HTTP status`, "Write one of 100 to 599, as in http>=400.");
      }
      const fits = compared(operator, value, { "": 1 });
      return of(([status]) => status && fits(status));
    }
    if (/^[1-5]xx$/i.test(value)) return of(([status]) => Math.floor(status / 100) === Number(value[0]));
    if (/^[A-Z]+$/.test(value)) return of(([, method]) => method === value);
    if (!/^[/*?]/.test(value)) {
      const advice = "Write a status (401, 4xx), a method (POST) or a path (/mcp*).";
      throw new BadValue(`${inQuotes(value)} is no status, method or path`, advice);
    }
    const fits = glob(value, isQuoted);
    return of(([, , target]) => fits(target));
  },
};

function testOf(term) {
  const key = data.filter.keys[term.key];
  if (!key.operators.includes(term.operator)) {
    throw new BadValue(`${term.key} does not take ${term.operator}`, `Write ${term.key}:…, as in ${key.example}.`, true);
  }
  return FORMS[key.form](term, key);
}

// A test for a text in the payload, as it is or as JSON may spell it.
function contains(text) {
  const shortest = JSON.stringify(text).slice(1, -1);
  const escaped = shortest.replace(/[\u007f-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const upper = escaped.replace(/\\u[0-9a-f]{4}/g, (sign) => `\\u${sign.slice(2).toUpperCase()}`);
  const needles = [...new Set([text, shortest, escaped, upper, shortest.replaceAll("/", "\\/")])];
  return (subject) => payloadHas(subject, needles);
}

// --- Expressions to trees ---

function* tokensOf(expression) {
  const sign = /[()]|"((?:[^"\\]|\\.)*)"|[^\s()"]+/sy;
  for (let at = 0, before = -1; ; ) {
    at += /^\s*/.exec(expression.slice(at))[0].length;
    const glued = at === before;
    if (at === expression.length) break;
    sign.lastIndex = at;
    const match = sign.exec(expression);
    if (!match) throw new FilterError(at, "this text is not closed", 'Close it with a quotation mark: "…".');
    const isParenthesis = "()".includes(match[0]);
    if (isParenthesis) yield { kind: match[0], text: match[0], at, glued: false };
    else if (match[1] === undefined) yield { kind: "word", text: match[0], at, glued };
    else yield { kind: "text", text: match[1].replace(/\\(["\\])/g, "$1"), at, glued };
    at = sign.lastIndex;
    before = isParenthesis ? -1 : at;
  }
  for (;;) yield { kind: "end", text: "", at: expression.length, glued: false };
}

class FilterReader {
  constructor(expression) {
    this.tokens = tokensOf(expression);
    this.depth = 0;
    this.hasMessages = false; // whether messages of one row differ in what is asked
    this.take();
  }

  take() {
    const token = this.next;
    this.next = this.tokens.next().value;
    return token;
  }

  isWord(word) {
    return this.next.kind === "word" && this.next.text.toLowerCase() === word;
  }

  fail(reason, advice, at = this.next.at) {
    throw new FilterError(at, reason, advice);
  }

  whole() {
    if (this.next.kind === "end") this.fail("the filter is empty", "Write what to show, as in status:error.");
    const test = this.any();
    if (this.next.kind !== "end") this.fail("this closes no parenthesis", "Remove it, or write a ( before it.");
    return test;
  }

  any() {
    const parts = [this.all()];
    while (this.isWord("or")) {
      this.take();
      parts.push(this.all());
    }
    return parts.length === 1 ? parts[0] : (subject) => parts.some((part) => part(subject));
  }

  all() {
    const parts = [this.part()];
    while (this.next.kind !== "end" && this.next.kind !== ")" && !this.isWord("or")) {
      if (this.isWord("and")) this.take();
      parts.push(this.part());
    }
    return parts.length === 1 ? parts[0] : (subject) => parts.every((part) => part(subject));
  }

  part() {
    const token = this.next;
    if (this.isWord("not") || token.kind === "(") {
      this.depth += 1;
      if (this.depth > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels are nested here`, "Remove parentheses.");
      this.take();
      const inner = token.kind === "word" ? this.part() : this.group(token);
      this.depth -= 1;
      return token.kind === "word" ? (subject) => !inner(subject) : inner;
    }
    if (token.kind === "text") {
      this.take();
      this.checkGap(token);
      if (!token.text) this.fail("this text is empty", "Write what to look for.", token.at);
      this.hasMessages = true;
      return contains(token.text);
    }
    if (token.kind === "word" && !this.isWord("and") && !this.isWord("or")) return this.term(this.take());
    const what = token.kind === "end" ? "the filter ends" : `there is ${inQuotes(token.text)}`;
    return this.fail(`${what} where a term is expected`, 'A term is key:value, as in status:error, or "text".');
  }

  group(token) {
    const test = this.any();
    if (this.next.kind !== ")") {
      this.fail("this parenthesis is not closed", "Write a ) after what belongs together.", token.at);
    }
    this.take();
    return test;
  }

  term(token) {
    this.checkGap(token);
    const { keys } = data.filter;
    const match = /^([^:<>=!]*)(!=|>=|<=|[:<>=])(.*)$/s.exec(token.text);
    if (!match) this.fail(...noTerm(token.text), token.at);
    const [, key, operator] = match;
    let value = match[3];
    if (!Object.hasOwn(keys, key)) this.fail(...unknownKey(key, operator), token.at);
    const operatorAt = token.at + key.length;
    if (!OPERATORS.includes(operator)) {
      this.fail(`there is no ${operator} in filters`, `Write ${operator === "=" ? "" : "not "}${key}:…`, operatorAt);
    }
    const valueAt = operatorAt + operator.length;
    const isQuoted = !value && this.next.kind === "text" && this.next.glued;
    if (isQuoted) value = this.take().text;
    if (!value) this.fail(`${key} has no value`, this.noValue(key), valueAt);
    if (this.next.glued) this.fail("there is a quotation mark within a value", "Put the whole value in quotation marks.");
    if (keys[key].ofMessages) this.hasMessages = true;
    try {
      return testOf({ key, operator, value, isQuoted });
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      return this.fail(error.message, error.advice, error.isOperator ? operatorAt : valueAt);
    }
  }

  noValue(key) {
    if (this.next.kind === "(") return `Put parentheses around whole terms: (${key}:… or ${key}:…).`;
    return `Write it right after the operator, as in ${key}:…; put a value with blanks in quotation marks.`;
  }

  checkGap(token) {
    if (token.glued) this.fail("a space is missing here", "Write one between two terms.", token.at);
  }
}

function noTerm(word) {
  const { keys } = data.filter;
  if (/^(&&?|\|\|?)$/.test(word)) return [`there is no ${inQuotes(word)} in filters`, `Write ${word[0] === "&" ? "and" : "or"}.`];
  if (word.startsWith("!")) return [`${inQuotes(word)} is no term`, "Write not for what should not match."];
  if (Object.hasOwn(keys, word)) return [`${word} has no value`, `Write it after a colon: ${word}:…`];
  const key = ["status", "kind", "era"].find((name) => keys[name].words.some(glob(word.replaceAll(" ", "-"), false)));
  const advice = "Put it in quotation marks to look for it in payloads";
  return [`${inQuotes(word)} is no term`, key ? `${advice}; or write ${key}:${word}.` : `${advice}.`];
}

function meantKey(name) {
  const plain = name.replace(/^[-!]+/, "").toLowerCase();
  const { keys, hints } = data.filter;
  return Object.hasOwn(keys, plain) ? plain : Object.hasOwn(hints, plain) ? hints[plain] : undefined;
}

function unknownKey(name, operator) {
  const known = Object.keys(data.filter.keys);
  if (!name) return [`there is no key before “${operator}”`, "Write one, as in status:error."];
  const reason = `there is no key ${inQuotes(name)}`;
  const meant = meantKey(name);
  if (meant && /^[-!]/.test(name)) return [reason, `Write not ${meant}${operator}…`];
  const near = meant ?? nearest(name.replace(/^[-!]+/, "").toLowerCase(), known);
  return [reason, near ? `Did you mean ${near}?` : `The keys are ${known.join(", ")}.`];
}

// Return whether a text that is no filter was meant as one: it has a key, or a word for one, before an operator.
function isMeant(expression) {
  const before = expression.replace(/"(?:[^"\\]|\\.)*"?/gs, " ").matchAll(/[^\s()"]+/g);
  return [...before].some(([word]) => {
    const name = /^([^:<>=!]+)[:<>=!]/.exec(word)?.[1] ?? /^([-!][^:<>=!]+)[:<>=]/.exec(word)?.[1];
    return name !== undefined && (meantKey(name) ?? nearest(name.toLowerCase(), Object.keys(data.filter.keys))) !== undefined;
  });
}

// Read an expression: a function that tests a row. Throws FilterError.
function filterOf(expression) {
  const reader = new FilterReader(expression);
  const test = reader.whole();
  return (row) => {
    const facts = filterFacts()?.rows[row.index];
    if (!facts) return false; // they have not been read yet
    const messages = reader.hasMessages ? facts[2] : facts[2].slice(0, 1);
    return messages.some((message, at) => test({ row, facts, message, at }));
  };
}
