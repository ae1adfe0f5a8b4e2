// An MCP server on the TypeScript SDK, in either of its generations, with what tests/peers/sdkserver.py has.
//
//   node sdk_server.mjs MODULES stdio|sse|http [mirrored]      MODULES is the folder node_modules in which an SDK is
//
// Generation 2 speaks HTTP+SSE no more. Over HTTP a free port is taken and printed first. Sessions are kept where the SDK keeps them.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [modules, transport, option] = process.argv.slice(2);
const sdk = createRequire(`${modules}/package.json`);
const isFirst = existsSync(`${modules}/@modelcontextprotocol/sdk`);
const sdkServer = (name) => sdk(isFirst ? `@modelcontextprotocol/sdk/server/${name}.js` : "@modelcontextprotocol/server");
const { z } = sdk("zod");
const { McpServer } = sdkServer("mcp");

function server() {
  const made = new McpServer({ name: "sdk_server", version: "1.0" });
  made.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => text(a + b));
  made.registerTool("count", { inputSchema: { to: z.number() } }, count);
  if (option === "mirrored") made.registerTool("place", { inputSchema: marked() }, ({ region, nearby }) => text(`${region} ${nearby}`));
  made.registerResource("note", "lab://note", {}, (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
  made.registerPrompt("question", { argsSchema: { about: z.string() } }, ({ about }) => ({
    messages: [{ role: "user", content: { type: "text", text: `What is ${about}?` } }],
  }));
  return made;
}

const marked = () => ({
  region: z.string().default("eu").meta({ "x-mcp-header": "Region" }),
  nearby: z.number().int().default(0).meta({ "x-mcp-header": "Nearby" }),
});
const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

async function count({ to }, context) {
  const meta = context.mcpReq?._meta ?? context._meta;
  const notify = context.mcpReq?.notify ?? context.sendNotification;
  for (let step = 1; step <= to; step++) {
    const { progressToken } = meta ?? {};
    if (progressToken !== undefined) {
      await notify({ method: "notifications/progress", params: { progressToken, progress: step, total: to } });
    }
  }
  return text("counted");
}

function listen(handler) {
  const http = createServer((request, response) => handler(request, response, new URL(request.url, "http://127.0.0.1")));
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}

// Streamable HTTP of generation 1: a transport for each session.
function firstStreamable() {
  const { StreamableHTTPServerTransport } = sdkServer("streamableHttp");
  const sessions = new Map();
  listen(async (request, response) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known) return known.handleRequest(request, response);
    const made = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, made),
    });
    await server().connect(made);
    await made.handleRequest(request, response);
  });
}

// HTTP+SSE of generation 1: a transport for each GET.
function firstSse() {
  const { SSEServerTransport } = sdkServer("sse");
  const sessions = new Map();
  listen(async (request, response, url) => {
    const known = sessions.get(url.searchParams.get("sessionId"));
    if (known) return known.handlePostMessage(request, response);
    if (url.pathname !== "/sse") return response.writeHead(404).end();
    const made = new SSEServerTransport("/messages", response);
    sessions.set(made.sessionId, made);
    await server().connect(made);
  });
}

function second() {
  const { createMcpHandler } = sdkServer("");
  const { toNodeHandler } = sdk("@modelcontextprotocol/node");
  const handler = toNodeHandler(createMcpHandler(server));
  listen((request, response) => handler(request, response));
}

if (transport === "stdio" && isFirst) {
  const { StdioServerTransport } = sdkServer("stdio");
  await server().connect(new StdioServerTransport());
} else if (transport === "stdio") {
  const { serveStdio } = sdk("@modelcontextprotocol/server/stdio");
  serveStdio(server);
} else if (isFirst) {
  (transport === "sse" ? firstSse : firstStreamable)();
} else {
  second();
}
