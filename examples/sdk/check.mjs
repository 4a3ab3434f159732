// Checks the servers without Stepladder: each one's real client, under Node.js, is refused with a wrong credential and let in with the right one,
// has a message answered, and sees the server end on SIGTERM. What fails here is not Stepladder's doing.
//   node check.mjs            all
//   node check.mjs phoenix    these
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function closed(ws) {
  const [code, reason] = await once(ws, "close");
  return `${code} ${reason}`;
}

const checks = {
  async "socket.io"(url) {
    const { io } = await import("socket.io-client");
    const open = (token) => io(url, { transports: ["websocket"], forceNew: true, reconnection: false, auth: { name: "ann", token } });
    const [error] = await once(open("wrong"), "connect_error").catch((error) => [error]);
    assert.equal(error.message, "wrong token");
    const socket = open("secret-of-ann");
    await once(socket, "connect");
    assert.match((await socket.emitWithAck("join")).room, /^room-\d+$/);
    assert.deepEqual(await socket.emitWithAck("move", { seq: 7, x: 1, y: 2 }), { seq: 7, x: 1, y: 2 });
    socket.emit("blob", 1, Uint8Array.of(1, 2, 3));
    const [seq, bytes] = await once(socket, "blob");
    assert.deepEqual([seq, ...bytes], [1, 3, 2, 1]);
    socket.disconnect();
  },
  async colyseus(url) {
    const { Client } = await import("@colyseus/sdk");
    const client = new Client(url);
    client.auth.token = "wrong";
    await assert.rejects(client.joinOrCreate("arena"), /wrong token/);
    client.auth.token = "letmein";
    const room = await client.joinOrCreate("arena");
    room.onStateChange(() => {}); // without a listener the SDK warns
    const acknowledged = new Promise((resolve) => room.onMessage("ack", resolve));
    room.send("move", { seq: 7, x: 1, y: 2 });
    assert.deepEqual(await acknowledged, { seq: 7 });
    await new Promise((resolve) => room.onStateChange.once(resolve));
    assert.equal(room.state.players.get(room.sessionId).x, 1);
    await room.leave();
  },
  async centrifuge(url) {
    const { Centrifuge } = await import("centrifuge");
    const endpoint = `${url}/connection/websocket`;
    const refused = new Centrifuge(endpoint, { websocket: WebSocket, token: "a.b.c" });
    refused.connect();
    assert.equal((await new Promise((resolve) => refused.on("disconnected", resolve))).reason, "invalid token");
    const { token } = await (await fetch(`${url.replace("ws", "http")}/token?user=ann`)).json();
    const client = new Centrifuge(endpoint, { websocket: WebSocket, token });
    client.connect();
    await client.ready(2000);
    assert.deepEqual((await client.rpc("move", { seq: 7 })).data, { seq: 7, user: "ann" });
    await assert.rejects(client.rpc("fly", {}), { code: 104 });
    const room = client.newSubscription("room-1");
    const published = new Promise((resolve) => room.on("publication", resolve));
    room.subscribe();
    await room.ready(2000);
    await room.publish({ seq: 8 });
    assert.equal((await published).data.seq, 8);
    client.disconnect();
  },
  async signalr(url) {
    const { HubConnectionBuilder, LogLevel } = await import("@microsoft/signalr");
    const build = (token) =>
      new HubConnectionBuilder().withUrl(`${url.replace("ws", "http")}/hub`, { accessTokenFactory: () => token }).configureLogging(LogLevel.None).build();
    await assert.rejects(build("wrong").start(), /Status code '401'/);
    const connection = build("token-of-ann");
    await connection.start();
    assert.equal(await connection.invoke("Join", "group-1"), 1);
    assert.deepEqual(await connection.invoke("Move", 7, 1, 2), { seq: 7, x: 1, y: 2, user: "ann" });
    await assert.rejects(connection.invoke("toString"), /Unknown hub method/);
    await connection.stop();
  },
  async phoenix(url) {
    const { Socket } = await import("phoenix");
    const open = (authToken) => {
      const socket = new Socket(`${url}/socket`, { authToken, transport: WebSocket });
      socket.connect();
      return socket;
    };
    const refused = open("wrong");
    await new Promise((resolve) => refused.onError(resolve));
    refused.disconnect();
    const socket = open("token-of-ann");
    const join = (key) =>
      new Promise((resolve) => {
        const channel = socket.channel("room:1", { key });
        channel.join().receive("ok", () => resolve(channel)).receive("error", ({ reason }) => { channel.leave(); resolve(reason); });
      });
    assert.equal(await join("wrong"), "unauthorized");
    const channel = await join("letmein");
    const reply = (event, payload) => new Promise((resolve) => channel.push(event, payload).receive("ok", resolve));
    assert.deepEqual(await reply("move", { seq: 7, x: 1, y: 2 }), { seq: 7, x: 1, y: 2 });
    assert.deepEqual([...new Uint8Array(await reply("blob", Uint8Array.of(1, 2, 3).buffer))], [3, 2, 1]);
    await new Promise((resolve) => channel.leave().receive("ok", resolve));
    socket.disconnect();
  },
  async mqtt(url) {
    const { default: mqtt } = await import("mqtt");
    const settings = { username: "bot", reconnectPeriod: 0 };
    await assert.rejects(mqtt.connectAsync(url, { ...settings, password: "wrong" }), { code: 5 });
    const client = await mqtt.connectAsync(url, { ...settings, password: "letmein" });
    await client.subscribeAsync("bots/0/move", { qos: 1 });
    const message = once(client, "message"); // it may come before the acknowledgement
    await client.publishAsync("bots/0/move", "hello", { qos: 1 });
    const [, payload] = await message;
    assert.equal(payload.toString(), "hello");
    await client.endAsync();
  },
  async msgpack(url) {
    const { decode, encode } = await import("@msgpack/msgpack");
    const refused = new WebSocket(url);
    await once(refused, "open");
    refused.send(encode({ type: "login", id: 1, token: "wrong" }));
    assert.equal(await closed(refused), "1008 login refused");
    const ws = new WebSocket(url);
    await once(ws, "open");
    ws.send(encode({ type: "login", id: 1, token: "letmein", since: new Date(7) }));
    assert.deepEqual(decode((await once(ws, "message"))[0]), { type: "welcome", room: 0, since: new Date(7) });
    ws.close();
  },
  async protobuf(url) {
    const { default: protobuf } = await import("protobufjs");
    const { proto } = await import("./protobuf/messages.mjs");
    const { root } = protobuf.parse(proto);
    const login = (token) => root.lookupType("game.FromClient").encode({ login: { id: 1, token } }).finish();
    const refused = new WebSocket(url);
    await once(refused, "open");
    refused.send(login("wrong"));
    assert.equal(await closed(refused), "1008 login refused");
    const ws = new WebSocket(url);
    await once(ws, "open");
    ws.send(login("letmein"));
    assert.equal(root.lookupType("game.FromServer").decode((await once(ws, "message"))[0]).welcome.room, 0);
    ws.close();
  },
};

const asked = process.argv.slice(2);
for (const [name, check] of Object.entries(checks)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const PORT = await freePort();
  const command = name === "mqtt" ? ["./server.sh"] : ["node", "server.mjs"];
  const server = spawn(command[0], command.slice(1), {
    cwd: fileURLToPath(new URL(name, import.meta.url)),
    env: { ...process.env, PORT },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(server, "exit");
  try {
    const [line] = await once(server.stdout, "data");
    assert.match(String(line), /^listening on \w+:\/\/127\.0\.0\.1:\d+\S*\n$/);
    const late = sleep(10_000, undefined, { ref: false }).then(() => assert.fail(`${name}: not done after 10 s`));
    await Promise.race([check(`ws://127.0.0.1:${PORT}`), late]);
  } finally {
    server.kill("SIGTERM");
  }
  assert.deepEqual(await ended, [0, null], "the server ends with 0 on SIGTERM");
  console.log(`${name}: ok`);
}
process.exit(0); // a client that would try again keeps the process
