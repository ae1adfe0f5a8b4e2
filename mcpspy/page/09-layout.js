// Positions in the sequence diagram, in pixels: lanes as far apart as their texts need and the room allows, steps below one another,
// activations and fragments from step to step. Nothing is drawn here.

const STEP = 26;
const HEAD = 34;
const LETTER = 7.2; // the width of a cell of a monospaced font of 12 px, which the drawing enforces
const BESIDE = 28; // the room that an arrow needs besides its text
const CLEAR = 12; // the distance of a text from the lanes beside it, both sides together
const NAME_CELLS = { least: 12, most: 30 };
const GAP = { least: 150, usual: 200, most: 620 }; // the least is for phones

const NARROW = /^[ -~]*$/;
const NO_CELL = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const TWO_CELLS =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

function cellsOf(letter) {
  if (NO_CELL.test(letter)) return 0;
  return TWO_CELLS.test(letter) ? 2 : 1;
}

// The width of a text in cells: Chinese characters and emoji take two, combining marks none.
function cells(text) {
  return NARROW.test(text) ? text.length : [...text].reduce((sum, letter) => sum + cellsOf(letter), 0);
}

// Cut a text to a number of cells; `…` replaces its end.
function cut(text, most) {
  if (cells(text) <= most) return text;
  let left = most - 1;
  let kept = "";
  for (const letter of text) {
    left -= cellsOf(letter);
    if (left < 0) break;
    kept += letter;
  }
  return `${kept}…`;
}

// The distances that neighbours want for the texts between them, given the room for their names.
function wantedGaps(steps, least) {
  const gaps = [...least];
  for (const one of steps) {
    if (one.text === undefined || !gaps.length) continue;
    const [first, last] = [one.start, one.end ?? Math.max(0, one.start - 1)].sort((a, b) => a - b);
    const to = Math.max(last, first + 1);
    const missing = cells(one.text) * LETTER + BESIDE - gaps.slice(first, to).reduce((sum, gap) => sum + gap, 0);
    if (missing > 0) gaps[to - 1] = Math.min(GAP.most, gaps[to - 1] + missing);
  }
  return gaps;
}

// Fit the gaps into the room: if it is too small, the widest shrink.
function fitted(gaps, least, room) {
  let [low, high] = [GAP.least, GAP.most];
  const bounded = (most) => gaps.map((gap, at) => Math.max(least[at], Math.min(gap, most)));
  while (high - low > 1) {
    const middle = (low + high) / 2;
    if (bounded(middle).reduce((sum, gap) => sum + gap, 0) > room) high = middle;
    else low = middle;
  }
  return bounded(low);
}

// The position of a text between two lanes, and whether it is clear of the lanes between: it is centred between the two neighbours
// that are furthest apart, if it fits.
function between(places, start, end, pixels) {
  const passed = places.filter((at) => at >= Math.min(start, end) && at <= Math.max(start, end));
  const widest = passed
    .slice(1)
    .map((at, before) => [passed[before], at])
    .sort((a, b) => b[1] - b[0] - (a[1] - a[0]))[0] ?? [start, end];
  const isClear = passed.length < 3 || widest[1] - widest[0] >= pixels + CLEAR;
  const [from, to] = isClear ? widest : [start, end];
  return { middle: (from + to) / 2, isClear };
}

// The activations: { lane, from, to, level }, from step to step; one on top of another has a higher level.
function barsOf(steps) {
  const open = new Map();
  const bars = [];
  const close = (lane, to) => bars.push({ lane, from: open.get(lane).pop(), to, level: open.get(lane).length });
  steps.forEach((one, at) => {
    if (one.opens !== undefined) open.set(one.opens, [...(open.get(one.opens) ?? []), at]);
    if (open.get(one.closes)?.length) close(one.closes, at);
  });
  for (const [lane, begins] of open) while (begins.length) close(lane, steps.length - 1);
  return bars.sort((a, b) => a.level - b.level);
}

// The fragments: { kind, depth, from, to }, the outer ones first.
function framesOf(steps) {
  return steps
    .map((one, at) => ({ kind: one.fragment, depth: one.depth, from: at, to: at + (one.size ?? 0) }))
    .filter((one) => one.kind);
}

// The layout of a diagram in a room of `width` pixels.
function laidOut({ lanes, steps }, room) {
  const fitting = Math.floor(room / Math.max(1, lanes.length) / LETTER) - 10;
  const names = lanes.map((name) => cut(name, Math.max(NAME_CELLS.least, Math.min(fitting, NAME_CELLS.most))));
  const halves = names.map((name) => Math.max(46, (cells(name) * LETTER) / 2 + 12));
  const times = cells(seconds(steps.reduce((most, one) => Math.max(most, one.at ?? 0), 0))) * LETTER + 24;
  const first = times + (halves[0] ?? 0) + 8;
  const closest = Math.max(GAP.least, Math.min(GAP.usual, room / 2.6));
  const least = halves.slice(1).map((half, at) => Math.max(closest, halves[at] + half + 16));
  const gaps = fitted(wantedGaps(steps, least), least, room - first - (halves.at(-1) ?? 0) - 12);
  const places = lanes.map((_, at) => first + gaps.slice(0, at).reduce((sum, gap) => sum + gap, 0));
  const width = (places.at(-1) ?? 0) + (halves.at(-1) ?? 0) + 12;
  return {
    names,
    halves,
    times,
    places,
    width,
    height: HEAD + steps.length * STEP + 20,
    bars: barsOf(steps),
    frames: framesOf(steps),
  };
}
