// The overview above the list: all calls on one axis, those that overlap in lanes, idle time folded.

const LANE = 7;
const MAX_LANES = 12;
const MAX_BARS = 4000; // more are no overview

const waterfall = (() => {
  const element = byId("overview");
  const bars = new Map();

  function laid() {
    const busy = [];
    return rows.filter((row) => row.kind === "exchange").slice(0, MAX_BARS).map((row) => {
      const end = row.at + (row.took ?? 0);
      let lane = busy.findIndex((until) => until <= row.at);
      if (lane < 0) lane = busy.length < MAX_LANES ? busy.length : MAX_LANES - 1;
      busy[lane] = Math.max(end, busy[lane] ?? 0);
      return { row, lane };
    });
  }

  function render() {
    const placed = laid();
    const lanes = placed.reduce((most, one) => Math.max(most, one.lane + 1), 1);
    const height = lanes * LANE + 22;
    element.setAttribute("viewBox", `0 0 1000 ${height}`);
    element.setAttribute("preserveAspectRatio", "none");
    element.style.height = `${height}px`;
    element.replaceChildren(...clock.gaps.map(gap), ...placed.map(bar));
  }

  function gap([from, to]) {
    const x = clock.place(from) * 1000;
    return draw("rect", { class: "gap", x, y: 0, width: clock.place(to) * 1000 - x, height: "100%" }, draw("title", {}, `idle for ${duration(to - from)}`));
  }

  function bar({ row, lane }) {
    const x = clock.place(row.at) * 1000;
    const width = Math.max(1.5, clock.place(row.at + (row.took ?? 0)) * 1000 - x);
    const made = draw("rect", { class: row.style, x, y: 8 + lane * LANE, width, height: LANE - 2, onclick: () => choose(row.index + 1) },
      draw("title", {}, `${row.row} ${row.method} ${row.target} · ${row.outcome} · ${duration(row.took)}`));
    bars.set(row.index + 1, made);
    return made;
  }

  watch((what) => {
    if (!what.startsWith("chosen")) return;
    element.querySelectorAll(".chosen").forEach((one) => one.classList.remove("chosen"));
    bars.get(state.chosen)?.classList.add("chosen");
  });
  return { render };
})();
