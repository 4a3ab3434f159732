// A player with the SDK of Colyseus: matchmaking over HTTP, a room with state, moves that are acknowledged.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { Client } from "@colyseus/sdk";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", ticks: "33ms", objectives: ["errors == 0"] };

interface Player { x: number; y: number; moves: number }
interface State { tick: number; players: Map<string, Player> }

export default async function player(bot: Bot) {
  const client = new Client(bot.target);
  client.auth.token = "letmein";
  const room = await client.joinOrCreate<any, State>("arena", {});
  room.reconnection.enabled = false; // a lost connection must not heal unseen
  room.onLeave((code, reason) => bot.fail(`left: ${code} ${reason ?? ""}`));
  room.onError((code, message) => bot.fail(`error ${code}: ${message}`));

  let x = 0;
  let acknowledged = 0;
  room.onMessage("ack", ({ seq }: { seq: number }) => {
    acknowledged += 1;
    bot.answered("move", seq);
  });
  let tick = -1;
  room.onStateChange((state) => {
    if (state.tick !== tick) bot.tick();
    bot.check("ticks of the state rise", state.tick >= tick);
    tick = state.tick;
    const me = state.players.get(room.sessionId);
    // A state is sent after the acknowledgements of the moves that are in it, and never ahead of what was asked.
    if (me && acknowledged > 0) bot.check("the state has this player where it moved to", me.moves <= acknowledged && me.x <= x && me.y === bot.id);
  });
  await new Promise<void>((resolve) => room.onStateChange.once(() => resolve()));
  bot.ready();

  for await (const n of bot.every("100ms"))
    bot.ask("move", n, () => {
      x = n;
      room.send("move", { seq: n, x, y: bot.id });
    });
}
