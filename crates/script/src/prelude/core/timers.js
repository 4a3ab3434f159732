// Timers: instants that the host is asked for. They belong to the bot whose turn it is.
(host, own) => {
  "use strict";
  /** A turn of this bot at an instant, ns of the engine's clock. */
  own.timer = (at_ns, call) => {
    const bot = own.here("a timer");
    const id = bot.nextId++;
    bot.held.set(id, call);
    host.timer(id, at_ns);
    return id;
  };

  // A timer of no time is called in the turn that set it, behind its microtasks. Modules are shared by all bots of a worker: what
  // one of them keeps for later, as shims of `process.nextTick` do, must be done before another bot's turn. As in browsers a
  // timer that is set by such timers five times over comes 4 ms later, so that time passes.
  const SOON_MAX = 5, CLAMPED_NS = 4e6;
  const soon = [];
  let level = 0;
  const setSoon = (call) => {
    const bot = own.here("a timer");
    if (level >= SOON_MAX) return own.timer(own.now + CLAMPED_NS, call);
    const id = bot.nextId++;
    bot.held.set(id, call);
    soon.push({ id, level: level + 1 });
    host.soon();
    return id;
  };
  /** Calls the first of them. Whether there are more. */
  own.callSoon = () => {
    const first = soon.shift();
    const call = own.turn?.held.get(first?.id);
    if (call !== undefined) {
      own.turn.held.delete(first.id);
      level = first.level;
      call();
    }
    return soon.length > 0;
  };
  own.forgetSoon = () => { if (soon.length > 0) soon.length = 0; level = 0; };

  own.stopTimer = (bot, id) => { bot.held.delete(id); };

  const called = (call, args) => {
    if (typeof call !== "function") throw new TypeError("a timer takes a function; text is not compiled");
    return args.length === 0 ? () => { try { call(); } catch (error) { own.thrown(error); } }
      : () => { try { call(...args); } catch (error) { own.thrown(error); } };
  };
  const delay_ns = (ms) => { const delay = Number(ms); return delay > 0 ? Math.min(delay, 0x7fffffff) * own.MS_NS : 0; };
  const setTimeout = (call, ms = 0, ...args) => {
    const delay = delay_ns(ms);
    return delay > 0 ? own.timer(own.now + delay, called(call, args)) : setSoon(called(call, args));
  };
  const setInterval = (call, ms = 0, ...args) => {
    const bot = own.here("a timer");
    // As in browsers: an interval of 0 would not let time pass.
    const period = Math.max(delay_ns(ms), own.MS_NS);
    const run = called(call, args);
    const id = bot.nextId++;
    let at = own.now + period;
    const beat = () => {
      bot.held.set(id, beat);
      at += period;
      host.timer(id, at);
      run();
    };
    bot.held.set(id, beat);
    host.timer(id, at);
    return id;
  };
  const clear = (id) => {
    // Sockets and requests have numbers of the same row.
    if (typeof own.turn?.held.get(id) === "function") own.turn.held.delete(id);
  };
  const queueMicrotask = (call) => {
    if (typeof call !== "function") throw new TypeError("queueMicrotask takes a function");
    Promise.resolve().then(() => own.guard(call));
  };

  const now_ms = () => host.epochMs() + own.now / own.MS_NS;
  const RealDate = Date;
  /** The date reads the engine's clock, in virtual time too. */
  const EngineDate = function Date(...parts) {
    if (new.target === undefined) return new RealDate(now_ms()).toString();
    return Reflect.construct(RealDate, parts.length === 0 ? [now_ms()] : parts, new.target);
  };
  Object.defineProperty(EngineDate, "prototype", { value: RealDate.prototype, writable: false });
  Object.defineProperty(EngineDate, "length", { value: 7 });
  for (const [name, value] of Object.entries({ now: () => Math.floor(now_ms()), parse: RealDate.parse, UTC: RealDate.UTC })) {
    Object.defineProperty(EngineDate, name, { value, writable: true, configurable: true });
  }
  Object.defineProperty(RealDate.prototype, "constructor", { value: EngineDate, writable: true, configurable: true });

  // Marks are accepted, because libraries set them, and kept nowhere: a bot measures with `bot.measure`.
  const performance = {
    now: () => own.now / own.MS_NS,
    get timeOrigin() { return host.epochMs(); },
    mark: (name) => ({ name: `${name}`, entryType: "mark", startTime: own.now / own.MS_NS, duration: 0 }),
    measure: (name) => ({ name: `${name}`, entryType: "measure", startTime: own.now / own.MS_NS, duration: 0 }),
    clearMarks() {}, clearMeasures() {}, getEntries: () => [], getEntriesByName: () => [], getEntriesByType: () => [],
    toJSON() { return { timeOrigin: host.epochMs() }; },
  };

  own.expose({
    setTimeout, setInterval, clearTimeout: clear, clearInterval: clear, queueMicrotask, performance, Date: EngineDate,
    setImmediate: (call, ...args) => setSoon(called(call, args)), clearImmediate: clear,
  });
}
