// Search, facets, tabs and keys.

const MANY_OPTIONS = 200;

const controls = (() => {
  const search = byId("search");
  const LABELS = { from: "direction", method: "method", tool: "tool", outcome: "outcome", lane: "lane", kind: "kind" };

  function facets() {
    for (const facet of FACETS) {
      const counts = new Map();
      for (const row of rows) {
        for (const value of facetValues(row, facet)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const element = byId(`facet-${facet}`);
      if (element === document.activeElement) continue; // its menu may be open
      const wanted = state.facets[facet];
      if (wanted && !counts.has(wanted)) counts.set(wanted, 0);
      element.hidden = !wanted && (counts.size < 2 || [...counts.values()].every((count) => count === rows.length));
      const options = [...counts].sort((a, b) => (b[0] === wanted) - (a[0] === wanted) || b[1] - a[1]).slice(0, MANY_OPTIONS);
      element.replaceChildren(
        make("option", { value: "" }, `any ${LABELS[facet]}`),
        ...options.map(([value, count]) => make("option", { value }, `${value.slice(0, 60)} (${count})`)),
      );
      element.value = wanted ?? "";
    }
  }

  for (const facet of FACETS) {
    byId(`facet-${facet}`).addEventListener("change", (event) => {
      state.facets[facet] = event.target.value;
      sift();
    });
  }

  // On a narrow screen the facets are behind a button, which says how many are set.
  byId("more").addEventListener("click", (event) => {
    event.currentTarget.setAttribute("aria-expanded", String(byId("facets").classList.toggle("open")));
  });

  function show() {
    search.value = state.search;
    FACETS.forEach((facet) => {
      byId(`facet-${facet}`).value = state.facets[facet] ?? "";
    });
    byId("slow").value = state.slow ? String(state.slow / 1e6) : "";
  }

  function tabs() {
    for (const button of document.querySelectorAll("nav button")) {
      const isOpen = button.dataset.tab === state.tab;
      button.setAttribute("aria-selected", String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
      byId(`tab-${button.dataset.tab}`).hidden = !isOpen;
    }
    const body = byId(`tab-${state.tab}`).querySelector(".body");
    if (body) body.append(detail.element);
  }

  function step(by) {
    const at = shown.findIndex((row) => row.index + 1 === state.chosen);
    const from = at >= 0 ? at : by > 0 ? -1 : shown.length;
    const next = Math.min(shown.length - 1, Math.max(0, from + by));
    if (shown[next]) choose(shown[next].index + 1);
  }

  const page = () => Math.max(1, Math.floor(list.element.clientHeight / ROW) - 1);
  const KEYS = {
    j: () => step(1),
    ArrowDown: () => step(1),
    k: () => step(-1),
    ArrowUp: () => step(-1),
    PageDown: () => step(page()),
    PageUp: () => step(-page()),
    g: () => step(-Infinity),
    Home: () => step(-Infinity),
    G: () => step(Infinity),
    End: () => step(Infinity),
    Enter: () => detail.element.focus(),
    "/": () => search.focus(),
    Escape: () => choose(0),
    "?": () => byId("help").showModal(),
    1: () => turn("timeline"),
    2: () => turn("diagram"),
    3: () => turn("findings"),
    4: () => turn("numbers"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const target = event.target;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape") {
        target.blur();
        if (target === search) {
          state.search = "";
          show();
          sift();
        }
      }
      return;
    }
    if (event.key === "Enter" && target.matches("button, summary, a")) return;
    if (target === detail.element && ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"].includes(event.key)) return;
    const action = KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(
      () => {
        state.search = search.value;
        sift();
      },
      rows.length > 2000 ? 150 : 30,
    );
  });
  // Mark what is wrong in a filter, and say below the box how its text was read.
  const NOTES = {
    none: () => "",
    filter: () => (shown.length ? "" : "No row matches this filter. To look for it as a text, put it in quotation marks."),
    text: () => "Looked for this text in names and payloads. A filter looks like tool:search* or status:error.",
    wrong: ({ error }) => `${error.message[0].toUpperCase()}${error.message.slice(1)}. ${error.advice}`,
  };

  function mark() {
    const { error, text, kind } = query;
    const end = error && error.at + Math.max(1, text.slice(error.at).search(/\s|$/));
    byId("wrong").replaceChildren(
      ...(error ? [harmless(text.slice(0, error.at)), make("u", {}, text.slice(error.at, end) || "  ")] : []),
    );
    byId("wrong").scrollLeft = search.scrollLeft;
    search.setAttribute("aria-invalid", String(Boolean(error)));
    const note = byId("note");
    note.textContent = harmless(NOTES[kind](query));
    note.hidden = !note.textContent;
    note.className = error ? "bad" : "";
  }
  for (const name of ["scroll", "input", "keyup"]) {
    search.addEventListener(name, () => {
      byId("wrong").scrollLeft = search.scrollLeft;
    });
  }

  byId("slow").addEventListener("input", (event) => {
    state.slow = Number(event.target.value) * 1e6 || 0;
    sift();
  });
  document.querySelectorAll("nav button").forEach((button) => button.addEventListener("click", () => turn(button.dataset.tab)));
  document.querySelector("nav").addEventListener("keydown", (event) => {
    const buttons = [...document.querySelectorAll("nav button")];
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length];
    turn(next.dataset.tab);
    next.focus();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-row]");
    if (!link) return;
    event.preventDefault();
    const row = rowByNumber.get(Number(link.dataset.row));
    turn("timeline");
    if (row) choose(row.index + 1);
  });
  const turned = (what) => {
    if (what === "tab") tabs();
  };
  watch(turned, { early: true });
  watch((what) => {
    const set = FACETS.filter((facet) => state.facets[facet]).length + (state.slow ? 1 : 0);
    if (what.startsWith("rows")) mark();
    if (what.startsWith("rows")) byId("more").textContent = set ? `filters (${set})` : "filters";
  });
  return { facets, show };
})();
