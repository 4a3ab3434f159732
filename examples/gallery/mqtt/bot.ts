// A sensor with credentials of its own over MQTT: publishes readings with QoS 1; each tenth one also watches the readings of the nine before it.
import mqtt from "mqtt";
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["reading.p99 < 200ms", "errors == 0"] };

export default async function sensor(bot: Bot) {
  const { name, password } = bot.row("sensors.csv");
  const client = await mqtt.connectAsync(bot.target, {
    clientId: name,
    username: name,
    password,
    reconnectPeriod: 0, // a lost connection must not heal unseen
  });
  client.on("error", (error) => bot.fail(error));
  client.on("close", () => bot.fail("connection lost"));

  if (bot.id % 10 === 9) {
    const last = new Map<string, number>();
    client.on("message", (topic, payload) => {
      const { seq, celsius } = JSON.parse(payload.toString());
      bot.count("readings watched");
      bot.check("a sensor's readings come without a gap", !last.has(topic) || seq === last.get(topic)! + 1);
      bot.check("a reading is plausible", celsius >= 20 && celsius < 25);
      last.set(topic, seq);
    });
    const before = (count: number) => name.replace(/\d+$/, (own) => String(Number(own) - count).padStart(own.length, "0"));
    const others = Array.from({ length: 9 }, (_, at) => `sensors/${before(at + 1)}/reading`);
    const granted = await client.subscribeAsync(others, { qos: 1 });
    bot.check("all subscriptions are granted", granted.every(({ qos }) => qos === 1));
  }
  bot.ready();

  for await (const seq of bot.every("100ms"))
    bot.ask("reading", seq, () => {
      const reading = JSON.stringify({ seq, celsius: 20 + 5 * bot.random() });
      client.publish(`sensors/${name}/reading`, reading, { qos: 1 }, (error) => (error ? bot.fail(error) : bot.answered("reading", seq)));
    });
}
