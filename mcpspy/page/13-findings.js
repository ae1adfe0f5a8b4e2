// Findings and numbers, as text and elements.

const MANY_BRIEF = 3;
const narrow = matchMedia("(max-width: 760px)"); // there the rows need the room: one finding, and how many more there are

const findings = (() => {
  function finding(one) {
    const row = one.row ? make("a", { href: `#row=${one.row}`, "data-row": one.row }, `row ${one.row}`) : "";
    const times = one.count > 1 ? ` ×${one.count.toLocaleString("en")}` : "";
    return make(
      "article",
      { class: `finding ${one.severity}` },
      make("h3", {}, `${one.severity} · ${one.title} · ${one.rule}${times}`, row ? " · " : "", row),
      make("p", {}, one.what),
      make("p", {}, one.blame),
      make("p", {}, `→ ${one.advice}`),
    );
  }

  // The worst findings are above everything, on every tab.
  function brief(one) {
    const times = one.count > 1 ? ` ×${one.count.toLocaleString("en")}` : "";
    return make(
      "li",
      {},
      make("span", { class: STYLES[one.severity] }, `${one.severity} `),
      make(
        "a",
        { href: one.row ? `#row=${one.row}` : "#tab=findings", title: one.what, "data-row": one.row || undefined },
        `${one.title}${times}`,
      ),
    );
  }

  function worst() {
    const byRule = new Map();
    for (const one of data.findings) {
      const same = byRule.get(one.rule);
      if (one.severity !== "note") byRule.set(one.rule, same ? { ...same, count: same.count + one.count } : one);
    }
    const bad = [...byRule.values()];
    const many = narrow.matches ? 1 : MANY_BRIEF;
    const others = bad.length - many;
    byId("worst").replaceChildren(
      ...bad.slice(0, many).map(brief),
      ...(others > 0 ? [make("li", {}, make("a", { href: "#tab=findings" }, `${others} more`))] : []),
    );
  }

  function render() {
    worst();
    const none = isLive && !live.knowsFindings() ? "Not all checked yet." : "Nothing was found.";
    byId("findings").replaceChildren(...(data.findings.length ? data.findings.map(finding) : [make("p", {}, none)]));
    byId("finding-count").textContent = data.findings.length ? ` (${data.findings.length})` : "";
    byId("numbers").textContent = data.numbers;
  }

  narrow.addEventListener("change", worst);

  return { render };
})();
