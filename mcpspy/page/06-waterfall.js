// The overview above the list: all calls on one axis, overlapping calls in lanes, idle time folded, progress as marks. Failed
// calls have a sign above them, pending calls are hollow.

const LANE = 7;
const MAX_LANES = 12;
const SKY = 9; // room for signs above the lanes
const GROUND = 16; // room for times below the lanes
const THIN = 1.5; // adjacent bars up to this width are drawn as one, which bounds their number
const SIGN = 3;

const waterfall = (() => {
  const element = byId("overview");
  const mark = draw("rect", { class: "chosen", y: 0, width: 2, visibility: "hidden" });
  let width = 0;

  function laid() {
    const busy = [];
    return rows
      .filter((row) => CALLS.has(row.kind))
      .map((row) => {
        const end = row.at + lasted(row);
        let lane = busy.findIndex((until) => until <= row.at);
        if (lane < 0) lane = busy.length < MAX_LANES ? busy.length : MAX_LANES - 1;
        busy[lane] = Math.max(end, busy[lane] ?? 0);
        const x = clock.place(row.at) * width;
        return { row, lane, x, width: Math.max(THIN, clock.place(end) * width - x) };
      });
  }

  function seen(placed) {
    const last = new Map();
    return placed.filter((one) => {
      const place = `${one.lane} ${one.row.style}`;
      const end = one.x + one.width;
      if (one.width <= THIN && one.x < (last.get(place) ?? -1) + THIN) return false;
      last.set(place, one.row.took === null ? one.x : end); // a wait has no end that another sign could be drawn with
      return true;
    });
  }

  function render() {
    width = element.clientWidth;
    if (!width) return;
    const placed = laid();
    const lanes = placed.reduce((most, one) => Math.max(most, one.lane + 1), 1);
    const height = SKY + lanes * LANE + GROUND;
    element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    element.setAttribute("aria-label", `${counted(placed.length, "call")} on one axis of ${duration(clock.end)}`);
    element.style.height = `${height}px`;
    mark.setAttribute("height", height - GROUND);
    element.replaceChildren(
      hatching(),
      ...clock.gaps.map((one) => gap(one, height - GROUND)),
      ...times(height - 4),
      ...seen(placed).flatMap(bar),
      mark,
    );
    point();
  }

  function hatching() {
    return draw(
      "defs",
      {},
      draw(
        "pattern",
        { id: "idle", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        draw("rect", { class: "stroke", width: 1.5, height: 5 }),
      ),
    );
  }

  function gap([from, to], height) {
    const x = clock.place(from) * width;
    return draw(
      "rect",
      { class: "gap", x, y: 0, width: clock.place(to) * width - x, height },
      draw("title", {}, `idle for ${duration(to - from)}`),
    );
  }

  // The labels below: start, end and idle times, as far as they fit.
  function times(y) {
    const taken = [];
    if (!rows.length) return [];
    const wanted = [
      [width - 6, duration(clock.end), "end"],
      [6, "0", "start"],
      ...clock.gaps.map(([from, to]) => [
        ((clock.place(from) + clock.place(to)) / 2) * width,
        `${duration(to - from)} idle`,
        "middle",
      ]),
    ];
    return wanted
      .map(([x, text, anchor]) => {
        const room = cells(text) * LETTER;
        const left = x - { start: 0, middle: room / 2, end: room }[anchor];
        if (left < 0 || left + room > width || taken.some(([from, to]) => left < to + 8 && left + room + 8 > from)) return undefined;
        taken.push([left, left + room]);
        return draw("text", { x, y, "text-anchor": anchor }, text);
      })
      .filter(Boolean);
  }

  function bar({ row, lane, x, width: wide }) {
    const y = SKY + lane * LANE;
    const made = [
      draw(
        "rect",
        { class: `call ${row.style}`, x, y, width: wide, height: LANE - 2, onclick: () => choose(row.index + 1) },
        draw("title", {}, `${row.row} ${row.method} ${row.target} · ${row.outcome} · ${tookText(row)}`),
      ),
    ];
    if (row.style === "bad") {
      made.push(
        draw("path", { class: "fault", d: `M${x - SIGN} 1l${SIGN * 2} ${SIGN * 2}m0 ${-SIGN * 2}l${-SIGN * 2} ${SIGN * 2}` }),
      );
    }
    if (row.style === "warn") made.push(draw("path", { class: "fault warn", d: `M${x - SIGN} 2h${SIGN * 2}l${-SIGN} ${SIGN * 2}z` }));
    return [
      ...made,
      ...(data.progress[row.row] ?? []).map((at) =>
        draw("rect", { class: "progress", x: clock.place(at) * width, y: y + 1, width: 1.5, height: LANE - 4 }),
      ),
    ];
  }

  // The selected row has a mark of its own, because its bar may be too thin to see, or drawn with others.
  function point() {
    const row = rows[state.chosen - 1];
    mark.setAttribute("visibility", row ? "visible" : "hidden");
    if (row) mark.setAttribute("x", clock.place(row.at) * width - 1);
  }

  new ResizeObserver(() => {
    if (element.clientWidth !== width) render();
  }).observe(element);
  watch((what) => {
    if (what.startsWith("chosen")) point();
  });
  return { render };
})();
