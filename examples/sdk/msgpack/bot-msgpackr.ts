// A player of the game beside this file, with msgpackr: binary messages, acknowledgements, snapshots.
//   PORT=8080 node server.mjs
//   stepladder climb bot-msgpackr.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { pack, unpack } from "msgpackr";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", ticks: "33.333ms", objectives: ["errors == 0"] };

type Message =
  | { type: "welcome"; room: number; since: Date }
  | { type: "ack"; seq: number; x: number; input: Uint8Array }
  | { type: "snapshot"; tick: number; players: { id: number; x: number; y: number }[] };

export default async function player(bot: Bot) {
  const ws = new WebSocket(bot.target);
  ws.binaryType = "arraybuffer";
  await new Promise((resolve, reject) => {
    ws.onopen = resolve;
    ws.onerror = reject;
  });
  const send = (message: object) => ws.send(pack(message) as Uint8Array<ArrayBuffer>);
  const inputs = new Map<number, Uint8Array>();
  const since = new Date(1_700_000_000_000 + bot.id);
  let x = 0;
  let tick = 0;

  await new Promise<void>((welcomed) => {
    ws.onmessage = ({ data }) => {
      const message = unpack(new Uint8Array(data)) as Message;
      if (message.type === "welcome") {
        bot.check("a room was given", message.room >= 0);
        bot.check("a time keeps its milliseconds", message.since.getTime() === since.getTime());
        welcomed();
      } else if (message.type === "ack") {
        const input = inputs.get(message.seq);
        inputs.delete(message.seq);
        bot.check("bytes come back reversed", input !== undefined && input.every((byte, at) => byte === message.input[input.length - 1 - at]));
        bot.check("a fraction comes back exactly", message.x === message.seq / 10);
        bot.answered("move", message.seq);
      } else {
        bot.tick();
        const me = message.players.find(({ id }) => id === bot.id);
        bot.check("the snapshot has this player", me !== undefined && me.x <= x);
        bot.check("ticks come without a gap", tick === 0 || message.tick === tick + 1);
        tick = message.tick;
      }
    };
    send({ type: "login", id: bot.id, token: "letmein", since });
  });
  bot.ready();

  for await (const seq of bot.every("100ms"))
    bot.ask("move", seq, () => {
      const input = Uint8Array.from({ length: 16 }, () => bot.random() * 256);
      inputs.set(seq, input);
      x = seq / 10;
      send({ type: "move", seq, x, y: -bot.id, input });
    });
}
