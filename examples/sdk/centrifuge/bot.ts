// A client of Centrifugo with its SDK: a token from the backend over HTTP, remote calls, a channel of 10 to publish in.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { Centrifuge, UnauthorizedError } from "centrifuge";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["errors == 0"] };

export default async function client(bot: Bot) {
  const user = `user-${bot.id}`;
  const centrifuge = new Centrifuge(`${bot.target}/connection/websocket`, {
    getToken: async () => {
      const answer = await fetch(`${bot.target.replace(/^ws/, "http")}/token?user=${user}`);
      if (answer.status === 401 || answer.status === 403) throw new UnauthorizedError("no token");
      return (await answer.json()).token;
    },
  });
  let connects = 0;
  centrifuge.on("connecting", ({ code, reason }) => {
    // The SDK connects again by itself; a load test must count that.
    if (connects++ > 0) bot.fail(`connection lost: ${code} ${reason}`);
  });
  centrifuge.on("disconnected", ({ code, reason }) => bot.fail(`disconnected: ${code} ${reason}`));
  centrifuge.on("error", ({ error }) => bot.fail(`error ${error.code}: ${error.message}`));
  centrifuge.connect();
  await centrifuge.ready(5000);

  const room = centrifuge.newSubscription(`room-${Math.floor(bot.id / 10)}`);
  let offset = 0;
  room.on("publication", ({ data, offset: now, info }) => {
    bot.count("publications");
    bot.check("publications come without a gap", offset === 0 || now === offset + 1);
    offset = now ?? 0;
    if (info?.user === user) bot.answered("say", data.seq);
  });
  room.on("error", ({ error }) => bot.fail(`room: ${error.message}`));
  room.subscribe();
  await room.ready(5000);

  const other = centrifuge.newSubscription("private#another-user");
  const refused = await new Promise((resolve) => {
    other.on("unsubscribed", ({ code }) => resolve(code));
    other.on("subscribed", () => resolve(0));
    other.subscribe();
  });
  bot.check("a channel of another user is refused", refused === 103);
  const { clients } = await room.presence();
  bot.check("presence has this client", Object.values(clients).some((one) => one.user === user));
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("move", n, () => {
      centrifuge.rpc("move", { seq: n }).then(
        ({ data }) => {
          bot.check("the reply is to this call", data.seq === n && data.user === user);
          bot.answered("move", n);
        },
        (error) => bot.fail(`move: ${error.message}`),
      );
    });
    if (n % 10 === 0) bot.ask("say", n, () => void room.publish({ seq: n }).catch((error) => bot.fail(`say: ${error.message}`)));
  }
}
