// A shop: login with a name and a password of users.csv, a token, a list of items, an item.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const PORT = Number(process.env.PORT ?? 8080);
const [, ...lines] = readFileSync(new URL("users.csv", import.meta.url), "utf8").trim().split("\n");
const passwords = new Map(lines.map((line) => line.split(",")));
const items = Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}`, price_cents: 100 + 25 * id }));
/** Token → name. */
const sessions = new Map();

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts));
}

const server = createServer(async (request, response) => {
  const answer = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  try {
    const route = `${request.method} ${request.url}`;
    if (route === "POST /login") {
      const { name, password } = await body(request);
      if (passwords.get(name) !== password) return answer(401, { error: "wrong name or password" });
      const token = randomUUID();
      sessions.set(token, name);
      return answer(200, { token });
    }
    const name = sessions.get(request.headers.authorization?.replace(/^Bearer /, ""));
    if (!name) return answer(401, { error: "no session" });
    if (route === "GET /items") return answer(200, { name, items: items.map(({ id, name }) => ({ id, name })) });
    const item = items[/^GET \/items\/(\d+)$/.exec(route)?.[1]];
    answer(item ? 200 : 404, item ?? { error: "not found" });
  } catch (error) {
    answer(400, { error: error.message });
  }
});
server.listen(PORT, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));
process.on("SIGTERM", () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
