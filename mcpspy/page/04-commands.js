// Commands about what is looked at, to be copied: for the captures that the page knows by what they are called on the command line.

const commands = (() => {
  const FORMATS = ["markdown", "mermaid", "plantuml", "svg", "text", "html", "jsonl", "har", "perfetto", "pytest"];
  const MANY = 4; // so many captures have commands of their own
  const MAX_LETTERS = 100_000; // a longer word no shell takes (Linux: 128 KiB)

  // The numbers of those rows that are shown, as a filter has them: `row:2..4 or row:7`.
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

  // Nothing where the command would be too long to be one.
  function exported(format) {
    const which = shown.length === rows.length && !data.isPart ? "" : ` -F '${filter() || "row:0"}'`;
    return which.length > MAX_LETTERS ? undefined : `mcpspy export ${format} ${data.addresses.join(" ")}${which}`;
  }

  // For captures as wholes: each is served as one server, and replayed as one client if one asked a server anything.
  function played() {
    const asks = new Set(rows.filter((row) => row.kind === "exchange" && row.from === "client").map((row) => row.capture));
    return data.addresses
      .slice(0, MANY)
      .flatMap((one, capture) => [`mcpspy mock ${one}`, ...(asks.has(capture) ? [`mcpspy replay ${one}`] : [])]);
  }

  // A mock plays one server, and a replay one capture: of several, the row's own. Rows of those have other numbers when they are
  // alone.
  function address(row) {
    return data.addresses[row.capture] ?? "@";
  }

  function replay(row) {
    const number = data.addresses.length > 1 ? "" : `:${row.row}`;
    return `mcpspy replay ${address(row)}${number}`;
  }

  return { FORMATS, exported, played, mock: (row) => `mcpspy mock ${address(row)}`, replay };
})();

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyFromFile(text);
  }
  tellFor(button, "copied");
}

// Let an element say something else for a moment.
function tellFor(element, text) {
  element.dataset.name ??= element.textContent;
  element.textContent = text;
  setTimeout(() => {
    element.textContent = element.dataset.name;
  }, 1200);
}

// From file:// browsers have no clipboard to offer.
function copyFromFile(text) {
  const area = make("textarea", { class: "sr" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
