// A client on the TypeScript SDK, in either of its generations, that uses all that a server lists: see tests/peers/listclient.py.
//
//   node list_client.mjs MODULES MODE TOOL URL
//   node list_client.mjs MODULES MODE TOOL COMMAND…    MODULES and MODE are as in sdk_client.mjs
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, mode, tool, command, ...words] = process.argv.slice(2);
const sdk = createRequire(`${modules}/package.json`);
const isFirst = existsSync(`${modules}/@modelcontextprotocol/sdk`);
const loaded = isFirst
  ? ["index", "stdio", "streamableHttp"].map((name) => sdk(`@modelcontextprotocol/sdk/client/${name}.js`))
  : ["", "/stdio"].map((name) => sdk(`@modelcontextprotocol/client${name}`));
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign({}, ...loaded);

const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args: words, env: process.env });
const client = new Client({ name: "list_client", version: "1.0" }, mode === "auto" ? { versionNegotiation: { mode } } : {});
await client.connect(transport);
console.log((await client.listTools()).tools.map(({ name }) => name).join(" "));
console.log((await client.callTool({ name: tool, arguments: {} })).content[0].text);
for (const { uri } of (await client.listResources()).resources) console.log((await client.readResource({ uri })).contents[0].text);
for (const { name } of (await client.listPrompts()).prompts) console.log((await client.getPrompt({ name })).messages[0].content.text);
await client.close();
