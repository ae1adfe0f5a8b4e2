// Preload for Node servers that listen on every interface: each TCP listen() goes to 127.0.0.1 instead.
//
//   NODE_OPTIONS=--require=/absolute/path/bind-loopback.cjs PORT=0 mcp-server-everything sse
//
// Where a server listens is said on standard error, `listening 127.0.0.1:PORT`, which is how a caller learns what PORT=0 became.
const net = require("node:net");

const HOST = "127.0.0.1";
const listen = net.Server.prototype.listen;

const isPort = (value) => typeof value === "number" || (typeof value === "string" && /^\d+$/.test(value));

net.Server.prototype.listen = function (...args) {
  const [first, second] = args;
  if (isPort(first)) {
    if (typeof second === "string") args[1] = HOST;
    else args.splice(1, 0, HOST);
  } else if (first && typeof first === "object" && first.port !== undefined) {
    first.host = HOST;
  }
  this.once("listening", () => {
    const address = this.address();
    if (address && typeof address === "object") process.stderr.write(`listening ${address.address}:${address.port}\n`);
  });
  return listen.apply(this, args);
};
