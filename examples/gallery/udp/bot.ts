// A player of the game beside this file, over UDP: what is lost is lost, and counted.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", ticks: "33.333ms", objectives: ["move.p99 < 50ms", "errors == 0"] };

const [HELLO, WELCOME, MOVE, ACK, SNAPSHOT] = [1, 2, 3, 4, 5];

export default async function player(bot: Bot) {
  const udp = await bot.udp();
  let welcomed = false;
  let tick = 0;
  udp.onmessage = ({ data }) => {
    const view = new DataView(data);
    const kind = view.getUint8(0);
    const number = view.getUint32(1);
    if (kind === WELCOME) welcomed = true;
    else if (kind === ACK) bot.answered("move", number);
    // Before the welcome: those of a player who had this port before.
    else if (kind === SNAPSHOT && welcomed) {
      // Datagrams may be lost, doubled or overtaken: a tick counts once, and only if it is newer.
      if (number <= tick) return bot.count("snapshots out of order");
      if (tick > 0) bot.count("snapshots lost", number - tick - 1);
      tick = number;
      bot.tick();
      let here = false;
      for (let at = 6; at < data.byteLength; at += 12) here ||= view.getUint32(at) === bot.id;
      bot.check("the snapshot has this player", here);
    }
  };

  const hello = new DataView(new ArrayBuffer(5));
  hello.setUint8(0, HELLO);
  hello.setUint32(1, bot.id);
  for (let tries = 0; !welcomed && tries < 20; tries++) {
    udp.send(hello.buffer);
    await bot.sleep("100ms");
  }
  if (!welcomed) throw new Error("no welcome after 20 hellos");
  bot.ready();

  for await (const seq of bot.every("100ms"))
    bot.ask("move", seq, () => {
      const move = new DataView(new ArrayBuffer(13));
      move.setUint8(0, MOVE);
      move.setUint32(1, seq);
      move.setFloat32(5, bot.random());
      move.setFloat32(9, bot.random());
      udp.send(move.buffer);
    });
}
