// Commands to copy, for the captures of the page by their names on the command line.

const commands = (() => {
  const FORMATS = ["markdown", "mermaid", "plantuml", "svg", "text", "html", "jsonl", "har", "pytest"];
  const MANY = 4; // up to this many captures have commands of their own
  const MAX_LETTERS = 100_000; // shells accept no longer word (Linux: 128 KiB)

  // A filter for the rows that are shown: `row:2..4 or row:7`.
  function filter() {
    const numbers = shown
      .map((row) => row.row)
      .filter(Boolean)
      .sort((a, b) => a - b);
    const runs = [];
    for (const number of numbers) {
      if (runs.at(-1)?.[1] === number - 1) runs.at(-1)[1] = number;
      else runs.push([number, number]);
    }
    return runs.map(([from, to]) => (from === to ? `row:${from}` : `row:${from}..${to}`)).join(" or ");
  }

  // Undefined if the command would be too long for a shell.
  function exported(format) {
    const isFilter = lastQuery.kind === "filter" && !state.slow && !FACETS.some((facet) => state.facets[facet]) && !data.isPart;
    const wanted = isFilter ? lastQuery.text.replaceAll("'", "'\\''") : filter() || "row:0";
    const which = state.isSifted || data.isPart ? ` -F '${wanted}'` : "";
    return which.length > MAX_LETTERS ? undefined : `mcpspy export ${format} ${data.addresses.join(" ")}${which}`;
  }

  // Commands for whole captures: mock each, and replay each whose client asked a server something.
  function played() {
    const asks = new Set(rows.filter((row) => row.kind === "exchange" && row.from === "client").map((row) => row.capture));
    return data.addresses
      .slice(0, MANY)
      .flatMap((one, capture) => [`mcpspy mock ${one}`, ...(asks.has(capture) ? [`mcpspy replay ${one}`] : [])]);
  }

  // A mock plays one server, and a replay one capture: that of the row. Its rows have other numbers when it is shown alone.
  function address(row) {
    return data.addresses[row.capture] ?? "@";
  }

  // Undefined if this page does not have the rows before it, by which its number in its own capture is known.
  function call(row) {
    if (data.addresses.length > 1 && data.isPart) return undefined;
    const before = rows.filter((other) => other.row && other.row <= row.row && other.capture === row.capture);
    return `mcpspy call ${address(row)}:${data.addresses.length > 1 ? before.length : row.row}`;
  }

  return { FORMATS, exported, played, mock: (row) => `mcpspy mock ${address(row)}`, call };
})();

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyFromFile(text);
  }
  tellFor(button, "copied");
}

// Show another text on an element for a moment.
function tellFor(element, text) {
  element.dataset.name ??= element.textContent;
  element.textContent = text;
  setTimeout(() => {
    element.textContent = element.dataset.name;
  }, 1200);
}

// Pages from file:// have no clipboard.
function copyFromFile(text) {
  const area = make("textarea", { class: "sr" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
