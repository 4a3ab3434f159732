// A game in MessagePack over WebSocket: login, rooms of 10, moves with acknowledgements, snapshots at 30 Hz. Two bots play it, one per library.
import { decode, encode } from "@msgpack/msgpack";
import { WebSocketServer } from "ws";

const PORT = Number(process.env.PORT ?? 8080);
const PERIOD_MS = 1000 / 30;
const ROOM_SIZE = 10;
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
  const player = { socket, id: undefined, x: 0, y: 0 };
  let room;
  const send = (message) => socket.send(encode(message));
  socket.on("message", (data, binary) => {
    if (!binary) return socket.close(1003, "messages are MessagePack");
    const message = decode(data);
    if (message.type === "login") {
      if (room || message.token !== "letmein") return socket.close(1008, "login refused");
      player.id = message.id;
      room = seat(player);
      send({ type: "welcome", room: rooms.indexOf(room), since: message.since });
    } else if (message.type === "move" && room) {
      player.x = message.x;
      player.y = message.y;
      // In reverse order: an echo would not show that the server has read the bytes.
      send({ type: "ack", seq: message.seq, x: message.x, input: Uint8Array.from(message.input).reverse() });
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
    const bytes = encode({ type: "snapshot", tick, players: [...room].map(({ id, x, y }) => ({ id, x, y })) });
    for (const { socket } of room) socket.send(bytes);
  }
  setTimeout(loop, Math.max(0, begin + tick * PERIOD_MS - performance.now()));
})();

process.on("SIGTERM", () => {
  for (const socket of server.clients) socket.close(1001);
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 1000).unref(); // a client that does not close its half must not keep the server
});
