// Findings and numbers, as text and elements.

const findings = (() => {
  function finding(one) {
    const row = one.row ? make("a", { href: `#row=${one.row}`, "data-row": one.row }, `row ${one.row}`) : "";
    const times = one.count > 1 ? ` ×${one.count.toLocaleString("en")}` : "";
    return make("article", { class: `finding ${one.severity}` },
      make("h3", {}, `${one.severity} · ${one.rule}${times}`, row ? " · " : "", row),
      make("p", {}, one.what), make("p", {}, one.blame), make("p", {}, `→ ${one.advice}`));
  }

  function render() {
    byId("findings").replaceChildren(...(data.findings.length ? data.findings.map(finding) : [make("p", {}, "Nothing was found.")]));
    byId("finding-count").textContent = data.findings.length ? ` (${data.findings.length})` : "";
    byId("numbers").textContent = data.numbers;
  }

  return { render };
})();
