import ws from "k6/ws";
import { Counter } from "k6/metrics";

const trips = new Counter("round_trips");

export default function () {
  ws.connect("ws://127.0.0.1:42081/", {}, (socket) => {
    let n = 0;
    socket.on("open", () => socket.setInterval(() => socket.send(JSON.stringify({ n })), 100));
    socket.on("message", (data) => {
      if (JSON.parse(data).n !== n) throw new Error("another answer");
      trips.add(1);
      if (++n === Number(__ENV.TRIPS)) socket.close();
    });
  });
}
