// A player of the game beside this file: JSON over TCP, each message after its length in 4 bytes.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", ticks: "33.333ms", objectives: ["move.p99 < 50ms", "errors == 0"] };

type Message =
  | { type: "welcome"; room: number }
  | { type: "ack"; seq: number }
  | { type: "snapshot"; tick: number; players: { name: string; x: number; y: number }[] };

const decoder = new TextDecoder();
const parse = (data: ArrayBuffer): Message => JSON.parse(decoder.decode(data));

export default async function player(bot: Bot) {
  const name = `player-${bot.id}`;
  const tcp = await bot.tcp({ frames: "u32be" });
  const send = (message: object) => tcp.send(JSON.stringify(message));
  send({ type: "login", name });
  const welcome = parse(await tcp.next((data) => parse(data).type === "welcome", { within: "2s" }));
  bot.check("a room was given", welcome.type === "welcome" && welcome.room >= 0);
  bot.ready();

  let tick = 0;
  tcp.onmessage = ({ data }) => {
    const message = parse(data);
    if (message.type === "ack") bot.answered("move", message.seq);
    else if (message.type === "snapshot") {
      bot.tick();
      bot.check("ticks come without a gap", tick === 0 || message.tick === tick + 1);
      bot.check("the snapshot has this player", message.players.some((one) => one.name === name));
      tick = message.tick;
    }
  };
  for await (const seq of bot.every("100ms"))
    bot.ask("move", seq, () => send({ type: "move", seq, x: bot.random(), y: bot.random() }));
}
