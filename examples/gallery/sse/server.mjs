// Rooms over server-sent events: a line that is posted to a room goes to each stream of it.
//   GET /rooms/N/events    the stream, with `id: number of the line in its room`
//   POST /rooms/N/lines    {from, seq}
import { createServer } from "node:http";

const PORT = Number(process.env.PORT ?? 8080);
/** A comment at least this often, so that proxies do not take a quiet stream for a dead one. */
const COMMENT_MS = 15_000;
/** Room → its streams and the number of its last line. */
const rooms = new Map();
const streams = new Set();

const server = createServer(async (request, response) => {
  const [, room, what] = /^\/rooms\/(\d+)\/(events|lines)$/.exec(request.url) ?? [];
  if (what === "events" && request.method === "GET") {
    if (!rooms.has(room)) rooms.set(room, { streams: new Set(), line: 0 });
    const to = rooms.get(room);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write("retry: 1000\n\n");
    to.streams.add(response);
    streams.add(response);
    response.on("close", () => {
      to.streams.delete(response);
      streams.delete(response);
    });
  } else if (what === "lines" && request.method === "POST") {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { from, seq } = JSON.parse(Buffer.concat(parts));
    const to = rooms.get(room);
    if (!to) return response.writeHead(404).end();
    const event = `id: ${++to.line}\nevent: line\ndata: ${JSON.stringify({ from, seq })}\n\n`;
    for (const stream of to.streams) stream.write(event);
    response.writeHead(204).end();
  } else {
    response.writeHead(404).end();
  }
});
setInterval(() => {
  for (const stream of streams) stream.write(": still here\n\n");
}, COMMENT_MS);
server.listen(PORT, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));
process.on("SIGTERM", () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
