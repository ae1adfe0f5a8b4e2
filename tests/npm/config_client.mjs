// A client with a configuration file, on the TypeScript SDK: starts or calls the servers that an `.mcp.json` names, as clients do.
//
//   node config_client.mjs MODULES FILE        MODULES is the folder node_modules in which the SDK is
//
// A server that it starts gets the few variables that the SDK hands on. Prints for each a JSON line with its name and its tools.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const sdk = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(sdk.resolve(`@modelcontextprotocol/sdk/client/${name}.js`).replace("/cjs/", "/esm/")));
const { Client } = await load("index");
const { StdioClientTransport } = await load("stdio");
const { SSEClientTransport } = await load("sse");
const { StreamableHTTPClientTransport } = await load("streamableHttp");

const transport = ({ command, args, env, url, type }) => {
  if (command) return new StdioClientTransport({ command, args, env });
  return type === "sse" ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));
};

const { mcpServers } = JSON.parse(readFileSync(process.argv[3], "utf8"));
for (const [server, entry] of Object.entries(mcpServers)) {
  const client = new Client({ name: "config_client", version: "1.0" });
  await client.connect(transport(entry));
  const { tools } = await client.listTools();
  console.log(JSON.stringify({ server, tools: tools.map((tool) => tool.name) }));
  await client.close();
}
