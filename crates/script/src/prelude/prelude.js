// The Web's interfaces and `bot`, over the few functions of the host. Evaluated once per worker, before the script.
//
// One realm serves all bots of a worker. `current` is the bot whose turn it is; the host drains the microtasks of a turn
// before the next one begins, so every continuation runs with its own bot as `current`.
// Nothing here paces or reads a clock of its own: timers are instants that the host is asked for.
(host) => {
  "use strict";
  const MS_NS = 1e6;
  const BUFFERED_MESSAGES_MAX = 1000;
  const QUOTED_CHARACTERS = 200;

  /** The bot whose turn it is; undefined while the script itself is loaded. */
  let current;
  const bots = [];

  const here = (what) => {
    if (current === undefined) throw new TypeError(`${what} outside a bot: call it in the default function, not while the file is loaded`);
    return current;
  };

  // ---- durations: "50ms", "2s", or a number of ms
  const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: MS_NS, s: 1e9, m: 60e9, min: 60e9, h: 3600e9 };
  const ns = (time, what) => {
    if (typeof time === "number" && time >= 0 && Number.isFinite(time)) return time * MS_NS;
    const parts = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h)\s*$/.exec(String(time));
    if (parts === null) throw new TypeError(`${what}: ${JSON.stringify(time)} is no duration; write "50ms", "2s" or a number of milliseconds`);
    return Number(parts[1]) * UNITS[parts[2]];
  };
  const quoted = (data) => {
    const text = typeof data === "string" ? data : `${data.byteLength ?? data.size} bytes`;
    return text.length > QUOTED_CHARACTERS ? text.slice(0, QUOTED_CHARACTERS) + "…" : text;
  };

  // ---- events
  class Event {
    constructor(type, init = {}) {
      this.type = String(type);
      this.bubbles = !!init.bubbles;
      this.cancelable = !!init.cancelable;
      this.defaultPrevented = false;
      this.target = null;
      this.currentTarget = null;
      this.timeStamp = performance.now();
    }
    preventDefault() { this.defaultPrevented = this.cancelable; }
    stopPropagation() {}
    stopImmediatePropagation() { this._stopped = true; }
  }
  class MessageEvent extends Event {
    constructor(type, init = {}) { super(type, init); this.data = init.data ?? null; this.origin = init.origin ?? ""; this.lastEventId = init.lastEventId ?? ""; }
  }
  class CloseEvent extends Event {
    constructor(type, init = {}) { super(type, init); this.code = init.code ?? 0; this.reason = init.reason ?? ""; this.wasClean = !!init.wasClean; }
  }
  class ErrorEvent extends Event {
    constructor(type, init = {}) { super(type, init); this.message = init.message ?? ""; this.error = init.error ?? null; }
  }
  class CustomEvent extends Event {
    constructor(type, init = {}) { super(type, init); this.detail = init.detail ?? null; }
  }
  class EventTarget {
    addEventListener(type, listener, options) {
      if (listener === null || listener === undefined) return;
      const all = (this._listeners ??= new Map());
      let list = all.get(type);
      if (list === undefined) all.set(type, (list = []));
      if (list.some((one) => one.listener === listener)) return;
      list.push({ listener, once: typeof options === "object" && options !== null && !!options.once });
    }
    removeEventListener(type, listener) {
      const list = this._listeners?.get(type);
      if (list !== undefined) this._listeners.set(type, list.filter((one) => one.listener !== listener));
    }
    dispatchEvent(event) {
      event.target = event.currentTarget = this;
      const handler = this["on" + event.type];
      if (typeof handler === "function") guard(() => handler.call(this, event));
      const list = this._listeners?.get(event.type);
      if (list !== undefined) {
        for (const one of list.slice()) {
          if (event._stopped) break;
          if (one.once) this.removeEventListener(event.type, one.listener);
          guard(() => (typeof one.listener === "function" ? one.listener.call(this, event) : one.listener.handleEvent(event)));
        }
      }
      return !event.defaultPrevented;
    }
  }

  /** Calls back into the script; what it throws is an error of the bot and ends nothing else. */
  const guard = (call) => {
    try { return call(); } catch (error) { thrown(error); }
  };
  const thrown = (error) => {
    if (error instanceof Error) host.thrown(`${error.name}: ${error.message}`, String(error.stack ?? ""));
    else host.thrown(typeof error === "string" ? error : `a value that is no Error was thrown: ${shown(error)}`, "");
  };
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    try { return JSON.stringify(value) ?? String(value); } catch { return String(value); }
  };

  // ---- timers: instants of the engine
  const timer = (at_ns, call) => {
    const bot = here("a timer");
    const id = bot.nextId++;
    bot.timers.set(id, call);
    host.timer(id, at_ns);
    return id;
  };
  const setTimeout = (call, ms = 0, ...args) => {
    const delay = Number(ms);
    return timer(host.now() + (delay > 0 ? delay : 0) * MS_NS, () => guard(() => call(...args)));
  };
  const setInterval = (call, ms = 0, ...args) => {
    const bot = here("a timer");
    // As in browsers: an interval of 0 would never let the time go on.
    const period = Math.max(Number(ms) || 0, 1) * MS_NS;
    const id = bot.nextId++;
    let at = host.now() + period;
    const beat = () => {
      bot.timers.set(id, beat);
      at += period;
      host.timer(id, at);
      guard(() => call(...args));
    };
    bot.timers.set(id, beat);
    host.timer(id, at);
    return id;
  };
  const clear = (id) => { current?.timers.delete(id); };

  // ---- WebSocket
  class WebSocket extends EventTarget {
    static CONNECTING = 0; static OPEN = 1; static CLOSING = 2; static CLOSED = 3;
    CONNECTING = 0; OPEN = 1; CLOSING = 2; CLOSED = 3;
    onopen = null; onmessage = null; onclose = null; onerror = null;
    readyState = 0; bufferedAmount = 0; extensions = ""; protocol = ""; binaryType = "blob";

    constructor(url, protocols = [], init = {}) {
      super();
      const bot = here("new WebSocket");
      const list = typeof protocols === "string" ? [protocols] : Array.from(protocols, String);
      const target = host.websocketUrl(String(url), bot.target);
      this.url = target;
      this._bot = bot;
      this._id = bot.nextId++;
      this._headers = init.headers ?? {};
      bot.sockets.set(this._id, this);
      const headers = [];
      for (const [name, value] of Object.entries(this._headers)) headers.push(String(name), String(value));
      host.open(this._id, target, list, headers);
    }
    send(data) {
      if (this.readyState === 0) throw new Error("InvalidStateError: send() before the WebSocket is open");
      if (this.readyState !== 1) return;
      host.send(this._id, typeof data === "string" ? data : bytesOf(data));
    }
    close(code = 1000, reason = "") {
      if (this.readyState >= 2) return;
      this.readyState = 2;
      host.close(this._id, code, String(reason));
    }
    _opened(protocol) {
      this.readyState = 1;
      this.protocol = protocol;
      this.dispatchEvent(new Event("open"));
    }
    _message(data) {
      this.dispatchEvent(new MessageEvent("message", { data: typeof data === "string" ? data : this._binary(data) }));
    }
    _binary(bytes) { return this.binaryType === "arraybuffer" ? bytes.buffer : bytes; }
    _closed(code, reason, clean) {
      this.readyState = 3;
      if (!clean) this.dispatchEvent(new Event("error"));
      this.dispatchEvent(new CloseEvent("close", { code, reason, wasClean: clean }));
    }
  }

  const bytesOf = (data) => {
    if (data instanceof Uint8Array) return data;
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (data instanceof ArrayBuffer) return new Uint8Array(data);
    return String(data);
  };

  /** What `bot.websocket` gives: a WebSocket that can also be asked for its next message. */
  class Connection extends WebSocket {
    binaryType = "arraybuffer";
    _waiting = [];
    _buffer = [];
    _last = undefined;
    /** The next message that `match` accepts (any without it): its data. Messages before it are skipped. */
    next(match = () => true, { within = "10s" } = {}) {
      const limit = ns(within, "within");
      while (this._buffer.length > 0) {
        const data = this._buffer.shift();
        if (match(data)) return Promise.resolve(data);
      }
      if (this.readyState >= 2) return Promise.reject(new Error(`next(): the connection is closed${this._why ?? ""}`));
      return new Promise((resolve, reject) => {
        const waiting = { match, resolve, reject };
        this._waiting.push(waiting);
        waiting.timer = timer(host.now() + limit, () => {
          this._waiting = this._waiting.filter((one) => one !== waiting);
          const last = this._last === undefined ? "nothing came" : `the last was: ${quoted(this._last)}`;
          reject(new Error(`no message that matches within ${typeof within === "number" ? within + "ms" : within}; ${last}`));
        });
      });
    }
    _message(data) {
      const value = typeof data === "string" ? data : this._binary(data);
      this._last = value;
      for (const waiting of this._waiting.slice()) {
        let accepted = false;
        try { accepted = waiting.match(value); } catch (error) { this._leave(waiting); waiting.reject(error); continue; }
        if (accepted) { this._leave(waiting); waiting.resolve(value); return super._message(data); }
      }
      const heard = this.onmessage !== null || this._listeners?.get("message")?.length > 0;
      if (!heard && this._waiting.length === 0 && this._buffer.length < BUFFERED_MESSAGES_MAX) this._buffer.push(value);
      super._message(data);
    }
    _leave(waiting) {
      this._waiting = this._waiting.filter((one) => one !== waiting);
      this._bot.timers.delete(waiting.timer);
    }
    _closed(code, reason, clean) {
      this._why = ` (code ${code}${reason === "" ? "" : `, ${JSON.stringify(reason)}`})`;
      const waiting = this._waiting;
      this._waiting = [];
      for (const one of waiting) { this._bot.timers.delete(one.timer); one.reject(new Error(`the server closed the connection${this._why} before a message that matches`)); }
      super._closed(code, reason, clean);
    }
  }

  // ---- bot
  class Bot {
    constructor(state, target, env) {
      this.id = state.id;
      this.target = target;
      this.env = env;
      this._state = state;
    }
    random() { return host.random(); }
    ready() { host.ready(); }
    sleep(time) {
      const at = host.now() + ns(time, "bot.sleep");
      return new Promise((resolve) => timer(at, resolve));
    }
    at(time) {
      const at = this._state.began + ns(time, "bot.at");
      return new Promise((resolve) => timer(at, resolve));
    }
    /** Planned instants: the n-th is n periods after the first, whatever the server or the script does meanwhile. */
    every(period, { jitter = 0, phase } = {}) {
      const gap = ns(period, "bot.every");
      if (gap < 1e5) throw new TypeError(`bot.every: a period of ${period} is too short; 0.1 ms is the least`);
      const spread = ns(jitter, "jitter");
      // Real clients do not begin in step.
      const first = host.now() + (phase === undefined ? host.random() * gap : ns(phase, "phase"));
      let n = 0;
      return {
        [Symbol.asyncIterator]() { return this; },
        next() {
          const count = n++;
          const at = first + count * gap + (spread > 0 ? host.random() * spread : 0);
          return new Promise((resolve) => timer(at, () => resolve({ value: count, done: false })));
        },
        return() { return Promise.resolve({ value: undefined, done: true }); },
      };
    }
    ask(name, key, send) {
      const reply = new Promise((resolve) => this._state.asked.set(`${name} ${typeof key} ${key}`, resolve));
      host.ask(String(name), key);
      try { send(); } finally { host.asked(); }
      return reply;
    }
    answered(name, key, value) {
      host.answered(String(name), key);
      const id = `${name} ${typeof key} ${key}`;
      const resolve = this._state.asked.get(id);
      if (resolve !== undefined) { this._state.asked.delete(id); resolve(value); }
    }
    tick() { host.tick(); }
    check(name, ok) { host.check(String(name), !!ok); return !!ok; }
    fail(why) { host.fail(shown(why)); }
    count(name, n = 1) { host.count(String(name), n); }
    websocket(path = "", { headers, protocols, cookies } = {}) {
      const all = { ...headers };
      if (cookies !== undefined) all.Cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`).join("; ");
      const socket = new Connection(path, protocols ?? [], { headers: all });
      return new Promise((resolve, reject) => {
        socket.addEventListener("open", () => resolve(socket), { once: true });
        socket.addEventListener("close", ({ code, reason }) => {
          reject(new Error(reason === "" ? `the WebSocket did not open (code ${code})` : `the WebSocket did not open: ${reason}`));
        }, { once: true });
      });
    }
  }

  // ---- clocks, chance, console
  const now_ms = () => host.epochMs() + host.now() / MS_NS;
  const RealDate = Date;
  const EngineDate = function (...parts) {
    if (new.target === undefined) return new RealDate(now_ms()).toString();
    return parts.length === 0 ? new RealDate(now_ms()) : new RealDate(...parts);
  };
  EngineDate.prototype = RealDate.prototype;
  Object.assign(EngineDate, { now: () => Math.floor(now_ms()), parse: RealDate.parse, UTC: RealDate.UTC });
  RealDate.prototype.constructor = EngineDate;
  const performance = { now: () => host.now() / MS_NS, get timeOrigin() { return host.epochMs(); } };
  Math.random = () => host.random();
  const log = (level) => (...values) => host.log(level, values.map(shown).join(" "));
  const console = { log: log("log"), info: log("info"), warn: log("warn"), error: log("error"), debug: log("debug"), trace: log("debug") };
  const crypto = {
    getRandomValues(array) {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(host.random() * 256);
      return array;
    },
    randomUUID() {
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    },
  };
  class TextEncoder {
    encoding = "utf-8";
    encode(text = "") { return host.encode(String(text)); }
  }
  class TextDecoder {
    encoding = "utf-8";
    constructor(label = "utf-8") { if (!/^utf-?8$/i.test(label)) throw new RangeError(`TextDecoder: only utf-8 is built, not ${label}`); }
    decode(data) { return data === undefined ? "" : host.decode(bytesOf(data)); }
  }

  Object.assign(globalThis, {
    Event, MessageEvent, CloseEvent, ErrorEvent, CustomEvent, EventTarget, WebSocket, TextEncoder, TextDecoder,
    setTimeout, setInterval, clearTimeout: clear, clearInterval: clear, performance, console, crypto, Date: EngineDate,
    queueMicrotask: (call) => { Promise.resolve().then(() => guard(call)); },
    self: globalThis, global: globalThis,
  });

  // ---- what the host calls; each call is a turn
  return {
    start(index, id, target, env, main) {
      const state = (current = bots[index] = { id, target, began: host.now(), timers: new Map(), sockets: new Map(), asked: new Map(), nextId: 1 });
      let result;
      try { result = main(new Bot(state, target, env)); } catch (error) { thrown(error); host.ended(); return; }
      Promise.resolve(result).then(() => { current = state; host.ended(); }, (error) => { thrown(error); host.ended(); });
    },
    timer(index, id) {
      const state = (current = bots[index]);
      const call = state.timers.get(id);
      if (call === undefined) return;
      state.timers.delete(id);
      call();
    },
    opened(index, id, protocol) { (current = bots[index]).sockets.get(id)?._opened(protocol); },
    message(index, id, data) { (current = bots[index]).sockets.get(id)?._message(data); },
    closed(index, id, code, reason, clean) {
      const state = (current = bots[index]);
      const socket = state.sockets.get(id);
      state.sockets.delete(id);
      socket?._closed(code, reason, clean);
    },
    /** The bot does nothing more: what it held goes. */
    forget(index) { current = undefined; bots[index] = { timers: new Map(), sockets: new Map(), asked: new Map(), nextId: 1 }; },
  };
}
