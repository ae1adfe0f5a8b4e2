// Reads a JSON array of Mermaid sequence diagrams on standard input and prints, as a JSON array, what Mermaid's own parser
// made of each: {participants: [{id, text}], signals: [{type, from, to, text}]}, or {error} where it refused the text.
// Run with build/npm as the working directory: mermaid is resolved from there.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { default: mermaid } = await import(pathToFileURL(require.resolve("mermaid")));
mermaid.initialize({ startOnLoad: false });

const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };

// While it parses, Mermaid keeps the entity `#35;` as `ﬂ°°35¶ß` and `#lt;` as `ﬂ°lt¶ß`; the page that it draws shows the character.
function shown(text) {
  return (text ?? "")
    .replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/ﬂ°(\w+)¶ß/g, (whole, name) => NAMED[name] ?? whole);
}

function typeNames(lineTypes) {
  return Object.fromEntries(Object.entries(lineTypes).map(([name, number]) => [number, name.toLowerCase()]));
}

async function read(text) {
  let db;
  try {
    await mermaid.parse(text);
    ({ db } = await mermaid.mermaidAPI.getDiagramFromText(text));
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
  if (!db.LINETYPE) return { error: "not a sequence diagram" };
  const names = typeNames(db.LINETYPE);
  return {
    participants: [...db.getActors()].map(([id, actor]) => ({ id, text: shown(actor.description) })),
    signals: db.getMessages().map((signal) => ({
      type: names[signal.type] ?? String(signal.type),
      from: signal.from ?? null,
      to: signal.to ?? null,
      text: typeof signal.message === "string" ? shown(signal.message) : "",
    })),
  };
}

const diagrams = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) diagrams.push(await read(text));
process.stdout.write(JSON.stringify(diagrams));
