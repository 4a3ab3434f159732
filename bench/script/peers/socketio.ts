import { io } from "socket.io-client";

export default async function player(bot: any) {
  const socket = io(bot.target, { transports: ["websocket"], forceNew: true, reconnection: false });
  socket.on("connect", () => bot.ready());
  for await (const n of bot.every("100ms"))
    if (socket.connected) bot.ask("move", n, () => socket.emit("move", { n }, () => bot.answered("move", n)));
}
