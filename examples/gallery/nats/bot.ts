// A client of NATS without a library: a token, requests that another bot answers, a subject of 10 with delivery books.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["request.p99 < 100ms", "errors == 0"] };

const END = "\r\n";
const decoder = new TextDecoder();

/** Splits a stream into the protocol's operations. All that this bot sends is ASCII, so that characters are bytes. */
class Reader {
  private text = "";
  constructor(private readonly operation: (name: string, words: string[], payload: string) => void) {}

  push(bytes: ArrayBuffer) {
    this.text += decoder.decode(bytes);
    for (let end; (end = this.text.indexOf(END)) >= 0; ) {
      const [name, ...words] = this.text.slice(0, end).split(" ");
      let next = end + END.length;
      let payload = "";
      if (name === "MSG") {
        const length = Number(words.at(-1));
        if (this.text.length < next + length + END.length) return;
        payload = this.text.slice(next, next + length);
        next += length + END.length;
      }
      this.text = this.text.slice(next);
      this.operation(name, words, payload);
    }
  }
}

export default async function client(bot: Bot) {
  const nats = await bot.tcp({ frames: "raw" });
  const publish = (subject: string, payload: string, reply = "") =>
    nats.send(`PUB ${subject} ${reply && `${reply} `}${payload.length}${END}${payload}${END}`);
  const inbox = `_INBOX.${bot.id}`;
  const number = Math.floor(bot.id / 10);
  const room = bot.room(`room-${number}`);

  // Subscriptions by number: answers to this bot, requests of other bots, lines of the room.
  const subscriptions: Record<string, (payload: string, subject: string, reply?: string) => void> = {
    1: (payload, subject) => {
      bot.check("the answer is to this request", payload === `${subject.slice(inbox.length + 1)}!`);
      bot.answered("request", parseInt(payload));
    },
    2: (payload, _, reply) => publish(reply!, `${payload}!`),
    3: (payload) => {
      const [from, seq] = payload.split(" ").map(Number);
      if (from !== bot.id) room.received(from, seq); // the server sends it to its publisher too
    },
  };
  let pong: () => void;
  const ponged = new Promise<void>((resolve) => (pong = resolve));
  const reader = new Reader((name, words, payload) => {
    // MSG subject number [reply-to] length
    if (name === "MSG") subscriptions[words[1]](payload, words[0], words.length === 4 ? words[2] : undefined);
    else if (name === "PING") nats.send(`PONG${END}`);
    else if (name === "PONG") pong();
    else if (name === "-ERR") bot.fail(words.join(" "));
  });
  nats.onmessage = ({ data }) => reader.push(data);

  nats.send(`CONNECT {"auth_token":"letmein","verbose":false,"pedantic":false,"lang":"stepladder","version":"1"}${END}`);
  // `work` has a queue group: each request goes to one of all bots.
  nats.send(`SUB ${inbox}.* 1${END}SUB work workers 2${END}SUB room.${number} 3${END}PING${END}`);
  await ponged; // the server has taken all before it
  room.join();
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("request", n, () => publish("work", `${n}`, `${inbox}.${n}`));
    if (n % 10 === 0) {
      room.sent(n / 10);
      publish(`room.${number}`, `${bot.id} ${n / 10}`);
    }
  }
}
