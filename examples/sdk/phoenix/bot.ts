// A client of Phoenix channels with Phoenix's own JavaScript: a token, a room of 10 with presences, pushes with replies, bytes.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { type Channel, Presence, Socket } from "phoenix";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["errors == 0"] };

const joined = (channel: Channel) =>
  new Promise<string>((resolve) => {
    channel
      .join()
      .receive("ok", () => resolve("ok"))
      .receive("error", ({ reason }) => resolve(reason))
      .receive("timeout", () => resolve("no reply in time"));
  });

export default async function client(bot: Bot) {
  const user = `user-${bot.id}`;
  // `authToken` is newer than the types of the package.
  const settings: ConstructorParameters<typeof Socket>[1] & { authToken: string } = { authToken: `token-of-${user}` };
  const socket = new Socket(`${bot.target}/socket`, settings);
  socket.onError((error) => bot.fail(`socket: ${error}`));
  socket.onClose((event) => bot.fail(`connection lost: ${event.code} ${event.reason}`));
  socket.connect();

  const topic = `room:${Math.floor(bot.id / 10)}`;
  const other = socket.channel(topic, { key: "wrong" });
  bot.check("a wrong key is refused", (await joined(other)) === "unauthorized");
  other.leave(); // it would try again

  const channel = socket.channel(topic, { key: "letmein" });
  channel.onError((reason) => bot.fail(`channel: ${reason}`));
  const last = new Map<string, number>();
  channel.on("said", ({ from, seq }) => {
    bot.count("lines");
    bot.check("lines of one sender come in order", seq > (last.get(from) ?? -1));
    last.set(from, seq);
    if (from === user) bot.answered("say", seq);
  });
  const presence = new Presence(channel);
  const seen = new Promise<void>((resolve) =>
    presence.onSync(() => {
      if (presence.list((name) => name).includes(user)) resolve();
    }),
  );
  bot.check("the room is joined", (await joined(channel)) === "ok");
  await seen;
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("move", n, () =>
      channel.push("move", { seq: n, x: n % 100, y: bot.id }).receive("ok", (reply) => {
        bot.check("the reply is to this push", reply.seq === n && reply.x === n % 100 && reply.y === bot.id);
        bot.answered("move", n);
      }),
    );
    if (n % 10 === 0) bot.ask("say", n, () => channel.push("say", { seq: n }));
    if (n % 10 === 5)
      bot.ask("blob", n, () => {
        const bytes = Uint8Array.from({ length: 64 }, () => bot.random() * 256);
        channel.push("blob", bytes.buffer).receive("ok", (reply: ArrayBuffer) => {
          const reversed = new Uint8Array(reply);
          bot.check("bytes come back reversed", reversed.reverse().join() === bytes.join());
          bot.answered("blob", n);
        });
      });
  }
}
