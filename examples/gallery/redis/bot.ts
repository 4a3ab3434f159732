// A client of Redis without a library: RESP3 on one connection, a channel of 10 with delivery books, a counter that is increased.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["line.p99 < 100ms", "incr.p99 < 100ms", "errors == 0"] };

type Value = string | number | boolean | null | Failure | Push | Value[];
class Failure {
  constructor(readonly message: string) {}
}
/** What the server sends without being asked; RESP2 had no way to tell it from an answer. */
class Push {
  constructor(readonly items: Value[]) {}
}

/** Reads RESP: values that end anywhere in a chunk. Lengths are in bytes, so it keeps bytes. */
class Reader {
  private bytes = new Uint8Array(0);
  private at = 0;

  /** All values that are whole by now. */
  push(chunk: ArrayBuffer): Value[] {
    const rest = this.bytes.subarray(this.at);
    this.bytes = new Uint8Array(rest.length + chunk.byteLength);
    this.bytes.set(rest);
    this.bytes.set(new Uint8Array(chunk), rest.length);
    this.at = 0;
    const values: Value[] = [];
    for (;;) {
      const begin = this.at;
      const value = this.value();
      if (value === undefined) {
        this.at = begin; // read again from there with the next chunk
        return values;
      }
      values.push(value);
    }
  }
  /** `undefined`: not whole yet. */
  private value(): Value | undefined {
    const line = this.line();
    if (line === undefined) return undefined;
    const rest = line.slice(1);
    switch (line[0]) {
      case "+": case "(": return rest;
      case "-": return new Failure(rest);
      case ":": case ",": return Number(rest);
      case "#": return rest === "t";
      case "_": return null;
      case "$": case "=": return Number(rest) < 0 ? null : this.text(Number(rest));
      case "*": case "~": return Number(rest) < 0 ? null : this.items(Number(rest));
      case "%": return this.items(2 * Number(rest));
      case ">": {
        const items = this.items(Number(rest));
        return items && new Push(items);
      }
      default: throw new Error(`not RESP: ${line}`);
    }
  }
  private line(): string | undefined {
    const end = this.bytes.indexOf(13, this.at);
    if (end < 0 || end + 1 >= this.bytes.length) return undefined;
    const line = decoder.decode(this.bytes.subarray(this.at, end));
    this.at = end + 2;
    return line;
  }
  private text(length: number): string | undefined {
    const end = this.at + length;
    if (end + 2 > this.bytes.length) return undefined;
    const text = decoder.decode(this.bytes.subarray(this.at, end));
    this.at = end + 2;
    return text;
  }
  private items(count: number): Value[] | undefined {
    const items: Value[] = [];
    while (items.length < count) {
      const item = this.value();
      if (item === undefined) return undefined;
      items.push(item);
    }
    return items;
  }
}
const decoder = new TextDecoder();
const encoder = new TextEncoder();

export default async function client(bot: Bot) {
  const redis = await bot.tcp({ frames: "raw" });
  /** Answers come in the order of the commands. */
  const waiting: ((value: Value) => void)[] = [];
  const command = (...words: (string | number)[]) =>
    new Promise<Value>((resolve) => {
      waiting.push(resolve);
      redis.send(`*${words.length}\r\n${words.map((word) => `$${encoder.encode(String(word)).length}\r\n${word}\r\n`).join("")}`);
    });

  const name = `room-${Math.floor(bot.id / 10)}`;
  const room = bot.room(name);
  let subscribed: () => void;
  const subscription = new Promise<void>((resolve) => (subscribed = resolve));
  const reader = new Reader();
  redis.onmessage = ({ data }) => {
    for (const value of reader.push(data)) {
      if (value instanceof Push) {
        const [kind, , payload] = value.items;
        // A subscription is confirmed by a push, and has no other answer.
        if (kind === "subscribe") subscribed();
        if (kind !== "message") continue;
        const [from, seq] = String(payload).split(" ").map(Number);
        if (from === bot.id) bot.answered("line", seq);
        else room.received(from, seq);
      } else {
        if (value instanceof Failure) bot.fail(value.message);
        waiting.shift()?.(value);
      }
    }
  };

  const hello = await command("HELLO", 3, "AUTH", "default", "letmein", "SETNAME", `bot-${bot.id}`);
  bot.check("the server speaks RESP3", Array.isArray(hello) && hello[hello.indexOf("proto") + 1] === 3);
  redis.send(`*2\r\n$9\r\nSUBSCRIBE\r\n$${name.length}\r\n${name}\r\n`);
  await subscription;
  room.join();
  const counter = `counter:${bot.id}`;
  await command("SET", counter, 0);
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("incr", n, () => {
      command("INCR", counter).then((value) => {
        bot.check("the counter counts each increase once", value === n + 1);
        bot.answered("incr", n);
      });
    });
    if (n % 10 === 0)
      bot.ask("line", n / 10, () => {
        room.sent(n / 10);
        command("PUBLISH", name, `${bot.id} ${n / 10}`);
      });
  }
}
