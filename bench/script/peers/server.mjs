// Acknowledges each move with itself.
import { createServer } from "node:http";
import { Server } from "socket.io";

const http = createServer();
new Server(http).on("connection", (socket) => socket.on("move", (move, reply) => reply(move)));
http.listen(Number(process.env.PORT), "127.0.0.1");
