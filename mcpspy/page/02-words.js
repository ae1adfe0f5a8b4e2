// Formatting of numbers, and DOM elements made of text alone. Nothing here accepts markup.

// A number with so many decimals; of two that are equally near the even one, as in the texts of the heading.
function rounded(number, decimals) {
  const parts = number * 2 ** (decimals + 1);
  if (parts % 2 !== 1) return number.toFixed(decimals);
  const below = Math.floor(number * 10 ** decimals);
  return ((below + (below % 2)) / 10 ** decimals).toFixed(decimals);
}

function threeDigits(number, unit) {
  return `${rounded(number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0)} ${unit}`;
}

function duration(ns) {
  if (ns === null || ns === undefined) return "";
  if (ns >= 9_999_500_000_000) return `${rounded(ns / 3600e9, 1)} h`;
  if (ns >= 999_500_000) return threeDigits(ns / 1e9, "s");
  return ns >= 999_500 ? threeDigits(ns / 1e6, "ms") : `${rounded(ns / 1e3, 0)} µs`;
}

// The duration of a wait that has no end yet.
function atLeast(ns) {
  if (ns >= 3600e9) return `≥ ${rounded(ns / 3600e9, 1)} h`;
  return ns >= 1e8 ? `≥ ${rounded(ns / 1e9, ns < 1e11 ? 1 : 0)} s` : `≥ ${Math.floor(ns / 1e6)} ms`;
}

// The duration of a row, or the time that it has waited for an answer that has not come.
function lasted(row) {
  return row.took ?? (row.waited ?? 0) + (isPending(row) ? (performance.now() - row.putAt) * 1e6 : 0);
}

function isPending(row) {
  return row.outcome === "pending" && isLive;
}

function tookText(row) {
  return row.took === null && (row.waited !== null || isPending(row)) ? atLeast(lasted(row)) : duration(row.took);
}

function seconds(ns) {
  return (Math.floor(ns / 1e6) / 1e3).toFixed(3);
}

function bytes(count) {
  if (count < 1000) return `${count} B`;
  const [number, unit] = [
    [count / 1e3, "kB"],
    [count / 1e6, "MB"],
    [count / 1e9, "GB"],
  ].find(([much]) => much < 999.5) ?? [count / 1e12, "TB"];
  return `${rounded(number, number < 9.95 || unit === "TB" ? 1 : 0)} ${unit}`;
}

function counted(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

// The colour of each severity. The severity is always written out too.
const STYLES = { error: "bad", warning: "warn", note: "wait" };

// The direction of a message by its sender; a dot for rows without one.
function wayOf(from) {
  if (!from) return "·";
  return from === "client" ? "→" : "←";
}

// JSON on one line. Line ends occur between tokens only, where they mean nothing.
function oneLine(text) {
  return text.trim().replace(/[\r\n]+/g, " ");
}

// Make an element with attributes, event listeners (`onclick: f`) and children; strings become text.
function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function makeButton(text, press, attributes = {}) {
  return make("button", { type: "button", onclick: press, ...attributes }, text);
}

const SVG = "http://www.w3.org/2000/svg";

function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  const wanted = children.flat().filter((child) => child !== undefined && child !== null && child !== "");
  element.append(...wanted.map((child) => (typeof child === "string" ? harmless(child) : child)));
  return element;
}

// Characters that move, hide or reorder other text: controls, bidi controls, zero-width and other invisible characters. They are
// shown as escapes.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|\udb40[\udc00-\udfff]/gu;

function harmless(text) {
  return text.replace(UNSEEN, (signs) =>
    [...signs].map((sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`).join(""),
  );
}

const byId = (id) => document.getElementById(id);
