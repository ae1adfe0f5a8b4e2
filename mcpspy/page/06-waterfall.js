// The overview above the list: all calls on one axis, those that overlap in lanes, idle time folded.

const LANE = 7;
const MAX_LANES = 12;
const WIDTH = 1000;
const THIN = 1.5; // what is no wider and follows its like at once is drawn with it, so that there are never many bars

const waterfall = (() => {
  const element = byId("overview");
  const mark = draw("rect", { class: "chosen", y: 0, width: 2, height: "100%", visibility: "hidden" });

  function laid() {
    const busy = [];
    return rows.filter((row) => row.kind === "exchange").map((row) => {
      const end = row.at + (row.took ?? 0);
      let lane = busy.findIndex((until) => until <= row.at);
      if (lane < 0) lane = busy.length < MAX_LANES ? busy.length : MAX_LANES - 1;
      busy[lane] = Math.max(end, busy[lane] ?? 0);
      const x = clock.place(row.at) * WIDTH;
      return { row, lane, x, width: Math.max(THIN, clock.place(end) * WIDTH - x) };
    });
  }

  function seen(placed) {
    const last = new Map();
    return placed.filter((one) => {
      const place = `${one.lane} ${one.row.style}`;
      const end = one.x + one.width;
      if (one.width <= THIN && one.x < (last.get(place) ?? -1) + THIN) return false;
      last.set(place, end);
      return true;
    });
  }

  function render() {
    const placed = laid();
    const lanes = placed.reduce((most, one) => Math.max(most, one.lane + 1), 1);
    const height = lanes * LANE + 22;
    element.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    element.setAttribute("preserveAspectRatio", "none");
    element.style.height = `${height}px`;
    element.replaceChildren(...clock.gaps.map(gap), ...seen(placed).map(bar), mark);
    point();
  }

  function gap([from, to]) {
    const x = clock.place(from) * WIDTH;
    return draw("rect", { class: "gap", x, y: 0, width: clock.place(to) * WIDTH - x, height: "100%" }, draw("title", {}, `idle for ${duration(to - from)}`));
  }

  function bar({ row, lane, x, width }) {
    return draw("rect", { class: row.style, x, y: 8 + lane * LANE, width, height: LANE - 2, onclick: () => choose(row.index + 1) },
      draw("title", {}, `${row.row} ${row.method} ${row.target} · ${row.outcome} · ${duration(row.took)}`));
  }

  // A bar may be thinner than can be seen, or drawn with its like: the chosen row has a mark of its own.
  function point() {
    const row = rows[state.chosen - 1];
    mark.setAttribute("visibility", row ? "visible" : "hidden");
    if (row) mark.setAttribute("x", clock.place(row.at) * WIDTH - 1);
  }

  watch((what) => {
    if (what.startsWith("chosen")) point();
  });
  return { render };
})();
