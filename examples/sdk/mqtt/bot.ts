// A client of MQTT.js over WebSocket: publishes with QoS 1 to a topic of its own and measures the echo; a room of 10 beside it.
//   PORT=8080 ./server.sh
//   stepladder climb bot.ts --target ws://127.0.0.1:8080 --rungs 50,100,200
import mqtt from "mqtt";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["errors == 0"] };

export default async function client(bot: Bot) {
  const own = `bots/${bot.id}/move`;
  const room = `rooms/${Math.floor(bot.id / 10)}`;
  const client = await mqtt.connectAsync(bot.target, {
    clientId: `bot-${bot.id}`,
    username: "bot",
    password: "letmein",
    reconnectPeriod: 0, // a lost connection must not heal unseen
  });
  client.on("error", (error) => bot.fail(error));
  client.on("close", () => bot.fail("connection lost"));

  const last = new Map<number, number>();
  client.on("message", (topic, payload) => {
    const message = JSON.parse(payload.toString());
    if (topic === own) {
      bot.check("the echo is what was published", message.x === message.seq % 100);
      bot.answered("move", message.seq);
    } else {
      bot.count("lines");
      bot.check("lines of one sender come in order", message.seq > (last.get(message.from) ?? -1));
      last.set(message.from, message.seq);
    }
  });
  const granted = await client.subscribeAsync([own, room], { qos: 1 });
  bot.check("both subscriptions are granted", granted.length === 2 && granted.every(({ qos }) => qos === 1));
  bot.ready();

  for await (const n of bot.every("100ms")) {
    bot.ask("move", n, () => void client.publish(own, JSON.stringify({ seq: n, x: n % 100 }), { qos: 1 }, (error) => error && bot.fail(error)));
    // The broker's acknowledgement is an operation by itself.
    if (n % 10 === 0)
      bot.ask("publish", n, () => {
        client.publish(room, JSON.stringify({ from: bot.id, seq: n }), { qos: 1 }, (error) => (error ? bot.fail(error) : bot.answered("publish", n)));
      });
  }
}
