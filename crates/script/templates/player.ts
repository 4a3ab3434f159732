// One bot: the client of your server. Play one with:   stepladder try player.ts --target ws://127.0.0.1:8080
//                                        climb with:   stepladder climb player.ts --target ws://127.0.0.1:8080 --rungs 10,50,100
import type { Bot, Options } from "stepladder";

export const options: Options = {
  hold: "30s",
  objectives: ["response.p99 < 50ms", "errors == 0"],
};

export default async function player(bot: Bot) {
  const ws = await bot.websocket("/");

  // What your client says first, and what it waits for before it is in the game:
  //   ws.send(JSON.stringify({ type: "login", name: `player-${bot.id}` }));
  //   await ws.next((text) => JSON.parse(text).type === "welcome", { within: "2s" });
  bot.ready();

  // Each reply is told by the key of its request.
  ws.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "move") bot.answered("move", message.seq);
  };

  // Twenty requests a second, each timed from its planned instant.
  for await (const seq of bot.every("50ms"))
    bot.ask("move", seq, () => ws.send(JSON.stringify({ type: "move", seq })));
}
