// A player with the client of Socket.IO: acknowledgements, chat in a room of 10, binary events.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { io } from "socket.io-client";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["errors == 0"] };

type Move = { seq: number; x: number; y: number };
type Line = { from: string; seq: number; line: number };

export default async function player(bot: Bot) {
  const name = `player-${bot.id}`;
  // A Manager of one's own for each bot; by default all of one worker would share a connection. A lost connection must not heal unseen.
  const settings = { transports: ["websocket"], forceNew: true, reconnection: false };
  const refused = io(bot.target, { ...settings, auth: { name, token: "wrong" } });
  const why = await new Promise<string>((resolve) => {
    refused.on("connect", () => resolve("connected"));
    refused.on("connect_error", (error) => resolve(error.message));
  });
  bot.check("a wrong token is refused", why === "wrong token");
  refused.disconnect();

  const socket = io(bot.target, { ...settings, auth: { name, token: `secret-of-${name}` } });
  await new Promise<void>((resolve, reject) => {
    socket.on("connect", resolve);
    socket.on("connect_error", reject);
  });
  socket.on("disconnect", (reason) => bot.fail(`disconnected: ${reason}`));

  let line = -1;
  socket.on("chat", (message: Line) => {
    bot.count("chat lines");
    bot.check("lines of the room come in order", line < 0 || message.line === line + 1);
    line = message.line;
    if (message.from === name) bot.answered("chat", message.seq);
  });
  const sent = new Map<number, Uint8Array>();
  socket.on("blob", (seq: number, data: ArrayBuffer) => {
    const bytes = new Uint8Array(data);
    const expected = sent.get(seq);
    sent.delete(seq);
    const reversed = expected && Uint8Array.from(expected).reverse();
    bot.check("bytes come back reversed", reversed !== undefined && bytes.join() === reversed.join());
    bot.answered("blob", seq);
  });
  const { room } = await socket.timeout(2000).emitWithAck("join");
  bot.check("a room was given", /^room-\d+$/.test(room));
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("move", n, () =>
      socket.emit("move", { seq: n, x: n % 100, y: bot.id }, (reply: Move) => {
        bot.check("the acknowledgement has what was sent", reply.seq === n && reply.x === n % 100 && reply.y === bot.id);
        bot.answered("move", n);
      }),
    );
    if (n % 10 === 0) bot.ask("chat", n, () => socket.emit("chat", n));
    if (n % 10 === 5)
      bot.ask("blob", n, () => {
        const bytes = new Uint8Array(64);
        for (let at = 0; at < bytes.length; at++) bytes[at] = bot.random() * 256;
        sent.set(n, bytes);
        socket.emit("blob", n, bytes);
      });
  }
}
