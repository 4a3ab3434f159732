// A server of the JSON protocol of Centrifugo: connect with a token, subscribe, unsubscribe, publish, rpc, presence, pings.
// A frame holds one or more lines of JSON; a reply has the `id` of its command, a push has none, an empty object is a ping.
// Source: Centrifugo documentation, "Client protocol".
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const PORT = Number(process.env.PORT ?? 8080);
/** A client that has not answered a ping when the next one is due is disconnected. */
const PING_S = 25;
const KEY = "a key that only this server knows";
const errors = {
  notFound: { code: 104, message: "method not found" },
  denied: { code: 103, message: "permission denied" },
  badRequest: { code: 107, message: "bad request" },
  subscribed: { code: 105, message: "already subscribed" },
};
const disconnects = { shutdown: [3001, "shutdown"], token: [3500, "invalid token"], bad: [3501, "bad request"], noPong: [3012, "no pong"] };

/** A JSON Web Token with HMAC-SHA-256, as Centrifugo takes it. */
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const signature = (text) => createHmac("sha256", KEY).update(text).digest();
function tokenFor(user) {
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: user, exp: Math.floor(Date.now() / 1000) + 3600 })}`;
  return `${text}.${signature(text).toString("base64url")}`;
}
function userOf(token) {
  const [head, body, given] = String(token).split(".");
  const expected = signature(`${head}.${body}`);
  const sent = Buffer.from(given ?? "", "base64url");
  if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) return undefined;
  const { sub, exp } = JSON.parse(Buffer.from(body, "base64url"));
  return exp * 1000 > Date.now() ? sub : undefined;
}

/** Channel name → the clients in it and the offset of its last publication. */
const channels = new Map();
function channelOf(name) {
  if (!channels.has(name)) channels.set(name, { clients: new Set(), offset: 0 });
  return channels.get(name);
}

class Client {
  id = randomUUID();
  user;
  subscriptions = new Set();
  awaitsPong = false;

  constructor(socket) {
    this.socket = socket;
    socket.on("message", (data) => this.frame(data.toString()));
    socket.on("close", () => this.closed());
  }
  send(message) {
    this.socket.send(JSON.stringify(message));
  }
  disconnect([code, reason]) {
    this.socket.close(code, reason);
  }
  frame(text) {
    let commands;
    try {
      commands = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    } catch {
      return this.disconnect(disconnects.bad);
    }
    for (const command of commands) this.command(command);
  }
  command(command) {
    const { id, ...rest } = command;
    const [method] = Object.keys(rest);
    if (method === undefined) return void (this.awaitsPong = false); // {}: the answer to a ping
    if (method === "connect") return this.connect(id, command.connect);
    if (this.user === undefined) return this.disconnect(disconnects.bad);
    const answer = this[`on_${method}`]?.(command[method]) ?? { error: errors.notFound };
    if (id) this.send({ id, ...answer });
  }
  connect(id, { token }) {
    this.user = userOf(token);
    if (this.user === undefined) return this.disconnect(disconnects.token);
    this.send({ id, connect: { client: this.id, version: "stepladder example", ping: PING_S, pong: true } });
    this.timer = setInterval(() => {
      if (this.awaitsPong) return this.disconnect(disconnects.noPong);
      this.awaitsPong = true;
      this.send({});
    }, PING_S * 1000);
  }
  on_subscribe({ channel }) {
    if (this.subscriptions.has(channel)) return { error: errors.subscribed };
    // As in Centrifugo, a channel with # is open to the users named after it only.
    if (channel.includes("#") && !channel.split("#")[1].split(",").includes(this.user)) return { error: errors.denied };
    this.subscriptions.add(channel);
    channelOf(channel).clients.add(this);
    return { subscribe: {} };
  }
  on_unsubscribe({ channel }) {
    this.leave(channel);
    return { unsubscribe: {} };
  }
  on_publish({ channel, data }) {
    if (!this.subscriptions.has(channel)) return { error: errors.denied };
    const to = channelOf(channel);
    to.offset += 1;
    const text = JSON.stringify({ push: { channel, pub: { data, offset: to.offset, info: { user: this.user, client: this.id } } } });
    for (const client of to.clients) client.socket.send(text);
    return { publish: {} };
  }
  on_presence({ channel }) {
    if (!this.subscriptions.has(channel)) return { error: errors.denied };
    const presence = {};
    for (const client of channelOf(channel).clients) presence[client.id] = { client: client.id, user: client.user };
    return { presence: { presence } };
  }
  on_rpc({ method, data }) {
    if (method !== "move") return { error: errors.notFound };
    return { rpc: { data: { seq: data.seq, user: this.user } } };
  }
  leave(name) {
    this.subscriptions.delete(name);
    const channel = channels.get(name);
    if (channel?.clients.delete(this) && channel.clients.size === 0) channels.delete(name);
  }
  closed() {
    clearInterval(this.timer);
    for (const name of this.subscriptions) this.leave(name);
  }
}

// The part of an application's own backend: it knows who is asking and signs that for Centrifugo.
const http = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://server");
  if (pathname !== "/token") return response.writeHead(404).end();
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ token: tokenFor(searchParams.get("user")) }));
});
const sockets = new WebSocketServer({ server: http, path: "/connection/websocket" });
const clients = new Set();
sockets.on("connection", (socket) => {
  const client = new Client(socket);
  clients.add(client);
  socket.on("close", () => clients.delete(client));
});
http.listen(PORT, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));
process.on("SIGTERM", () => {
  for (const client of clients) client.disconnect(disconnects.shutdown);
  http.close(() => process.exit(0));
  http.closeIdleConnections();
  setTimeout(() => process.exit(0), 1000).unref(); // a client that does not close its half must not keep the server
});
