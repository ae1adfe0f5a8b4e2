// The details of one row: its messages as trees or raw, HTTP, what the server logged meanwhile, and commands.

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MAX_LOGS = 40;
const MANY_MESSAGES = 50; // more are added on request
const AROUND = 50e6; // log lines up to this long before and after a call are shown, in nanoseconds

const detail = (() => {
  const element = byId("detail");
  let raw = false;
  let last;

  async function render() {
    const row = rows[state.chosen - 1];
    element.hidden = !row;
    if (!row) return;
    const what = (await carried(row).catch((error) => ({ failure: error.message }))) ?? {};
    if (rows[state.chosen - 1] === row) fill(row, what);
  }

  function fill(row, what) {
    const top = last === row ? element.scrollTop : 0;
    last = row;
    element.replaceChildren(
      make("h2", {}, row.row ? `row ${row.row} · ` : "", row.method || row.kind, " ", row.target),
      make("p", { class: row.style }, [row.outcome, row.detail].filter(Boolean).join(": ") || "—"),
      make("p", { class: "facts" }, facts(row)),
      buttons(row, what),
      what.failure ?? "",
      ...(what.description ? [cutText("pre", {}, what.description.join("\n"))] : flaws(row)),
      messages(what.messages ?? []),
      ...(what.http ?? []).flatMap(transaction),
      ...logs(row),
    );
    element.scrollTop = top;
  }

  // The findings about the row. The description of a model call contains them already.
  function flaws(row) {
    return data.findings
      .filter((one) => row.row && one.row === row.row)
      .map((one) => {
        const title = `${one.severity} · ${one.title} · ${one.rule}`;
        return make("p", { class: STYLES[one.severity] }, `⚑ ${title}: ${one.what} → ${one.advice}`);
      });
  }

  function facts(row) {
    const made = [`${row.client} → ${row.server}`, `at ${seconds(row.at)} s`];
    if (row.took !== null) made.push(`took ${duration(row.took)}`);
    if (row.bytes) made.push(bytes(row.bytes));
    return made.join(" · ");
  }

  function buttons(row, what) {
    const texts = { "copy JSON": (what.messages ?? []).map((one) => one.text ?? "").join("\n") };
    if (what.curl) texts["copy as curl"] = what.curl;
    const call = row.kind === "exchange" && row.from === "client" && commands.call(row);
    if (call) texts["copy mcpspy call"] = call;
    if (row.row) texts["copy mcpspy mock"] = commands.mock(row);
    if (row.row) texts["copy link"] = location.href;
    return make(
      "div",
      { class: "buttons" },
      makeButton(raw ? "as a tree" : "as on the wire", turnRaw, { "aria-pressed": String(raw) }),
      Object.entries(texts).map(([name, text]) => makeButton(name, (event) => copy(text, event.currentTarget))),
    );
  }

  function turnRaw() {
    raw = !raw;
    render();
  }

  // The messages in order. Of many the first ones and the answer, and a button for the rest.
  function messages(all) {
    const answer = all.length - 1;
    const made = make("div", {}, all.slice(-1).flatMap((one) => message(one, all[0])));
    const rest = make("div", {});
    made.prepend(rest);
    const add = (from) => {
      const to = Math.min(answer, from + MANY_MESSAGES);
      rest.before(...all.slice(from, to).flatMap((one) => message(one, all[0])));
      rest.replaceChildren(...(to < answer ? [makeButton(counted(answer - to, "more message"), () => add(to))] : []));
    };
    add(0);
    return made;
  }

  function message(one, first) {
    const later = one === first ? "" : ` · ${duration(one.at - first.at)} later`;
    const heading = make(
      "h3",
      {},
      `${wayOf(one.from)} ${one.kind} · at ${seconds(one.at)} s${later} · record ${one.record} · ${bytes(one.bytes)}`,
    );
    if (one.text === undefined) {
      return [heading, make("pre", {}, one.lost ? `${bytes(one.bytes)} were not kept` : `Base64: ${one.base64}`)];
    }
    return [heading, raw ? cutText("pre", {}, one.text) : tree(one.text), ...images(one.text)];
  }

  // Images in results, from data in the page: nothing is loaded.
  function images(text) {
    if (!text.includes("image/")) return [];
    let result;
    try {
      ({ result } = JSON.parse(text));
    } catch {
      return [];
    }
    const found = result?.content ?? result?.contents;
    if (!Array.isArray(found)) return [];
    return found
      .map((one) => [one?.mimeType, one?.data ?? one?.blob])
      .filter(([type, body]) => IMAGES.has(type) && typeof body === "string" && /^[A-Za-z0-9+/=\s]+$/.test(body))
      .map(([type, body]) =>
        make("img", {
          alt: `${type}, ${bytes(Math.floor(body.length * 0.75))}`,
          src: `data:${type};base64,${body.replace(/\s/g, "")}`,
        }),
      );
  }

  function transaction(one) {
    const timing = [
      `at ${seconds(one.at)} s`,
      one.waited !== null && `response after ${duration(one.waited)}`,
      one.took !== null && `ended after ${duration(one.took)}`,
    ];
    return [
      make("h3", {}, `HTTP transaction ${one.number} · connection ${one.connection} · ${one.status || "no response"}`),
      make("p", { class: "facts" }, timing.filter(Boolean).join(" · ")),
      make("pre", {}, one.request),
      one.response ? make("pre", {}, one.response) : "",
      one.chunks?.length
        ? make("p", { class: "facts" }, `chunks: ${one.chunks.map((size) => `0x${size.toString(16)}`).join(" ")}`)
        : "",
    ].filter(Boolean);
  }

  function logs(row) {
    const from = row.at - AROUND;
    const to = row.at + (row.took ?? 0) + AROUND;
    const found = rows.filter(
      (one) => one.kind === "log" && one.server === row.server && one.at >= from && one.at <= to && one !== row,
    );
    if (!found.length) return [];
    const lines = found.slice(0, MAX_LOGS).map((one) => `${seconds(one.at)}  ${one.target}`);
    if (found.length > MAX_LOGS) lines.push(`… ${found.length - MAX_LOGS} more`);
    return [make("h3", {}, "stderr at that time"), make("pre", {}, lines.join("\n"))];
  }

  const chosen = (what) => {
    if (what.startsWith("chosen")) render();
  };
  watch(chosen, { early: true });
  return { element };
})();
