// A loop at 30 Hz that answers in its next tick what came since the last one, and tells its ticks twice: as a histogram at
// /metrics, and as StatsD where STATSD=HOST:PORT says so. No dependencies.
// To see two sources contradict each other: STALL_MS=50 stops every second tick for so long, and STATSD_LIES=1 tells StatsD
// of a loop that never stops.
import dgram from "node:dgram";
import http from "node:http";

const PERIOD_MS = 1000 / 30;
// An interval of 32, 33 or 34 whole ms is on time at 30 Hz: an edge at each of the two limits.
const EDGES_S = [0.016, 0.032, 0.035, 0.05, 0.1];
const { PORT = 8080, STATSD, STALL_MS, STATSD_LIES } = process.env;

const upTo = EDGES_S.map(() => 0);
let [count, sum_s] = [0, 0];
let told = () => {};
if (STATSD) {
  const [host, port] = STATSD.split(":");
  const socket = dgram.createSocket("udp4");
  socket.connect(Number(port), host);
  socket.on("error", () => {}); // nobody listens between two loads
  const tell = (ms) => socket.send(`tick:${ms.toFixed(3)}|ms`, () => {});
  socket.on("connect", () => (told = STATSD_LIES ? () => tell(PERIOD_MS) : tell));
}

function ticked(interval_s) {
  EDGES_S.forEach((edge_s, at) => (upTo[at] += interval_s <= edge_s));
  count += 1;
  sum_s += interval_s;
  told(interval_s * 1000);
}

const metrics = () => `# TYPE tick_seconds histogram
${EDGES_S.map((edge, at) => `tick_seconds_bucket{le="${edge}"} ${upTo[at]}\n`).join("")}tick_seconds_bucket{le="+Inf"} ${count}
tick_seconds_sum ${sum_s}
tick_seconds_count ${count}
# EOF
`;

let waiting = [];
http
  .createServer((request, response) => {
    if (request.url === "/metrics") {
      response.end(metrics());
    } else {
      waiting.push(response);
    }
  })
  .listen(Number(PORT), "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${PORT}`));

const stalled = new Int32Array(new SharedArrayBuffer(4));
const begin = performance.now();
let [tick, last] = [0, begin];
(function loop() {
  const now = performance.now();
  if (tick > 0) ticked((now - last) / 1000);
  last = now;
  tick += 1;
  for (const response of waiting) response.end(`tick ${tick}\n`);
  waiting = [];
  if (STALL_MS && tick % 2 === 0) Atomics.wait(stalled, 0, 0, Number(STALL_MS));
  // The n-th tick is due n periods after the first, whenever this one ran; what is late is caught up.
  setTimeout(loop, begin + tick * PERIOD_MS - performance.now());
})();
