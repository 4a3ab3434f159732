// Node's own http. A connection that is idle for 5 s is closed (keepAliveTimeout), and each answer says so: Keep-Alive: timeout=5.
const http = require("node:http");

http.createServer((request, response) => {
    response.writeHead(request.url === "/hello" ? 200 : 404, { "Content-Type": "application/json" });
    response.end('{"hello":"world"}');
}).listen(process.env.PORT, "127.0.0.1");
