// A Socket.IO server: a token in the handshake, rooms of 10, moves with acknowledgements, chat lines to a room, binary events.
import { createServer } from "node:http";
import { Server } from "socket.io";

const PORT = Number(process.env.PORT ?? 8080);
const ROOM_SIZE = 10;
const http = createServer();
const io = new Server(http);

io.use((socket, next) => {
  const { token, name } = socket.handshake.auth;
  if (token !== `secret-of-${name}`) return next(new Error("wrong token"));
  socket.data.name = name;
  next();
});

/** A free place; places that were left are given again before a new room is opened. */
const rooms = [];
function seat(socket) {
  let room = rooms.find((one) => one.sockets.size < ROOM_SIZE);
  if (!room) rooms.push((room = { name: `room-${rooms.length}`, sockets: new Set(), lines: 0 }));
  room.sockets.add(socket.id);
  return room;
}

io.on("connection", (socket) => {
  let room;
  socket.on("join", (reply) => {
    room ??= seat(socket);
    socket.join(room.name);
    reply({ room: room.name });
  });
  socket.on("move", ({ seq, x, y }, reply) => reply({ seq, x, y }));
  // `line` numbers the lines of the room, so that a receiver can see a gap.
  socket.on("chat", (seq) => {
    if (room) io.to(room.name).emit("chat", { from: socket.data.name, seq, line: room.lines++ });
  });
  // The bytes go back in reverse order: an echo would not show that the server has read them.
  socket.on("blob", (seq, bytes) => socket.emit("blob", seq, Buffer.from(bytes).reverse()));
  socket.on("disconnect", () => room?.sockets.delete(socket.id));
});

http.listen(PORT, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));
process.on("SIGTERM", () => io.close(() => process.exit(0)));
