// A game over TCP: each message is its length in 4 bytes, big-endian, and JSON. Login, rooms of 10, moves, snapshots at 30 Hz.
import { createServer } from "node:net";

const PORT = Number(process.env.PORT ?? 8080);
const PERIOD_MS = 1000 / 30;
const ROOM_SIZE = 10;
/** A longer message is a mistake of the client or an attack. */
const LENGTH_MAX = 65_536;

const rooms = [];
function seat(player) {
  let room = rooms.find((one) => one.size < ROOM_SIZE);
  if (!room) rooms.push((room = new Set()));
  room.add(player);
  return room;
}
function frame(message) {
  const body = Buffer.from(JSON.stringify(message));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

const server = createServer({ noDelay: true }, (socket) => {
  const player = { socket, name: undefined, x: 0, y: 0 };
  let room;
  let bytes = Buffer.alloc(0);
  const receive = (message) => {
    if (message.type === "login" && !room) {
      player.name = message.name;
      room = seat(player);
      socket.write(frame({ type: "welcome", room: rooms.indexOf(room) }));
    } else if (message.type === "move" && room) {
      player.x = message.x;
      player.y = message.y;
      socket.write(frame({ type: "ack", seq: message.seq }));
    }
  };
  // TCP is a stream: one read may hold half a message or several.
  socket.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    while (bytes.length >= 4) {
      const length = bytes.readUInt32BE();
      if (length > LENGTH_MAX) return socket.destroy();
      if (bytes.length < 4 + length) return;
      receive(JSON.parse(bytes.toString("utf8", 4, 4 + length)));
      bytes = bytes.subarray(4 + length);
    }
  });
  socket.on("error", () => {}); // "close" follows
  socket.on("close", () => room?.delete(player));
});

let tick = 0;
const begin = performance.now();
(function loop() {
  tick += 1;
  for (const room of rooms) {
    if (room.size === 0) continue;
    const bytes = frame({ type: "snapshot", tick, players: [...room].map(({ name, x, y }) => ({ name, x, y })) });
    for (const { socket } of room) socket.write(bytes);
  }
  setTimeout(loop, Math.max(0, begin + tick * PERIOD_MS - performance.now()));
})();
server.listen(PORT, "127.0.0.1", () => console.log(`listening on tcp://127.0.0.1:${PORT}`));
process.on("SIGTERM", () => process.exit(0));
