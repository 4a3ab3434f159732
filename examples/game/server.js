// A game of one's own: login, a room of 8, moves with acknowledgements, snapshots at 30 Hz.
const { WebSocketServer } = require("ws");
const PERIOD_MS = 1000 / 30;
const server = new WebSocketServer({ port: Number(process.env.PORT ?? 8080) });
const rooms = [];
server.on("connection", (socket) => {
  let room;
  socket.on("message", (data) => {
    const message = JSON.parse(data);
    if (message.type === "login") {
      room = rooms.find((one) => one.size < 8);
      if (!room) rooms.push((room = new Set()));
      room.add(socket);
      socket.send(JSON.stringify({ type: "welcome", room: rooms.indexOf(room) }));
    } else if (message.type === "move") {
      socket.send(JSON.stringify({ type: "ack", seq: message.seq }));
    }
  });
  socket.on("close", () => room?.delete(socket));
});
let tick = 0;
const begin = performance.now();
(function loop() {
  tick += 1;
  for (const room of rooms) {
    const text = JSON.stringify({ type: "snapshot", tick, players: room.size });
    for (const socket of room) socket.send(text);
  }
  setTimeout(loop, Math.max(0, begin + tick * PERIOD_MS - performance.now()));
})();
