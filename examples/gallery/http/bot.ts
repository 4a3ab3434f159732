// A customer of the shop beside this file: logs in, then looks at the list and at one of its items, twice a second.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["journey.p99 < 200ms", "errors == 0"] };

type Item = { id: number; name: string; price_cents?: number };

export default async function customer(bot: Bot) {
  const { name, password } = bot.row("users.csv");
  const { token } = await bot.measure("login", async () => {
    const answer = await fetch(`${bot.target}/login`, { method: "POST", body: JSON.stringify({ name, password }) });
    if (!bot.check("the login is accepted", answer.ok)) throw new Error(`login: ${answer.status}`);
    return answer.json();
  });
  const get = async (path: string) => {
    const answer = await fetch(bot.target + path, { headers: { Authorization: `Bearer ${token}` } });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  };
  bot.ready();

  for await (const _ of bot.every("500ms"))
    await bot.measure("journey", async () => {
      const list: { name: string; items: Item[] } = await get("/items");
      bot.check("the session is this customer's", list.name === name);
      const chosen = list.items[Math.floor(bot.random() * list.items.length)];
      const item: Item = await get(`/items/${chosen.id}`);
      bot.check("the item is the chosen one", item.id === chosen.id && item.name === chosen.name && item.price_cents! > 0);
    });
}
