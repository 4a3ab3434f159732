// A player of the game beside this file, with protobuf.js: binary messages, acknowledgements, snapshots.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import protobuf from "protobufjs";
import type { Bot, Options } from "stepladder";
import { proto } from "./messages.mjs";

export const options: Options = { hold: "10s", ticks: "33.333ms", objectives: ["errors == 0"] };

type Vector = { x: number; y: number };
type FromServer = {
  welcome?: { room: number };
  ack?: { seq: number; at: Vector; input: Uint8Array; at_us: number | { toString(): string } };
  snapshot?: { tick: number; players: { id: number; at: Vector }[] };
};

/** More than 32 bits, and exact in a number. */
const SINCE_US = 1_700_000_000_000_000;

const { root } = protobuf.parse(proto, { keepCase: true });
const FromClient = root.lookupType("game.FromClient");
const FromServer = root.lookupType("game.FromServer");

export default async function player(bot: Bot) {
  const ws = new WebSocket(bot.target);
  ws.binaryType = "arraybuffer";
  await new Promise((resolve, reject) => {
    ws.onopen = resolve;
    ws.onerror = reject;
  });
  const send = (message: object) => ws.send(FromClient.encode(message).finish() as Uint8Array<ArrayBuffer>);
  const inputs = new Map<number, Uint8Array>();
  let x = 0;
  let tick = 0;

  await new Promise<void>((welcomed) => {
    ws.onmessage = ({ data }) => {
      const { welcome, ack, snapshot } = FromServer.decode(new Uint8Array(data)) as FromServer;
      if (welcome) {
        bot.check("a room was given", welcome.room >= 0);
        welcomed();
      } else if (ack) {
        const input = inputs.get(ack.seq);
        inputs.delete(ack.seq);
        bot.check("bytes come back reversed", input !== undefined && input.every((byte, at) => byte === ack.input[input.length - 1 - at]));
        // The field is a float of 32 bits.
        bot.check("the place comes back exactly", ack.at.x === Math.fround(ack.seq / 10) && ack.at.y === -bot.id);
        // A Long where the package `long` is found, else a number.
        bot.check("a number of 64 bits comes back exactly", String(ack.at_us) === String(SINCE_US + ack.seq));
        bot.answered("move", ack.seq);
      } else if (snapshot) {
        bot.tick();
        const me = snapshot.players.find(({ id }) => id === bot.id);
        bot.check("the snapshot has this player", me !== undefined && me.at.x <= Math.fround(x));
        bot.check("ticks come without a gap", tick === 0 || snapshot.tick === tick + 1);
        tick = snapshot.tick;
      }
    };
    send({ login: { id: bot.id, token: "letmein" } });
  });
  bot.ready();

  for await (const seq of bot.every("100ms"))
    bot.ask("move", seq, () => {
      const input = Uint8Array.from({ length: 16 }, () => bot.random() * 256);
      inputs.set(seq, input);
      x = seq / 10;
      send({ move: { seq, to: { x, y: -bot.id }, input, at_us: SINCE_US + seq } });
    });
}
