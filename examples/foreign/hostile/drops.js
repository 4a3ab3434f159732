// Hostile: every 20th request loses its connection in the middle of the answer. A climb must not pass it.
const http = require("node:http");

let requests = 0;
http.createServer((request, response) => {
    const body = '{"hello":"world"}';
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
    if (++requests % 20 === 0) {
        response.write(body.slice(0, 8), () => response.destroy());
    } else {
        response.end(body);
    }
}).listen(process.env.PORT, "127.0.0.1");
