// Hostile: an echo that ends each connection which was silent for 1 s, without a close frame. Its clients speak every 2.5 s, and
// nobody told them. A climb must not pass it.
const { WebSocketServer } = require("ws");

const server = new WebSocketServer({ port: process.env.PORT, host: "127.0.0.1" });
server.on("connection", (socket) => {
    let silence = setTimeout(() => socket.terminate(), 1000);
    socket.on("error", console.error);
    socket.on("close", () => clearTimeout(silence));
    socket.on("message", (data, isBinary) => {
        clearTimeout(silence);
        silence = setTimeout(() => socket.terminate(), 1000);
        socket.send(data, { binary: isBinary });
    });
});
