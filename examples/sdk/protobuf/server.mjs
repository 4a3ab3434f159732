// A game in Protocol Buffers over WebSocket: login, rooms of 10, moves with acknowledgements, snapshots at 30 Hz.
import protobuf from "protobufjs";
import { WebSocketServer } from "ws";
import { proto } from "./messages.mjs";

const PORT = Number(process.env.PORT ?? 8080);
const PERIOD_MS = 1000 / 30;
const ROOM_SIZE = 10;
const { root } = protobuf.parse(proto, { keepCase: true });
const FromClient = root.lookupType("game.FromClient");
const FromServer = root.lookupType("game.FromServer");
const encode = (message) => FromServer.encode(message).finish();

const server = new WebSocketServer({ port: PORT, host: "127.0.0.1" });
server.on("listening", () => console.log(`listening on ws://127.0.0.1:${PORT}`));

const rooms = [];
function seat(player) {
  let room = rooms.find((one) => one.size < ROOM_SIZE);
  if (!room) rooms.push((room = new Set()));
  room.add(player);
  return room;
}

server.on("connection", (socket) => {
  const player = { socket, id: undefined, at: { x: 0, y: 0 } };
  let room;
  socket.on("message", (data, binary) => {
    if (!binary) return socket.close(1003, "messages are Protocol Buffers");
    const { login, move } = FromClient.decode(data);
    if (login) {
      if (room || login.token !== "letmein") return socket.close(1008, "login refused");
      player.id = login.id;
      room = seat(player);
      socket.send(encode({ welcome: { room: rooms.indexOf(room) } }));
    } else if (move && room) {
      player.at = move.to;
      // In reverse order: an echo would not show that the server has read the bytes.
      socket.send(encode({ ack: { seq: move.seq, at: move.to, input: Uint8Array.from(move.input).reverse(), at_us: move.at_us } }));
    }
  });
  socket.on("close", () => room?.delete(player));
});

let tick = 0;
const begin = performance.now();
(function loop() {
  tick += 1;
  for (const room of rooms) {
    if (room.size === 0) continue;
    const bytes = encode({ snapshot: { tick, players: [...room] } });
    for (const { socket } of room) socket.send(bytes);
  }
  setTimeout(loop, Math.max(0, begin + tick * PERIOD_MS - performance.now()));
})();

process.on("SIGTERM", () => {
  for (const socket of server.clients) socket.close(1001);
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 1000).unref(); // a client that does not close its half must not keep the server
});
