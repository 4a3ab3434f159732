// A client of IRC: a password, a nickname that others want too, a channel of 10; each message to itself is measured until it is back;
// a line in the channel is booked by the others.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["own.p99 < 100ms", "errors == 0"] };

/** `:prefix COMMAND parameters :text` */
function parse(line: string) {
  const [, prefix = "", command, middle = "", text = ""] = /^(?::(\S+) )?(\S+)((?: (?!:)\S+)*)(?: :(.*))?/.exec(line.trimEnd()) ?? [];
  return { from: prefix.split("!")[0], command, parameters: middle.trim().split(" "), text };
}

export default async function client(bot: Bot) {
  const irc = await bot.tcp({ frames: "lines" });
  irc.send("PASS letmein");
  irc.send("NICK player");
  irc.send(`USER bot${bot.id} 0 * :a bot`);
  // 001 is the welcome, 433 says that the nickname is in use.
  const answer = parse(await irc.next((line) => ["001", "433"].includes(parse(line).command), { within: "5s" }));
  const nick = `player-${bot.id}`;
  irc.send(`NICK ${nick}`);
  if (answer.command === "433") {
    bot.count("nicknames in use");
    await irc.next((line) => parse(line).command === "001", { within: "5s" });
  }
  const channel = `#room-${Math.floor(bot.id / 10)}`;
  const room = bot.room(channel);
  irc.send(`JOIN ${channel}`);
  const names = parse(await irc.next((line) => parse(line).command === "353", { within: "5s" })); // who is in the channel
  bot.check("the channel has this client under its own name", names.text.split(" ").some((one) => one.replace(/^@/, "") === nick));
  room.join();
  bot.ready();

  irc.onmessage = ({ data }) => {
    const { from, command, parameters, text } = parse(data);
    if (command === "PING") irc.send(`PONG :${text || parameters[0]}`);
    else if (command === "ERROR" || /^[45]\d\d$/.test(command)) bot.fail(data);
    else if (command === "PRIVMSG" && parameters[0] === nick) {
      bot.check("a message to itself comes from itself", from === nick);
      bot.answered("own", Number(text));
    } else if (command === "PRIVMSG") room.received(Number(from.replace("player-", "")), Number(text));
  };
  for await (const n of bot.every("200ms")) {
    bot.ask("own", n, () => irc.send(`PRIVMSG ${nick} :${n}`));
    // The server sends a line to all others in the channel, not back to its sender.
    if (n % 10 === 0) {
      room.sent(n / 10);
      irc.send(`PRIVMSG ${channel} :${n / 10}`);
    }
  }
}
