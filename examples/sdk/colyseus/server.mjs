// A Colyseus server: rooms of 10 with players in their state, a simulation of 33 ms, moves that are acknowledged with their number.
// The transport and the core are used directly: the package `colyseus` brings drivers and a monitor that nothing here needs.
import { Room, Server } from "@colyseus/core";
import { schema, t } from "@colyseus/schema";
import { WebSocketTransport } from "@colyseus/ws-transport";

const PORT = Number(process.env.PORT ?? 8080);
const PERIOD_MS = 33;
const Player = schema({ x: t.number(), y: t.number(), moves: t.number() }, "Player");
const State = schema({ tick: t.number(), players: t.map(Player) }, "State");

class Arena extends Room {
  maxClients = 10;
  patchRate = PERIOD_MS;

  onCreate() {
    this.state = new State();
    this.state.tick = 0;
    this.onMessage("move", (client, { seq, x, y }) => {
      const player = this.state.players.get(client.sessionId);
      player.x = x;
      player.y = y;
      player.moves += 1;
      client.send("ack", { seq });
    });
    this.setSimulationInterval(() => (this.state.tick += 1), PERIOD_MS);
  }

  static onAuth(token) {
    if (token !== "letmein") throw new Error("wrong token");
    return { token };
  }

  onJoin(client) {
    const player = new Player();
    player.x = player.y = player.moves = 0;
    this.state.players.set(client.sessionId, player);
  }

  onLeave(client) {
    this.state.players.delete(client.sessionId);
  }
}

const server = new Server({ transport: new WebSocketTransport(), greet: false, gracefullyShutdown: false });
server.define("arena", Arena);
await server.listen(PORT, "127.0.0.1");
console.log(`listening on http://127.0.0.1:${PORT}`);
process.on("SIGTERM", () => server.gracefullyShutdown(true));
