// The list of rows. Only visible rows are elements, however many there are.

const ROW = 26;
const HEADS = 24; // the height of the column heads above the rows
const MORE = 12; // how many rows beyond the edge are made in advance

const list = (() => {
  const grid = byId("grid");
  const scroll = byId("scroll");
  const space = byId("space");
  let drawn = [0, 0];

  function render({ anew = false } = {}) {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - MORE);
    const last = Math.min(shown.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + MORE);
    if (!anew && first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    space.style.height = `${shown.length * ROW}px`;
    grid.classList.toggle("lanes", Boolean(data.lanes));
    grid.querySelector(".heads .lane").textContent = data.lanes;
    const lines = [];
    for (let at = first; at < last; at += 1) lines.push(line(shown[at], at));
    space.replaceChildren(...lines);
  }

  function line(row, at) {
    const isChosen = row.index + 1 === state.chosen;
    const made = make(
      "div",
      {
        class: `line ${row.kind === "fold" ? "log fold" : row.kind}`,
        role: "row",
        id: `line-${row.index}`,
        "aria-rowindex": at + 2,
        "aria-selected": String(isChosen),
        onclick: () => choose(row.index + 1),
      },
      cell(row.row || "", "number dim"),
      cell(seconds(row.at), "number dim"),
      cell(tookText(row), "number"),
      cell(row[laneOf()], "lane dim", row[laneOf()]),
      cell(wayOf(row.from), "dim", row.from && `from ${row.from === "client" ? row.client : row.server}`),
      what(row),
      cell([row.outcome, row.detail].filter(Boolean).join(": "), row.style, row.detail),
      bar(row),
    );
    made.style.top = `${at * ROW}px`;
    return made;
  }

  // A column names the server, or where there is one server only, the client.
  function laneOf() {
    return data.lanes === "client" ? "client" : "server";
  }

  function cell(text, style = "", title = "") {
    return make("span", { role: "gridcell", class: style, title }, String(text));
  }

  function what(row) {
    const mark = row.flagged ? make("span", { class: "warn", title: "see the findings" }, "⚑ ") : "";
    if (row.kind === "fold") return make("span", { role: "gridcell", title: "show them" }, row.target);
    if (row.kind === "log") return make("span", { role: "gridcell", class: "dim", title: row.target }, `stderr ${row.target}`);
    return make(
      "span",
      { role: "gridcell", title: `${row.method} ${row.target} ${row.params}`.trim() },
      mark,
      row.method,
      " ",
      make("strong", {}, row.target),
      row.params && ` ${row.params}`,
    );
  }

  function bar(row) {
    const track = make("span", { role: "gridcell", class: "track", "aria-hidden": "true" });
    if (row.kind === "log" || row.kind === "fold") return track;
    const left = clock.place(row.at);
    const piece = make("i", { class: row.took === null && row.waited ? `${row.style} open` : row.style });
    piece.style.left = `${left * 100}%`;
    piece.style.width = `${Math.max(0, clock.place(row.at + lasted(row)) - left) * 100}%`;
    track.append(piece);
    for (const at of data.progress[row.row] ?? []) {
      const mark = make("b");
      mark.style.left = `${clock.place(at) * 100}%`;
      track.append(mark);
    }
    return track;
  }

  function reveal() {
    const at = shown.findIndex((row) => row.index + 1 === state.chosen);
    if (at < 0) return;
    const top = at * ROW;
    const room = scroll.clientHeight - HEADS;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + ROW > scroll.scrollTop + room) scroll.scrollTop = top + ROW - room;
  }

  // A click on a column's head sorts by it; a second one the other way round, a third one by time again.
  const sortable = [...grid.querySelectorAll("[data-sort]")];
  function sort(column) {
    const [first, then] = FIRST_UP.has(column) ? [column, `-${column}`] : [`-${column}`, column];
    state.sort = state.sort === first ? then : state.sort === then ? "" : first;
    sift();
  }
  for (const head of sortable) {
    head.addEventListener("click", () => sort(head.dataset.sort));
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      sort(head.dataset.sort);
    });
  }

  function markSorted() {
    const column = state.sort.replace("-", "");
    for (const head of sortable) {
      const isUp = !state.sort.startsWith("-");
      if (head.dataset.sort === column) head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }

  scroll.addEventListener("scroll", () => render());
  new ResizeObserver(() => render()).observe(scroll);
  watch((news) => {
    if (news.startsWith("rows")) {
      byId("count").textContent =
        !state.isSifted
          ? counted(Math.max(rows.length, data.total ?? 0), "row")
          : `${shown.length.toLocaleString("en")} of ${counted(rows.length, "row")}`;
      grid.setAttribute("aria-rowcount", shown.length + 1);
      markSorted();
      if (news === "rows") reveal();
      render({ anew: true });
    }
    if (news.startsWith("chosen")) {
      if (news === "chosen") reveal();
      render({ anew: true });
      if (state.chosen) grid.setAttribute("aria-activedescendant", `line-${state.chosen - 1}`);
    }
    if (news === "tab" && state.tab === "timeline") {
      reveal();
      render({ anew: true });
    }
  });
  return { render, element: scroll };
})();
