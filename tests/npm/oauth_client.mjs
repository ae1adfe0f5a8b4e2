// An MCP client on the TypeScript SDK, of either generation, that asks its user for permission where a server wants it; the user always
// agrees.
//
//   node oauth_client.mjs MODULES URL          MODULES is the folder node_modules in which the SDK is
//
// It goes where the authorization server sends its user by itself, calls the tool `whoami` and prints the answer.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const sdk = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(sdk.resolve(name).replace("/cjs/", "/esm/").replace(/\.cjs$/, ".mjs")));
const isSecond = existsSync(`${process.argv[2]}/@modelcontextprotocol/client`);
const modules = isSecond
  ? [await load("@modelcontextprotocol/client")]
  : await Promise.all(["index", "streamableHttp", "auth"].map((name) => load(`@modelcontextprotocol/sdk/client/${name}.js`)));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = Object.assign({}, ...modules);

// Nobody listens there, and nobody needs to.
const CALLBACK = "http://127.0.0.1:9/callback";
const kept = {};
let sentTo;

const provider = {
  redirectUrl: CALLBACK,
  clientMetadata: { client_name: "oauth_client", redirect_uris: [CALLBACK], token_endpoint_auth_method: "none" },
  state: () => "state-1",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (state) => void (kept.discovery = state),
  redirectToAuthorization: async (url) => {
    for (sentTo = url; !String(sentTo).startsWith(CALLBACK); ) {
      sentTo = new URL((await fetch(sentTo, { redirect: "manual" })).headers.get("location"), sentTo);
    }
  },
};

const url = new URL(process.argv[3]);
const connect = async () => {
  const client = new Client({ name: "oauth_client", version: "1.0" });
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || sentTo === undefined) throw error;
    await transport.finishAuth(isSecond ? sentTo.searchParams : sentTo.searchParams.get("code"));
    return undefined;
  }
};

const client = (await connect()) ?? (await connect());
console.log(JSON.stringify((await client.callTool({ name: "whoami", arguments: {} })).content));
await client.close();
