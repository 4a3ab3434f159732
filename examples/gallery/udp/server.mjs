// A game over UDP: rooms of 10, moves with acknowledgements, snapshots at 30 Hz. Numbers are big-endian.
//   1 hello    u32 id                       →  2 welcome  u32 room
//   3 move     u32 seq, f32 x, f32 y        →  4 ack      u32 seq
//   6 bye                                      5 snapshot u32 tick, u8 count, count × (u32 id, f32 x, f32 y)
import { createSocket } from "node:dgram";

const PORT = Number(process.env.PORT ?? 8080);
const PERIOD_MS = 1000 / 30;
const ROOM_SIZE = 10;
/** There is no connection that could end: a player that is silent for this long has left. */
const SILENCE_MS = 3_000;
const [HELLO, WELCOME, MOVE, ACK, SNAPSHOT, BYE] = [1, 2, 3, 4, 5, 6];

const socket = createSocket("udp4");
/** Address and port → player. */
const players = new Map();
const rooms = [];

function seat(player) {
  let room = rooms.find((one) => one.size < ROOM_SIZE);
  if (!room) rooms.push((room = new Set()));
  room.add(player);
  return room;
}
function numbered(kind, number) {
  const datagram = Buffer.alloc(5);
  datagram[0] = kind;
  datagram.writeUInt32BE(number, 1);
  return datagram;
}
function leave(key, player) {
  player.room.delete(player);
  players.delete(key);
}

socket.on("message", (datagram, { address, port }) => {
  const key = `${address}:${port}`;
  let player = players.get(key);
  const kind = datagram[0];
  if (kind === HELLO && datagram.length === 5) {
    const id = datagram.readUInt32BE(1);
    // The port may have been that of a player who left without a word.
    if (player && player.id !== id) {
      leave(key, player);
      player = undefined;
    }
    // A hello may come twice, because the client repeats it until it has the welcome.
    if (!player) {
      player = { id, x: 0, y: 0, address, port };
      player.room = seat(player);
      players.set(key, player);
    }
    socket.send(numbered(WELCOME, rooms.indexOf(player.room)), port, address);
  } else if (kind === MOVE && datagram.length === 13 && player) {
    player.x = datagram.readFloatBE(5);
    player.y = datagram.readFloatBE(9);
    socket.send(numbered(ACK, datagram.readUInt32BE(1)), port, address);
  } else if (kind === BYE && player) {
    leave(key, player);
  }
  if (player) player.heard = performance.now();
});

let tick = 0;
const begin = performance.now();
function loop() {
  tick += 1;
  for (const [key, player] of players) if (performance.now() - player.heard > SILENCE_MS) leave(key, player);
  for (const room of rooms) {
    const datagram = Buffer.alloc(6 + 12 * room.size);
    datagram[0] = SNAPSHOT;
    datagram.writeUInt32BE(tick, 1);
    datagram[5] = room.size;
    let at = 6;
    for (const { id, x, y } of room) {
      datagram.writeUInt32BE(id, at);
      datagram.writeFloatBE(x, at + 4);
      datagram.writeFloatBE(y, at + 8);
      at += 12;
    }
    for (const { address, port } of room) socket.send(datagram, port, address);
  }
  setTimeout(loop, Math.max(0, begin + tick * PERIOD_MS - performance.now()));
}
socket.bind(PORT, "127.0.0.1", () => {
  console.log(`listening on udp://127.0.0.1:${PORT}`);
  loop();
});
process.on("SIGTERM", () => process.exit(0));
