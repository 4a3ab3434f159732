// Node's http2 without TLS (h2c with prior knowledge): 100 streams at once, no idle timeout, header names in lower case.
const http2 = require("node:http2");

http2.createServer((request, response) => {
    response.writeHead(request.url === "/hello" ? 200 : 404, { "content-type": "application/json" });
    response.end('{"hello":"world"}');
}).listen(process.env.PORT, "127.0.0.1");
