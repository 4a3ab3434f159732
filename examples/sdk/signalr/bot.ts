// A client of a SignalR hub with Microsoft's SDK: negotiate over HTTP, calls with results, a stream, a group of 10.
//   PORT=8080 node server.mjs
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import { HubConnectionBuilder, LogLevel } from "@microsoft/signalr";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["errors == 0"] };

type Move = { seq: number; x: number; y: number; user: string };

export default async function client(bot: Bot) {
  const user = `user-${bot.id}`;
  const connection = new HubConnectionBuilder()
    .withUrl(`${bot.target.replace(/^ws/, "http")}/hub`, { accessTokenFactory: () => `token-of-${user}` })
    .configureLogging(LogLevel.Warning)
    .build();
  connection.onclose((error) => bot.fail(`connection lost: ${error?.message ?? "closed by the server"}`));
  const last = new Map<string, number>();
  connection.on("Said", (from: string, seq: number) => {
    bot.count("lines");
    bot.check("lines of one sender come in order", seq > (last.get(from) ?? -1));
    last.set(from, seq);
    if (from === user) bot.answered("say", seq);
  });
  await connection.start();

  const size = await connection.invoke<number>("Join", `group-${Math.floor(bot.id / 10)}`);
  bot.check("the group has this client", size >= 1);
  const refused = await connection.invoke("Fly").then(() => "", (error) => error.message);
  bot.check("an unknown method is refused", refused.includes("Unknown hub method"));
  const items: number[] = [];
  await new Promise<void>((complete, error) => {
    connection.stream<number>("Count", 3, 10).subscribe({ next: (item) => void items.push(item), complete, error });
  });
  bot.check("a stream has its items in order", items.join() === "0,1,2");
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("move", n, () => {
      connection.invoke<Move>("Move", n, n % 100, bot.id).then(
        (reply) => {
          bot.check("the reply is to this call", reply.seq === n && reply.x === n % 100 && reply.y === bot.id && reply.user === user);
          bot.answered("move", n);
        },
        (error) => bot.fail(`move: ${error.message}`),
      );
    });
    if (n % 10 === 0) bot.ask("say", n, () => void connection.send("Say", n).catch((error) => bot.fail(`say: ${error.message}`)));
  }
}
