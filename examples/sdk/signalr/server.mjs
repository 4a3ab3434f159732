// A SignalR server of the JSON hub protocol: negotiate, handshake, invocations, streams, completions, pings, close.
// Each record ends with the byte 0x1e, and a frame may hold several.
// Source: dotnet/aspnetcore, src/SignalR/docs/specs/TransportProtocols.md and HubProtocol.md.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const PORT = Number(process.env.PORT ?? 8080);
const END = "\x1e";
const PING_MS = 15_000;
const [INVOCATION, STREAM_ITEM, COMPLETION, STREAM, CANCEL, PING, CLOSE] = [1, 2, 3, 4, 5, 6, 7];
const record = (message) => JSON.stringify(message) + END;

/** Group name → the connections in it. */
const groups = new Map();
/** Tokens that were negotiated and not used yet → the user. */
const negotiated = new Map();
const userOf = (authorization) => /^Bearer token-of-([\w-]+)$/.exec(authorization ?? "")?.[1];

class Connection {
  group;
  streams = new Map();
  shaken = false;

  constructor(socket, user) {
    this.socket = socket;
    this.user = user;
    socket.on("message", (data) => {
      const records = data.toString().split(END);
      // The part after the last separator is a record that is not whole; over WebSocket that is an error.
      if (records.pop() !== "") return this.close("incomplete record");
      for (const text of records) this.receive(JSON.parse(text));
    });
    socket.on("close", () => this.closed());
  }
  send(message) {
    this.socket.send(record(message));
  }
  close(error) {
    this.send({ type: CLOSE, error, allowReconnect: false });
    this.socket.close(1000);
  }
  receive(message) {
    if (!this.shaken) {
      if (message.protocol !== "json" || message.version !== 1) {
        this.send({ error: `protocol ${message.protocol} ${message.version} is not supported` });
        return this.socket.close(1000);
      }
      this.shaken = true;
      this.send({});
      this.timer = setInterval(() => this.send({ type: PING }), PING_MS);
      return;
    }
    const { type, target, invocationId, arguments: args } = message;
    if (type === INVOCATION) this.invoke(target, invocationId, args);
    else if (type === STREAM) this.stream(target, invocationId, args);
    else if (type === CANCEL) this.end(invocationId);
    else if (type === CLOSE) this.socket.close(1000);
    else if (type !== PING) this.close(`unexpected message type ${type}`);
  }
  invoke(target, invocationId, args) {
    let answer;
    try {
      answer = Object.hasOwn(hub, target) ? { result: hub[target](this, ...args) } : { error: `Unknown hub method '${target}'` };
    } catch (error) {
      answer = { error: error.message };
    }
    // Without an id the client does not want to know.
    if (invocationId !== undefined) this.send({ type: COMPLETION, invocationId, ...answer });
  }
  stream(target, invocationId, [count, period]) {
    if (target !== "Count") return this.send({ type: COMPLETION, invocationId, error: `Unknown hub method '${target}'` });
    let item = 0;
    this.streams.set(invocationId, setInterval(() => {
      this.send({ type: STREAM_ITEM, invocationId, item: item++ });
      if (item === count) this.end(invocationId);
    }, period));
  }
  end(invocationId) {
    clearInterval(this.streams.get(invocationId));
    if (this.streams.delete(invocationId)) this.send({ type: COMPLETION, invocationId });
  }
  closed() {
    clearInterval(this.timer);
    for (const stream of this.streams.values()) clearInterval(stream);
    const members = groups.get(this.group);
    if (members?.delete(this) && members.size === 0) groups.delete(this.group);
  }
}

const hub = {
  Join(connection, group) {
    if (connection.group) throw new Error("joined already");
    connection.group = group;
    if (!groups.has(group)) groups.set(group, new Set());
    return groups.get(group).add(connection).size;
  },
  Move: (connection, seq, x, y) => ({ seq, x, y, user: connection.user }),
  Say(connection, seq) {
    const text = record({ type: INVOCATION, target: "Said", arguments: [connection.user, seq] });
    for (const member of groups.get(connection.group) ?? []) member.socket.send(text);
  },
};

const http = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://server");
  if (request.method !== "POST" || pathname !== "/hub/negotiate") return response.writeHead(404).end();
  const user = userOf(request.headers.authorization);
  if (!user) return response.writeHead(401).end();
  const connectionToken = randomUUID();
  negotiated.set(connectionToken, user);
  setTimeout(() => negotiated.delete(connectionToken), 15_000).unref();
  const answer = {
    negotiateVersion: 1,
    connectionId: randomUUID(),
    connectionToken,
    availableTransports: [{ transport: "WebSockets", transferFormats: ["Text"] }],
  };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
});

const sockets = new WebSocketServer({ noServer: true });
const connections = new Set();
http.on("upgrade", (request, socket, head) => {
  const { pathname, searchParams } = new URL(request.url, "http://server");
  const token = searchParams.get("id");
  const user = negotiated.get(token);
  // A browser cannot set headers here, so there the client repeats its token in the query.
  const authorization = request.headers.authorization ?? `Bearer ${searchParams.get("access_token")}`;
  const authorized = pathname === "/hub" && user && userOf(authorization) === user;
  if (!authorized) return socket.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  negotiated.delete(token);
  sockets.handleUpgrade(request, socket, head, (socket) => {
    const connection = new Connection(socket, user);
    connections.add(connection);
    socket.on("close", () => connections.delete(connection));
  });
});
http.listen(PORT, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}/hub`));
process.on("SIGTERM", () => {
  for (const connection of connections) connection.close();
  http.close(() => process.exit(0));
  http.closeIdleConnections();
  setTimeout(() => process.exit(0), 1000).unref(); // a client that does not close its half must not keep the server
});
