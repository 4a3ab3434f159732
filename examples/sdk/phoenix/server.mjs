// A server of the channel protocol of Phoenix, version 2: an array of join_ref, ref, topic, event and payload per message.
// Topics are joined and left, each message is replied to, broadcasts go to all in a topic, presences say who is in it; payloads may be bytes.
// Source: phoenixframework/phoenix, lib/phoenix/socket/serializers/v2_json_serializer.ex and guides/howto/writing_a_channels_client.md.
import { WebSocketServer } from "ws";

const PORT = Number(process.env.PORT ?? 8080);
/** As in Phoenix, a client that is silent for longer than this is disconnected; clients send a heartbeat each 30 s. */
const SILENCE_MS = 60_000;
const BEARER = "base64url.bearer.phx.";
const KINDS = { push: 0, reply: 1 };

/** The user whose token is in the subprotocols: a browser cannot set a header. */
function userOf(protocols) {
  const bearer = protocols.find((one) => one.startsWith(BEARER));
  const token = Buffer.from(bearer?.slice(BEARER.length) ?? "", "base64url").toString();
  return /^token-of-([\w-]+)$/.exec(token)?.[1];
}
const protocolsOf = (request) => (request.headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim());

/** Topic → its members. */
const topics = new Map();
function broadcast(topic, event, payload, but) {
  // Broadcasts have neither reference, so that one text serves all members.
  const text = JSON.stringify([null, null, topic, event, payload]);
  for (const member of topics.get(topic)?.values() ?? []) if (member !== but) member.socket.send(text);
}
const presence = (member) => ({ [member.user]: { metas: [{ phx_ref: member.joinRef, online_at: member.at }] } });

const server = new WebSocketServer({
  port: PORT,
  host: "127.0.0.1",
  path: "/socket/websocket",
  handleProtocols: (protocols) => (protocols.has("phoenix") ? "phoenix" : false),
  verifyClient: ({ req }, answer) => {
    const { searchParams } = new URL(req.url, "http://server");
    if (searchParams.get("vsn") !== "2.0.0" || !userOf(protocolsOf(req))) return answer(false, 403);
    answer(true);
  },
});
server.on("listening", () => console.log(`listening on ws://127.0.0.1:${PORT}/socket`));
server.on("connection", (socket, request) => {
  const user = userOf(protocolsOf(request));
  /** Topic → this connection's membership. */
  const joined = new Map();
  let silence;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => socket.close(1000), SILENCE_MS);
  };
  heard();

  const push = (message) => socket.send(JSON.stringify(message));
  const reply = (joinRef, ref, topic, status, response) => {
    if (response instanceof Uint8Array) socket.send(encodeReply(joinRef, ref, topic, status, response));
    else push([joinRef, ref, topic, "phx_reply", { status, response }]);
  };
  const leave = (topic) => {
    const member = joined.get(topic);
    joined.delete(topic);
    topics.get(topic)?.delete(socket);
    if (topics.get(topic)?.size === 0) topics.delete(topic);
    broadcast(topic, "presence_diff", { joins: {}, leaves: presence(member) });
  };
  const join = (joinRef, ref, topic, payload) => {
    if (!/^room:\d+$/.test(topic)) return reply(joinRef, ref, topic, "error", { reason: "unmatched topic" });
    if (payload.key !== "letmein") return reply(joinRef, ref, topic, "error", { reason: "unauthorized" });
    // A second join on one connection replaces the first.
    if (joined.has(topic)) leave(topic);
    const member = { socket, user, joinRef, at: Date.now() };
    joined.set(topic, member);
    if (!topics.has(topic)) topics.set(topic, new Map());
    topics.get(topic).set(socket, member);
    reply(joinRef, ref, topic, "ok", { user });
    push([joinRef, null, topic, "presence_state", Object.assign({}, ...[...topics.get(topic).values()].map(presence))]);
    broadcast(topic, "presence_diff", { joins: presence(member), leaves: {} }, member);
  };
  const events = {
    move: (topic, { seq, x, y }) => ({ seq, x, y }),
    say: (topic, { seq }) => void broadcast(topic, "said", { from: user, seq }),
    // In reverse order: an echo would not show that the server has read the bytes.
    blob: (topic, bytes) => Uint8Array.from(bytes).reverse(),
  };

  socket.on("message", (data, binary) => {
    heard();
    const [joinRef, ref, topic, event, payload] = binary ? decodePush(data) : JSON.parse(data);
    if (topic === "phoenix" && event === "heartbeat") return reply(null, ref, topic, "ok", {});
    if (event === "phx_join") return join(joinRef, ref, topic, payload);
    // What was sent before a channel was left or joined again is of no member any more.
    if (joined.get(topic)?.joinRef !== joinRef) return reply(joinRef, ref, topic, "error", { reason: "unmatched topic" });
    if (event === "phx_leave") {
      leave(topic);
      reply(joinRef, ref, topic, "ok", {});
      return push([joinRef, joinRef, topic, "phx_close", {}]);
    }
    if (!Object.hasOwn(events, event)) return reply(joinRef, ref, topic, "error", { reason: "unknown event" });
    reply(joinRef, ref, topic, "ok", events[event](topic, payload) ?? {});
  });
  socket.on("close", () => {
    clearTimeout(silence);
    for (const topic of [...joined.keys()]) leave(topic);
  });
});

/** Bytes: the kind, the lengths of join_ref, ref, topic and event in a byte each, these four, the payload. */
function decodePush(data) {
  if (data[0] !== KINDS.push) throw new Error(`unexpected kind ${data[0]}`);
  let at = 5;
  const texts = [...data.subarray(1, 5)].map((length) => data.toString("utf8", at, (at += length)));
  return [...texts, data.subarray(at)];
}
/** The same for a reply, with its status where a push has the event. */
function encodeReply(joinRef, ref, topic, status, bytes) {
  const texts = [joinRef, ref, topic, status].map((text) => Buffer.from(text));
  return Buffer.concat([Buffer.from([KINDS.reply, ...texts.map((text) => text.length)]), ...texts, bytes]);
}

process.on("SIGTERM", () => {
  for (const socket of server.clients) socket.close(1012);
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 1000).unref(); // a client that does not close its half must not keep the server
});
