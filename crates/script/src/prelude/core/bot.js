// The object `bot`: what a load test needs besides the Web's interfaces. types/stepladder.d.ts is its reference.
(host, own) => {
  "use strict";
  const PERIOD_NS_MIN = 1e5;
  /** Questions of one name that still owe a reply; beyond them the promise of the oldest is let go (its answer still counts). */
  const ASKED_MAX = 1000;

  const keyOf = (key) => (typeof key === "bigint" ? (Number.isSafeInteger(Number(key)) ? Number(key) : `${key}`) : typeof key === "string" ? key.toWellFormed() : key);

  /** Planned instants: the n-th is n periods after the first, whatever the server or the script does meanwhile. */
  class Every {
    #id; #first; #period; #jitter; #series; #count = 0; #isOver = false;
    constructor(id, period, first, jitter, series) {
      this.#id = id;
      this.#period = period;
      this.#first = first;
      this.#jitter = jitter;
      this.#series = series;
    }
    [Symbol.asyncIterator]() { return this; }
    next() {
      if (this.#isOver) return Promise.resolve({ value: undefined, done: true });
      const value = this.#count++;
      let at = this.#first + value * this.#period;
      if (this.#jitter > 0) at += host.chance(this.#id, this.#series, value) * this.#jitter;
      return new Promise((resolve) => own.timer(at, () => resolve({ value, done: false })));
    }
    return(value) {
      this.#isOver = true;
      return Promise.resolve({ value, done: true });
    }
  }

  class Bot {
    #state; #env;
    constructor(state, env) {
      this.#state = state;
      this.#env = env;
    }
    get id() { return this.#state.id; }
    get target() { return this.#state.target; }
    get env() { return this.#env; }
    random() { return host.random(); }
    ready() { host.ready(); }
    sleep(time) {
      const at = own.now + own.ns(time, "bot.sleep");
      return new Promise((resolve) => own.timer(at, resolve));
    }
    at(time) {
      const at = this.#state.began + own.ns(time, "bot.at");
      return new Promise((resolve) => own.timer(at, resolve));
    }
    every(period, options) {
      const gap = own.ns(period, "bot.every");
      if (gap < PERIOD_NS_MIN) throw new TypeError(`bot.every: a period of ${period} is too short; 0.1 ms is the least`);
      const jitter = own.ns(options?.jitter ?? 0, "jitter");
      // Real clients do not begin in step. Drawn from the seed, the bot and the number of this call, so that neither the
      // server's timing nor other bots change it.
      const series = this.#state.series++;
      const phase = options?.phase === undefined ? host.chance(this.#state.id, series, 0xffffffff) * gap : own.ns(options.phase, "phase");
      return new Every(this.#state.id, gap, own.now + phase, jitter, series);
    }
    ask(name, key, send) {
      if (typeof send !== "function") throw new TypeError("bot.ask: its third argument is a function that sends the message");
      name = own.text(name);
      key = keyOf(key);
      host.ask(name, key);
      const all = (this.#state.asked ??= new Map());
      let asked = all.get(name);
      if (asked === undefined) all.set(name, (asked = new Map()));
      const reply = new Promise((resolve) => asked.set(key, resolve));
      if (asked.size > ASKED_MAX) asked.delete(asked.keys().next().value);
      try { send(); } finally { host.asked(); }
      return reply;
    }
    answered(name, key, value) {
      name = own.text(name);
      key = keyOf(key);
      host.answered(name, key);
      const asked = this.#state.asked?.get(name);
      const resolve = asked?.get(key);
      if (resolve !== undefined) { asked.delete(key); resolve(value); }
    }
    async measure(name, step) {
      if (typeof step !== "function") throw new TypeError("bot.measure: its second argument is a function");
      const key = this.#state.nextId++;
      host.measureBegin(own.text(name), key);
      let result;
      try { result = await step(); } catch (error) { host.measureEnd(key, false); throw error; }
      host.measureEnd(key, true);
      return result;
    }
    tick(time) {
      if (time !== undefined && !Number.isFinite(time)) throw new TypeError(`bot.tick: the time is a number of milliseconds, not ${own.shown(time)}`);
      host.tick(time);
    }
    check(name, ok) { host.check(own.text(name), !!ok); return !!ok; }
    fail(why) { host.fail(own.text(own.shown(why))); }
    count(name, n = 1) {
      if (!(Number(n) >= 0)) throw new TypeError(`bot.count: it adds a number from 0, not ${own.shown(n)}`);
      host.count(own.text(name), Number(n));
    }
    record(name, value) {
      if (typeof value !== "number" || !Number.isFinite(value)) throw new TypeError(`bot.record: the value is a finite number, not ${own.shown(value)}`);
      host.record(own.text(name), value);
    }
    row(file, how) {
      return host.row(own.text(file), how === undefined ? "unique" : own.text(how), this.#state.id);
    }
    group(size) { return own.group(this.#state, size); }
    room(name) { return new Room(own.text(name)); }
    websocket(path = "", options = undefined) { return own.websocket(path, options); }
    tcp(options) { return own.tcp(options); }
    udp(options) { return own.udp(options); }
  }

  /** What was said in a room and who heard it, for the ledger of deliveries. */
  class Room {
    #name;
    constructor(name) { this.#name = name; }
    join() { host.join(this.#name); }
    leave() { host.leave(this.#name); }
    sent(seq) { host.sent(this.#name, whole(seq, "room.sent: seq")); }
    received(from, seq) { host.received(this.#name, whole(from, "room.received: from"), whole(seq, "room.received: seq")); }
  }
  const whole = (value, what) => {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    throw new TypeError(`${what} is a whole number from 0, not ${own.shown(value)}`);
  };

  own.botOf = (state, env) => new Bot(state, env);
}
