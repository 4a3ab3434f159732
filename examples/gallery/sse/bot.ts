// A member of a room of 10 over server-sent events: posts a line per second and books each line that it receives.
import type { Bot, Options } from "stepladder";

export const options: Options = { hold: "10s", objectives: ["line.p99 < 200ms", "errors == 0"] };

export default async function member(bot: Bot) {
  const number = Math.floor(bot.id / 10);
  const url = `${bot.target}/rooms/${number}`;
  const events = new EventSource(`${url}/events`);
  await new Promise((resolve) => (events.onopen = resolve));
  // An EventSource connects again by itself, and the lines in between are gone.
  events.onerror = () => bot.fail("the stream ended");

  const room = bot.room(`room-${number}`);
  room.join();
  let line = 0;
  events.addEventListener("line", ({ data, lastEventId }) => {
    const { from, seq } = JSON.parse(data);
    bot.check("lines of the room come without a gap", line === 0 || Number(lastEventId) === line + 1);
    line = Number(lastEventId);
    if (from === bot.id) bot.answered("line", seq);
    else room.received(from, seq);
  });
  bot.ready();

  for await (const seq of bot.every("1s"))
    bot.ask("line", seq, async () => {
      room.sent(seq);
      const answer = await fetch(`${url}/lines`, { method: "POST", body: JSON.stringify({ from: bot.id, seq }) });
      if (!answer.ok) bot.fail(`line refused: ${answer.status}`);
    });
}
