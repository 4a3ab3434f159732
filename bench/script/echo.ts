export default async function echo(bot: any) {
  const ws = await bot.websocket("/");
  bot.ready();
  ws.onmessage = ({ data }: any) => bot.answered("echo", JSON.parse(data).n);
  for await (const n of bot.every("100ms")) bot.ask("echo", n, () => ws.send(JSON.stringify({ n })));
}
