// The sequence diagram. Only visible steps are elements; a click opens the row.

const BAR = 8;
const TIP = 8;

const BODIES = { request: "arrow", response: "arrow back", notification: "arrow news", cancellation: "arrow", lost: "arrow back" };
const CROSSED = new Set(["cancellation", "lost"]);

const picture = (() => {
  const element = byId("drawing");
  const canvas = draw("svg", { role: "img", "aria-label": "Sequence diagram" });
  const sheet = draw("g");
  const heads = draw("svg", { class: "sticky", "aria-hidden": "true" });
  let steps = [];
  let sheetOf = laidOut({ lanes: [], steps }, 0);
  let zoom = 1;
  let drawn = "";
  let laidFor = 0;

  // Compute the layout; a live page does so repeatedly.
  function lay(diagram) {
    ({ steps } = diagram);
    laidFor = element.clientWidth;
    sheetOf = laidOut(diagram, laidFor);
    names(diagram.lanes);
    render({ anew: true });
  }

  function render({ anew = false } = {}) {
    const first = Math.max(0, Math.floor((element.scrollTop / zoom - HEAD) / STEP) - MORE);
    const last = Math.min(steps.length, Math.ceil((element.scrollTop + element.clientHeight) / zoom / STEP) + MORE);
    const now = `${first} ${last} ${zoom}`;
    if (!anew && now === drawn) return;
    drawn = now;
    size(canvas, sheetOf.height);
    size(heads, HEAD);
    const isSeen = (one) => one.from < last && one.to >= first;
    const some = state.isSifted ? new Set(shown.map((row) => row.row)) : undefined;
    sheet.replaceChildren(
      ...sheetOf.frames.filter(isSeen).map(frame),
      ...sheetOf.places.map(lane),
      ...sheetOf.bars.filter(isSeen).map(bar),
      ...steps.slice(first, last).map((one, at) => step(one, HEAD + (first + at) * STEP, some)),
    );
  }

  function size(svg, height) {
    svg.setAttribute("width", sheetOf.width * zoom);
    svg.setAttribute("height", height * zoom);
    svg.setAttribute("viewBox", `0 0 ${sheetOf.width} ${height}`);
  }

  function names(whole) {
    heads.replaceChildren(
      ...sheetOf.names.flatMap((name, at) => {
        const [x, half] = [sheetOf.places[at], sheetOf.halves[at]];
        return draw(
          "g",
          {},
          draw("title", {}, whole[at]),
          draw("rect", { class: "head", x: x - half + 2, y: 4, width: half * 2 - 4, height: 24, rx: 4 }),
          letters(name, x, 20, "name", "middle"),
        );
      }),
    );
  }

  // A text in cells of one width in any font, so that nothing overlaps.
  function letters(text, x, y, style = "", anchor = "start") {
    return draw(
      "text",
      {
        x,
        y,
        class: style,
        "text-anchor": anchor,
        textLength: text ? cells(text) * LETTER : undefined,
        lengthAdjust: "spacingAndGlyphs",
      },
      text,
    );
  }

  function frame({ kind, depth, from, to }) {
    const inset = kind === "loop" ? 46 + depth * 8 : 0;
    const [left, right] =
      kind === "loop" ? [sheetOf.places[0] - 46 + depth * 8, sheetOf.places.at(-1) + inset - depth * 16] : [4, sheetOf.width - 4];
    return draw("rect", {
      class: kind,
      x: left,
      y: HEAD + from * STEP + 3,
      width: right - left,
      height: (to - from + 1) * STEP - 2,
      rx: 4,
    });
  }

  function lane(x) {
    return draw("line", { class: "lane", x1: x, x2: x, y1: HEAD, y2: sheetOf.height });
  }

  function bar(one) {
    const y = HEAD + one.from * STEP + STEP - 4;
    return draw("rect", {
      class: "bar",
      x: sheetOf.places[one.lane] - BAR / 2 + one.level * 3,
      y,
      width: BAR,
      height: Math.max(2, (one.to - one.from) * STEP),
    });
  }

  function step(one, y, some) {
    const base = y + STEP - 7;
    if (one.text === undefined) return heading(one, base);
    const row = rowByNumber.get(one.row);
    const isFaint = some && one.row && !some.has(one.row);
    const made = draw(
      "g",
      {
        class: `step${row && row.index + 1 === state.chosen ? " chosen" : ""}${isFaint ? " faint" : ""}`,
        onclick: () => row && choose(row.index + 1),
      },
      draw("rect", { class: "field", x: 0, y, width: sheetOf.width, height: STEP }),
      draw("title", {}, one.text),
      letters(seconds(one.at), sheetOf.times - 12, base, "dim", "end"),
    );
    made.append(...(one.end === undefined ? aside(one, y) : arrow(one, y)));
    return made;
  }

  function heading(one, base) {
    const x = sheetOf.places[0] + 10 + one.depth * 12;
    return draw("g", {}, draw("title", {}, one.title), letters(cut(one.title, room(sheetOf.width - x - 12)), x, base, "dim"));
  }

  function aside(one, y) {
    const x = sheetOf.places[one.start];
    const isLeft = one.start > 0;
    const text = cut(one.text, room((isLeft ? x - sheetOf.times : sheetOf.width - x) - 26));
    const width = cells(text) * LETTER + 12;
    const left = isLeft ? x - width - 8 : x + 8;
    return [
      draw("circle", { class: "tip", cx: x, cy: y + 15, r: 3 }),
      draw("rect", { class: "note", x: left, y: y + 5, width, height: 19, rx: 3 }),
      letters(text, left + 6, y + 19, one.style),
    ];
  }

  function arrow(one, y) {
    const [from, to] = [sheetOf.places[one.start], sheetOf.places[one.end]];
    const line = y + STEP - 4;
    const way = to >= from ? 1 : -1;
    const tip = to - (way * BAR) / 2;
    const text = cut(one.text, room(Math.abs(to - from) - BESIDE + 6));
    const { middle, isClear } = between(sheetOf.places, from, to, cells(text) * LETTER);
    return [
      draw("path", { class: BODIES[one.kind], d: `M${from + (way * BAR) / 2} ${line}H${tip}` }),
      head(one.kind, tip, line, way),
      letters(text, middle, line - 5, `${one.style}${isClear ? "" : " over"}`, "middle"),
    ];
  }

  // Filled for requests and responses, open for notifications, a cross if cancelled or lost.
  function head(kind, x, y, way) {
    const back = x - way * TIP;
    if (CROSSED.has(kind)) {
      return draw("path", { class: "arrow", d: `M${back} ${y - 4}L${x} ${y + 4}M${back} ${y + 4}L${x} ${y - 4}` });
    }
    return draw("path", { class: kind === "notification" ? "arrow news" : "tip", d: `M${back} ${y - 4}L${x} ${y}L${back} ${y + 4}` });
  }

  function room(pixels) {
    return Math.max(1, Math.floor(pixels / LETTER));
  }

  function magnify(factor) {
    const middle = element.scrollTop / zoom;
    zoom = Math.min(3, Math.max(0.25, zoom * factor));
    render({ anew: true });
    element.scrollTop = middle * zoom;
    byId("zoom").textContent = `${Math.round(zoom * 100)} %`;
  }

  function reveal() {
    const row = rows[state.chosen - 1];
    const at = row ? steps.findIndex((one) => one.row === row.row && one.row) : -1;
    const top = (HEAD + at * STEP) * zoom;
    if (at >= 0 && (top < element.scrollTop + HEAD || top + STEP > element.scrollTop + element.clientHeight)) {
      element.scrollTop = top - element.clientHeight / 2;
    }
  }

  canvas.append(sheet);
  element.append(heads, canvas);
  allRead.then(() => {
    data.diagram ??= JSON.parse(byId("diagram")?.textContent ?? '{"lanes":[],"steps":[]}');
    lay(data.diagram);
  });
  element.addEventListener("scroll", () => render());
  element.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      magnify(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    },
    { passive: false },
  );
  new ResizeObserver(() => {
    if (data.diagram && element.clientWidth && element.clientWidth !== laidFor) lay(data.diagram);
    else render();
  }).observe(element);
  byId("larger").addEventListener("click", () => magnify(1.25));
  byId("smaller").addEventListener("click", () => magnify(0.8));
  watch((what) => {
    if (state.tab !== "diagram") return;
    if (what === "tab" || what.startsWith("chosen")) reveal();
    render({ anew: true });
  });
  return { lay };
})();
