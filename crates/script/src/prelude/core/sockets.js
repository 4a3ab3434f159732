// Connections: WebSocket as the Web has it, and what `bot.websocket`, `bot.tcp` and `bot.udp` give.
(host, own) => {
  "use strict";
  const { CloseEvent, DOMException, Event, Headers } = globalThis;
  const BUFFERED_MESSAGES_MAX = 1000;
  const CLOSE_REASON_BYTES_MAX = 123;
  const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
  let idOf, botOf;

  /** What all connections have in common; not a global. */
  class Socket extends EventTarget {
    #id; #bot; #hasLeft = false; #state = CONNECTING; #protocol = ""; #binaryType;
    constructor(bot, binaryType) {
      super();
      this.#bot = bot;
      this.#binaryType = binaryType;
      bot.held.set((this.#id = bot.nextId++), this);
    }
    get readyState() { return this.#state; }
    get protocol() { return this.#protocol; }
    get extensions() { return ""; }
    /** What was sent has left for the engine, which queues and counts it. */
    get bufferedAmount() { return 0; }
    get binaryType() { return this.#binaryType; }
    set binaryType(value) { if (value === "blob" || value === "arraybuffer") this.#binaryType = value; }
    send(data) {
      if (this.#state !== OPEN) {
        if (this.#state === CONNECTING) throw new DOMException("send() before the connection is open", "InvalidStateError");
        // As in browsers nothing happens; but what the server's end kept from leaving is counted as not sent.
        if (this.#hasLeft) return;
      }
      // A module that all bots share may send for another bot than the one whose turn it is.
      const bot = this.#bot;
      if (typeof data === "string") host.send(bot.index, this.#id, data.toWellFormed());
      else host.send(bot.index, this.#id, own.bytesOf(data) ?? own.blobBytes(data) ?? own.text(data));
      if (bot === own.turn) own.asks = false;
    }
    close(code, reason) {
      if (code !== undefined) {
        code = Math.trunc(Number(code)) || 0;
        if (code !== 1000 && !(code >= 3000 && code <= 4999)) throw new DOMException(`close(): a client closes with 1000 or 3000 to 4999, not ${code}`, "InvalidAccessError");
      }
      reason = reason === undefined ? "" : own.text(reason);
      if (host.encode(reason).byteLength > CLOSE_REASON_BYTES_MAX) throw new DOMException(`close(): the reason is longer than ${CLOSE_REASON_BYTES_MAX} bytes`, "SyntaxError");
      if (this.#state >= CLOSING) return;
      this.#state = CLOSING;
      this.#hasLeft = true;
      host.close(this.#bot.index, this.#id, code, reason);
    }
    static {
      idOf = (socket) => socket.#id;
      botOf = (socket) => socket.#bot;
      own.opened = (socket, protocol) => {
        if (!(#state in socket) || socket.#state !== CONNECTING) return;
        socket.#state = OPEN;
        socket.#protocol = protocol;
        own.fire(socket, new Event("open"));
      };
      /** `data`: a string, or an ArrayBuffer. */
      own.message = (socket, data) => {
        if (!(#state in socket)) return;
        const value = typeof data === "string" || socket.#binaryType === "arraybuffer" ? data : own.blobOf(new Uint8Array(data));
        socket[HEARD]?.(value);
        own.fire(socket, own.messageEvent(value));
      };
      own.closed = (socket, code, reason, clean) => {
        if (!(#state in socket)) return;
        socket.#state = CLOSED;
        socket[ENDED]?.(code, reason, socket.#hasLeft);
        if (!clean) own.fire(socket, new Event("error"));
        own.fire(socket, new CloseEvent("close", { code, reason, wasClean: clean }));
      };
    }
  }
  const HEARD = Symbol("heard"), ENDED = Symbol("ended");
  own.handlers(Socket, ["open", "message", "close", "error"]);
  own.constants(Socket, { CONNECTING, OPEN, CLOSING, CLOSED });

  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  class WebSocket extends Socket {
    #url;
    constructor(url, protocols = [], internal = undefined) {
      const bot = own.here("new WebSocket");
      const list = typeof protocols === "string" ? [protocols] : Array.from(protocols ?? [], String);
      if (list.some((one) => !TOKEN.test(one)) || new Set(list.map((one) => one.toLowerCase())).size < list.length) {
        throw new DOMException(`new WebSocket: ${JSON.stringify(list)} are no subprotocols, or one is there twice`, "SyntaxError");
      }
      const whole = host.websocketUrl(own.text(url), bot.target);
      if (whole === undefined) throw new DOMException(`"${url}" is no address of a WebSocket; write a path such as "/play", or ws://HOST:PORT/PATH`, "SyntaxError");
      super(bot, internal === INTERNAL ? "arraybuffer" : "blob");
      this.#url = whole;
      host.open(idOf(this), whole, list, headersOf(whole, internal === INTERNAL ? given : undefined));
    }
    get url() { return this.#url; }
  }
  const INTERNAL = Symbol("internal");
  /** Headers and cookies of the `bot.websocket` that is under way. */
  let given;

  /** Headers of a handshake, flat: those of the call, and the cookies that the server has set for this address. */
  const headersOf = (url, options) => {
    const flat = [];
    let cookies = own.cookiesOf(own.turn, url.replace(/^ws/, "http"));
    if (options?.headers !== undefined) {
      const all = own.flatHeaders(new Headers(options.headers));
      for (let at = 0; at < all.length; at += 2) {
        if (all[at].toLowerCase() !== "cookie") flat.push(all[at], all[at + 1]);
        else cookies = cookies === "" ? all[at + 1] : `${all[at + 1]}; ${cookies}`;
      }
    }
    if (options?.cookies !== undefined) {
      const named = Object.entries(options.cookies).map(([name, value]) => `${name}=${value}`);
      const names = new Set(Object.keys(options.cookies));
      const kept = cookies.split("; ").filter((pair) => pair !== "" && !names.has(pair.slice(0, pair.indexOf("="))));
      cookies = [...named, ...kept].join("; ");
    }
    if (cookies !== "") flat.push("Cookie", cookies);
    return flat;
  };

  /** Adds `next` to a connection. */
  const withNext = (Base) => class extends Base {
    #waiting = null; #buffer = null; #last = undefined; #why = ""; #alarm = 0; #alarmAt = Infinity;
    /** The data of the next message that `match` accepts (any without it). Messages before it are skipped. */
    next(match, options) {
      if (match !== undefined && typeof match !== "function") throw new TypeError("next(): match is a function of the message's data");
      const within = options?.within ?? "10s";
      const limit = own.ns(within, "within");
      while (this.#buffer !== null && this.#buffer.length > 0) {
        const data = this.#buffer.shift();
        if (match === undefined || match(data)) return Promise.resolve(data);
      }
      if (this.readyState >= CLOSING) return Promise.reject(new Error(`next(): the connection is closed${this.#why}`));
      return new Promise((resolve, reject) => {
        const until = own.now + Math.trunc(limit);
        (this.#waiting ??= []).push({ match, resolve, reject, until, within });
        this.#watch(until);
      });
    }
    /** One timer for all that wait: a loop over `next` would leave one per message with the engine. */
    #watch(until) {
      if (this.#alarmAt <= until) return;
      own.stopTimer(botOf(this), this.#alarm);
      this.#alarmAt = until;
      this.#alarm = own.timer(until, () => {
        this.#alarmAt = Infinity;
        for (const waiting of this.#waiting?.slice() ?? []) {
          if (waiting.until > own.now) { this.#watch(waiting.until); continue; }
          this.#leave(waiting);
          const { within } = waiting;
          const last = this.#last === undefined ? "nothing came" : `the last was: ${own.quoted(this.#last)}`;
          waiting.reject(new Error(`no message that matches within ${typeof within === "number" ? within + "ms" : within}; ${last}`));
        }
      });
    }
    [HEARD](data) {
      this.#last = data;
      if (this.#waiting === null) {
        if (own.hears(this, "message")) return;
        const buffer = (this.#buffer ??= []);
        if (buffer.length < BUFFERED_MESSAGES_MAX) buffer.push(data);
        return;
      }
      for (const waiting of this.#waiting.slice()) {
        let accepts;
        try { accepts = waiting.match === undefined || waiting.match(data); } catch (error) { this.#leave(waiting); waiting.reject(error); continue; }
        if (accepts) { this.#leave(waiting); waiting.resolve(data); return; }
      }
    }
    #leave(waiting) {
      const rest = (this.#waiting ?? []).filter((one) => one !== waiting);
      this.#waiting = rest.length === 0 ? null : rest;
    }
    [ENDED](code, reason, hasLeft) {
      this.#why = ` (code ${code}${reason === "" ? "" : `, ${JSON.stringify(reason)}`})`;
      const waiting = this.#waiting ?? [];
      this.#waiting = null;
      own.stopTimer(botOf(this), this.#alarm);
      for (const one of waiting) one.reject(new Error(`${hasLeft ? "this bot" : "the server"} closed the connection${this.#why} before a message that matches`));
    }
  };
  const WebConnection = withNext(WebSocket);
  const Transport = withNext(Socket);

  const standing = (socket, what) => new Promise((resolve, reject) => {
    socket.addEventListener("open", () => resolve(socket), { once: true });
    socket.addEventListener("close", ({ code, reason }) => {
      reject(new Error(reason === "" ? `${what} did not open (code ${code})` : `${what} did not open: ${reason}`));
    }, { once: true });
  });
  own.websocket = (path, options) => {
    given = options;
    try { return standing(new WebConnection(path, options?.protocols ?? [], INTERNAL), "the WebSocket"); } finally { given = undefined; }
  };

  const address = (options, what) => {
    const { host: name, port } = options;
    if (name !== undefined && (typeof name !== "string" || name === "")) throw new TypeError(`${what}: host is a name or an address`);
    if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65536)) throw new TypeError(`${what}: port is a number from 1 to 65535, not ${own.shown(port)}`);
    return [name, port];
  };
  own.tcp = (options = {}) => {
    const [name, port] = address(options, "bot.tcp");
    const frames = `${options.frames}`;
    if (!host.isFrames(frames)) throw new TypeError(`bot.tcp: frames is one of ${host.framesList()}, not ${own.shown(options.frames)}`);
    const socket = new Transport(own.here("bot.tcp"), "arraybuffer");
    host.openTcp(idOf(socket), name, port, frames);
    return standing(socket, "the TCP connection");
  };
  own.udp = (options = {}) => {
    const [name, port] = address(options, "bot.udp");
    const socket = new Transport(own.here("bot.udp"), "arraybuffer");
    host.openUdp(idOf(socket), name, port);
    return standing(socket, "the UDP socket");
  };

  own.expose({ WebSocket });
}
