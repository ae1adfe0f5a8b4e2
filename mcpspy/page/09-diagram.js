// The sequence diagram: steps below one another, of which only those that can be seen are drawn; a click opens the row.

const STEP = 26;
const LETTER = 7.2;
const LEFT = 76;
const HEAD = 34;
const GAP = [230, 560]; // lanes are no closer than the first, and no farther apart than the second

const picture = (() => {
  const element = byId("drawing");
  let lanes = [];
  let steps = [];
  let places = [];
  let width = 0;
  let height = 0;
  let zoom = 1;
  let drawn = "";
  let laidFor = 0;

  // Lay out what is to be drawn; a live page does so again and again.
  function lay(diagram) {
    ({ lanes, steps } = diagram);
    laidFor = element.clientWidth;
    const widest = steps.reduce((most, one) => Math.max(most, one.kind ? one.text.length : 0), 12);
    const wanted = Math.min(GAP[1], Math.max(widest * LETTER + 40, ...lanes.map((name) => name.length * LETTER + 30)));
    const room = (element.clientWidth - LEFT - 140) / Math.max(1, lanes.length - 1);
    const gap = Math.max(GAP[0], Math.min(wanted, room));
    places = lanes.map((_, at) => LEFT + 60 + at * gap);
    width = (places.at(-1) ?? 0) + Math.max(80, ((lanes.at(-1) ?? "").length * LETTER) / 2 + 20);
    height = HEAD + steps.length * STEP + 20;
    names();
    render({ anew: true });
  }

  const canvas = draw("svg", { role: "img", "aria-label": "Sequence diagram" });
  const sheet = draw("g");
  const heads = draw("svg", { class: "sticky", "aria-hidden": "true" });
  canvas.append(sheet);

  function render({ anew = false } = {}) {
    const first = Math.max(0, Math.floor((element.scrollTop / zoom - HEAD) / STEP) - MORE);
    const last = Math.min(steps.length, Math.ceil((element.scrollTop + element.clientHeight) / zoom / STEP) + MORE);
    const now = `${first} ${last} ${zoom}`;
    if (!anew && now === drawn) return;
    drawn = now;
    for (const [svg, tall] of [[canvas, height], [heads, HEAD]]) {
      svg.setAttribute("width", width * zoom);
      svg.setAttribute("height", tall * zoom);
      svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    }
    const made = places.map((x) => draw("line", { class: "lane", x1: x, x2: x, y1: HEAD, y2: height }));
    for (let at = first; at < last; at += 1) made.push(step(steps[at], HEAD + at * STEP));
    sheet.replaceChildren(...made);
  }

  function names() {
    heads.replaceChildren(...lanes.flatMap((name, at) => {
      const room = name.length * LETTER + 20;
      return [draw("rect", { class: "head", x: places[at] - room / 2, y: 4, width: room, height: 24, rx: 4 }), draw("text", { x: places[at], y: 20, "text-anchor": "middle" }, name)];
    }));
  }

  function step(one, y) {
    const base = y + STEP - 7;
    if (one.group !== undefined) return draw("text", { class: "dim", x: places[0] + 10 + one.depth * 12, y: base }, one.group);
    const row = rowByNumber.get(one.row);
    const made = draw("g", { class: `step${row && row.index + 1 === state.chosen ? " chosen" : ""}`, onclick: () => row && choose(row.index + 1) },
      draw("rect", { class: "field", x: 0, y, width, height: STEP }), draw("title", {}, one.text),
      draw("text", { class: "dim", x: LEFT - 12, y: base, "text-anchor": "end" }, seconds(one.at)));
    if (one.kind === "aside") {
      const x = places[one.start];
      const isLeft = one.start > 0;
      made.append(draw("circle", { class: "tip", cx: x, cy: base - 4, r: 3 }),
        draw("text", { class: one.style, x: isLeft ? x - 10 : x + 10, y: base, "text-anchor": isLeft ? "end" : "start" }, cut(one.text, (isLeft ? x - LEFT : width - x) - 20)));
      return made;
    }
    const [from, to] = [places[one.start], places[one.end]];
    const way = to >= from ? 1 : -1;
    const isLost = one.kind === "lost" || one.kind === "cancellation";
    const classes = ["arrow", one.kind === "response" || one.kind === "lost" ? "back" : "", one.kind === "notification" ? "news" : ""].join(" ");
    made.append(draw("path", { class: classes, d: `M${from} ${base + 3}H${to - way * 2}` }));
    const x = to - way * 2;
    const back = x - way * 8;
    if (isLost) made.append(draw("path", { class: "arrow", d: `M${back} ${base - 1}L${x} ${base + 7}M${back} ${base + 7}L${x} ${base - 1}` }));
    else made.append(draw("path", { class: one.kind === "notification" ? "arrow news" : "tip", d: `M${back} ${base - 1}L${x} ${base + 3}L${back} ${base + 7}` }));
    made.append(draw("text", { class: one.style, x: (from + to) / 2, y: base - 2, "text-anchor": "middle" }, cut(one.text, Math.abs(to - from) - 24)));
    return made;
  }

  function cut(text, room) {
    const letters = Math.max(1, Math.floor(room / LETTER));
    return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
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
    if (at >= 0 && (top < element.scrollTop + HEAD || top + STEP > element.scrollTop + element.clientHeight)) element.scrollTop = top - element.clientHeight / 2;
  }

  element.append(heads, canvas);
  lay(data.diagram);
  element.addEventListener("scroll", () => render());
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    magnify(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });
  new ResizeObserver(() => { if (element.clientWidth && element.clientWidth !== laidFor) lay(data.diagram); else render(); }).observe(element);
  byId("larger").addEventListener("click", () => magnify(1.25));
  byId("smaller").addEventListener("click", () => magnify(0.8));
  watch((what) => {
    if (state.tab !== "diagram") return;
    if (what === "tab" || what.startsWith("chosen")) { reveal(); render({ anew: true }); }
  });
  return { render, lay };
})();
