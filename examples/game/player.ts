// A player of the game beside this file.
//   PORT=8080 node server.js
//   stepladder climb player.ts --target ws://127.0.0.1:8080 --rungs 100,200,400
import type { Bot, Options } from "stepladder";

export const options: Options = {
  hold: "20s",
  ticks: "33.333ms",
  objectives: ["response.p99 < 50ms", "ticks.late_share < 25%", "errors == 0"],
};

type Message = { type: "welcome"; room: number } | { type: "ack"; seq: number } | { type: "snapshot"; tick: number };

export default async function player(bot: Bot) {
  const ws = await bot.websocket("/");
  ws.send(JSON.stringify({ type: "login", name: `player-${bot.id}` }));
  const welcome = await ws.next((text) => JSON.parse(text).type === "welcome", { within: "2s" });
  bot.check("a room was given", JSON.parse(welcome).room >= 0);
  bot.ready();

  ws.onmessage = ({ data }) => {
    const message: Message = JSON.parse(data);
    if (message.type === "ack") bot.answered("move", message.seq);
    else if (message.type === "snapshot") bot.tick();
  };
  for await (const seq of bot.every("50ms"))
    bot.ask("move", seq, () => ws.send(JSON.stringify({ type: "move", seq })));
}
