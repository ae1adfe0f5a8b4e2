// What can be had of the rows that are shown: their messages as a file, or a command that has them in a format.

const exporting = (() => {
  const element = byId("export");

  // A file, a format, or a command as it stands. A live page learns by and by which captures it shows.
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

  // What the rows that are shown carry, a message to a line.
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
