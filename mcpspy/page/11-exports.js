// Exports of the rows that are shown: their messages as a file, or a command that exports them.

const exporting = (() => {
  const element = byId("export");

  // A file, a format, or a complete command. A live page learns its captures over time.
  function render() {
    const wanted = [
      ["save", "save messages as a file"],
      ...commands.FORMATS.map((format) => [format, `copy: mcpspy export ${format}`]),
      ...commands.played().map((command) => [command, `copy: ${command}`]),
    ];
    if (wanted.length === element.options.length - 1) return;
    element.replaceChildren(
      make("option", { value: "" }, "export…"),
      ...wanted.map(([value, text]) => make("option", { value }, text)),
    );
  }

  // The messages of the rows that are shown, one per line.
  async function messages() {
    const texts = [];
    for (const row of [...shown]) {
      const what = row.row ? await carried(row) : undefined;
      for (const one of what?.messages ?? []) if (one.text !== undefined) texts.push(`${oneLine(one.text)}\n`);
    }
    return texts.join("");
  }

  function save(text) {
    const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    make("a", { href: address, download: "messages.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  async function give(wanted) {
    const name = element.options[0];
    if (wanted === "save") {
      save(await messages());
      return;
    }
    const command = commands.FORMATS.includes(wanted) ? commands.exported(wanted) : wanted;
    if (command) await copy(command, name);
    else tellFor(name, "too many rows for a command: save them");
  }

  element.addEventListener("change", () => {
    const wanted = element.value;
    element.value = "";
    give(wanted).catch((error) => tellFor(element.options[0], error.message));
  });
  render();
  return { render };
})();
