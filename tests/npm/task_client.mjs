// An MCP client on the TypeScript SDK that makes calls of more than one exchange, one after the other, and says how each ended.
//
//   node task_client.mjs MODULES SCENE URL
//   node task_client.mjs MODULES SCENE COMMAND…      MODULES is the folder node_modules in which the SDK is
//
// Scenes, for the server `everything`: `research` is a tool that runs as a task and asks its user a question on the way; `urls` sends
// the user to a URL in either way, `updates` subscribes to a resource until it was updated once, and `sampling` is a task that the
// client runs for the server. Only there the client has a store for tasks: with one the SDK keeps the answers to what a task asks.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, scene, ...target] = process.argv.slice(2);
const sdk = createRequire(`${modules}/package.json`);
const load = (name) => import(pathToFileURL(sdk.resolve(`@modelcontextprotocol/sdk/${name}.js`).replace("/cjs/", "/esm/")));
const { Client } = await load("client/index");
const { StdioClientTransport } = await load("client/stdio");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const { InMemoryTaskStore, InMemoryTaskMessageQueue } = await load("experimental/tasks/stores/in-memory");
const types = await load("types");

const LANDING = "https://example.org/log-in";
const SAMPLED = { role: "assistant", content: { type: "text", text: "A tap sees what both sides say." }, model: "no-model" };

const hosts = scene === "sampling";
const client = new Client(
  { name: "task_client", version: "1.0" },
  {
    capabilities: {
      elicitation: { form: {}, url: {} },
      ...(hosts ? { sampling: {}, tasks: { requests: { sampling: { createMessage: {} } }, list: {}, cancel: {} } } : {}),
    },
    ...(hosts ? { taskStore: new InMemoryTaskStore(), taskMessageQueue: new InMemoryTaskMessageQueue() } : {}),
  },
);
client.setRequestHandler(types.ElicitRequestSchema, (request) =>
  request.params.mode === "url" ? { action: "accept" } : { action: "accept", content: { interpretation: "technical" } },
);
if (hosts) {
  client.setRequestHandler(types.CreateMessageRequestSchema, async (request, extra) => {
    if (!request.params.task) return SAMPLED;
    const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 500 });
    setTimeout(() => extra.taskStore.storeTaskResult(task.taskId, "completed", SAMPLED), 1_500);
    return { task };
  });
}

const updates = [];
let updated = () => {};
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (told) => updated(updates.push(told.params.uri)));

const [command, ...words] = target;
const isUrl = command.startsWith("http");
await client.connect(
  isUrl ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args: words, stderr: "ignore" }),
);
await client.listTools();

const scenes = {
  async research() {
    const research = { name: "simulate-research-query", arguments: { topic: "tap", ambiguous: true } };
    for await (const message of client.experimental.tasks.callToolStream(research)) {
      if (message.type === "result" || message.type === "error") console.log("research", message.type);
    }
  },

  async sampling() {
    const asked = await client.callTool({ name: "trigger-sampling-request-async", arguments: { prompt: "What is a tap?" } });
    console.log("sampled", asked.content[0].text.split("\n")[0]);
  },

  async urls() {
    const visit = (errorPath) => client.callTool({ name: "trigger-url-elicitation", arguments: { url: LANDING, errorPath } });
    console.log("sent by request", (await visit(false)).isError ?? false);
    await visit(true).catch((error) => console.log("sent by error", error.code));
    console.log("tried again", (await visit(true)).isError ?? false);
  },

  async updates() {
    const [resource] = (await client.listResources()).resources;
    await client.subscribeResource({ uri: resource.uri });
    const news = new Promise((resolve) => void (updated = resolve));
    await client.callTool({ name: "toggle-subscriber-updates" });
    await news;
    await client.callTool({ name: "toggle-subscriber-updates" });
    await client.unsubscribeResource({ uri: resource.uri });
    console.log("updated", updates.length > 0);
  },
};
await scenes[scene]();
await client.close();
process.exit(0); // the store of tasks would wait until they are too old
