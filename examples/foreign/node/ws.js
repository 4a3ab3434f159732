// An echo with the package ws: text comes as a Buffer and has to be sent back as text. No compression, no pings, no idle timeout.
const { WebSocketServer } = require("ws");

const server = new WebSocketServer({ port: process.env.PORT, host: "127.0.0.1" });
server.on("connection", (socket) => {
    socket.on("error", console.error);
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
