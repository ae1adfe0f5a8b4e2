// An MCP client on the TypeScript SDK, in either of its generations, which plays the scene of tests/peers/sdkclient.py.
//
//   node sdk_client.mjs MODULES MODE URL
//   node sdk_client.mjs MODULES MODE COMMAND…      MODULES is the folder node_modules in which an SDK is
//
// MODE is `default`, or for generation 2 `auto`: it asks with server/discover first. A URL that ends in /sse is one of HTTP+SSE.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, mode, command, ...words] = process.argv.slice(2);
const sdk = createRequire(`${modules}/package.json`);
const isFirst = existsSync(`${modules}/@modelcontextprotocol/sdk`);
const loaded = isFirst
  ? ["index", "stdio", "sse", "streamableHttp"].map((name) => sdk(`@modelcontextprotocol/sdk/client/${name}.js`))
  : ["", "/stdio"].map((name) => sdk(`@modelcontextprotocol/client${name}`));
const { Client, StdioClientTransport, SSEClientTransport, StreamableHTTPClientTransport } = Object.assign({}, ...loaded);

function transport() {
  if (!command.startsWith("http://")) return new StdioClientTransport({ command, args: words, env: process.env });
  return new (command.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(command));
}

const client = new Client({ name: "sdk_client", version: "1.0" }, mode === "auto" ? { versionNegotiation: { mode } } : {});
await client.connect(transport());
await client.listTools();
await client.listResources();
await client.listPrompts();
console.log((await client.callTool({ name: "add", arguments: { a: 1, b: 2 } })).content[0].text);
const onprogress = () => {}; // not printed: the SDK drops those that come just before the result
const counting = { name: "count", arguments: { to: 2 } };
const counted = isFirst ? await client.callTool(counting, undefined, { onprogress }) : await client.callTool(counting, { onprogress });
console.log(counted.content[0].text);
await client.readResource({ uri: "lab://note" });
await client.getPrompt({ name: "question", arguments: { about: "this" } });
await client.close();
