// The object `bot`: what a load test needs besides the Web's interfaces. types/stepladder.d.ts is its reference.
(host, own) => {
  "use strict";
  const PERIOD_NS_MIN = 1e5;
  /** Questions of one name that still owe a reply; beyond them the promise of the oldest is let go (its answer still counts). */
  const ASKED_MAX = 1000;
  /** So many numbers of a room may be passed over at once. */
  const SKIPPED_MAX = 10_000;

  const keyOf = (key) => (typeof key === "number" ? key : typeof key === "bigint" ? (Number.isSafeInteger(Number(key)) ? Number(key) : `${key}`) : typeof key === "string" ? key.toWellFormed() : key);

  const operations = new Map(host.operations.map((name, index) => [name, index]));
  const operationOf = (name) => operations.get(name) ?? host.unknownOperation(own.text(name));
  /** What `bot.ask` asked owes its message still. */
  own.asks = false;
  /** The executor of the promises below, without a closure for each. */
  let taken;
  const take = (resolve) => { taken = resolve; };

  /**
   * The promise of a reply, made when somebody waits for it: most of them nobody awaits, and a promise with its two functions is
   * what a question costs most. It is a promise to `instanceof`, and to whoever calls its methods or awaits it.
   */
  let settle;
  const NONE = Symbol("no value yet");
  class Reply {
    #value = NONE; #waited = undefined;
    #made() {
      if (this.#waited === undefined) {
        const promise = new Promise(take);
        this.#waited = { promise, resolve: taken };
        if (this.#value !== NONE) taken(this.#value);
      }
      return this.#waited.promise;
    }
    then(fulfilled, rejected) { return this.#made().then(fulfilled, rejected); }
    catch(rejected) { return this.#made().catch(rejected); }
    finally(call) { return this.#made().finally(call); }
    static {
      settle = (reply, value) => {
        reply.#value = value;
        reply.#waited?.resolve(value);
      };
    }
  }
  Object.setPrototypeOf(Reply.prototype, Promise.prototype);
  Object.defineProperty(Reply.prototype, "constructor", { value: Promise, writable: true, configurable: true });

  /** Planned instants: the n-th is n periods after the first, whatever the server or the script does meanwhile. */
  class Every {
    #bot; #timer; #first; #period; #jitter; #series; #count = 0; #isOver = false;
    /** of the instant that was asked for and has not come */
    #value = 0; #resolve = undefined;
    constructor(bot, period, first, jitter, series) {
      this.#bot = bot;
      bot.held.set((this.#timer = bot.nextId++), this);
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
      if (this.#jitter > 0) at += host.chance(this.#bot.id, this.#series, value) * this.#jitter;
      // Asked for before the last one came, as `Promise.all` may: jitter can turn their order round.
      if (this.#resolve !== undefined) return new Promise((resolve) => own.timer(at, () => resolve({ value, done: false })));
      host.timerOf(this.#bot.index, this.#timer, at);
      const instant = new Promise(take);
      this.#value = value;
      this.#resolve = taken;
      return instant;
    }
    return(value) {
      this.#isOver = true;
      if (this.#resolve === undefined) this.#bot.held.delete(this.#timer);
      return Promise.resolve({ value, done: true });
    }
    /** Its timer has come, under the number that it keeps. */
    static {
      own.due = (held) => {
        if (!(#timer in held)) return;
        const resolve = held.#resolve;
        held.#resolve = undefined;
        resolve?.({ value: held.#value, done: false });
      };
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
      return new Every(this.#state, gap, own.now + phase, jitter, series);
    }
    ask(name, key, send) {
      if (typeof send !== "function") throw new TypeError("bot.ask: its third argument is a function that sends the message");
      const operation = operationOf(name);
      key = keyOf(key);
      host.ask(operation, key);
      const asked = ((this.#state.asked ??= [])[operation] ??= new Map());
      const reply = new Reply();
      asked.set(key, reply);
      if (asked.size > ASKED_MAX) asked.delete(asked.keys().next().value);
      own.asks = true;
      try { send(); } finally { if (own.asks) { own.asks = false; host.asked(); } }
      return reply;
    }
    answered(name, key, value) {
      const operation = operationOf(name);
      key = keyOf(key);
      host.answered(operation, key);
      const asked = this.#state.asked?.[operation];
      const reply = asked?.get(key);
      if (reply !== undefined) { asked.delete(key); settle(reply, value); }
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
      if (typeof value !== "number" || !(value >= 0 && value <= host.recordedMax)) throw new TypeError(`bot.record: the value is a number from 0 to ${host.recordedMax}, not ${typeof value === "number" ? value : own.shown(value)}`);
      host.record(own.text(name), value);
    }
    row(file, how) {
      return host.row(own.text(file), how === undefined ? "unique" : own.text(how), this.#state.id);
    }
    group(size) { return own.group(this.#state, size); }
    room(name) {
      name = own.text(name);
      const rooms = (this.#state.rooms ??= new Map());
      let room = rooms.get(name);
      if (room === undefined) rooms.set(name, (room = new Room(name)));
      return room;
    }
    websocket(path = "", options = undefined) { return own.websocket(path, options); }
    tcp(options) { return own.tcp(options); }
    udp(options) { return own.udp(options); }
  }

  /** What was said in a room and who heard it, for the ledger of deliveries. */
  class Room {
    #name; #next = 0; #hasJoined = false;
    constructor(name) { this.#name = name; }
    join() { this.#hasJoined = true; host.join(this.#name); }
    leave() { host.leave(this.#name); }
    sent(seq) {
      whole(seq, "room.sent: seq");
      if (seq < this.#next) throw new TypeError(`room.sent: number ${seq} comes after ${this.#next - 1}; count up from 0 in each room, and use each number once`);
      if (seq - this.#next > SKIPPED_MAX) throw new TypeError(`room.sent: number ${seq} is far beyond ${this.#next}, which is the next; count up from 0 in each room`);
      this.#next = seq + 1;
      host.sent(this.#name, seq);
    }
    received(from, seq) {
      if (!this.#hasJoined) throw new TypeError(`room.received: this bot has not joined "${this.#name}"; call join() first`);
      host.received(this.#name, whole(from, "room.received: from"), whole(seq, "room.received: seq"));
    }
  }
  const whole = (value, what) => {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    throw new TypeError(`${what} is a whole number from 0, not ${own.shown(value)}`);
  };

  own.botOf = (state, env) => new Bot(state, env);
}
