// EventSource. Source: WHATWG HTML, section 9.2. `headers` in its options is an addition: clients outside browsers set them.
(host, own) => {
  "use strict";
  const { DOMException, ErrorEvent, Event, Headers, MessageEvent, TextDecoder, URL } = globalThis;
  const CONNECTING = 0, OPEN = 1, CLOSED = 2;
  const RETRY_MS = 3000;

  /** Lines of a stream whose bytes come in any parts, and the events that they make. */
  class EventParser {
    #decoder = new TextDecoder(); #line = ""; #afterCr = false; #data = []; #type = "";
    #on;
    lastId = "";
    #id = "";
    constructor(on) { this.#on = on; }
    feed(bytes) {
      let text = this.#decoder.decode(bytes, { stream: true });
      if (text === "") return;
      // CR LF is one end of a line, also where two parts meet between them.
      if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
      this.#afterCr = text === "" ? false : text.endsWith("\r");
      const lines = (this.#line + text).split(/\r\n|\r|\n/);
      this.#line = lines.pop();
      for (const line of lines) this.#take(line);
    }
    #take(line) {
      if (line === "") return this.#dispatch();
      const colon = line.indexOf(":");
      if (colon === 0) return;
      const name = colon < 0 ? line : line.slice(0, colon);
      let value = colon < 0 ? "" : line.slice(colon + 1);
      if (value.startsWith(" ")) value = value.slice(1);
      if (name === "data") this.#data.push(value);
      else if (name === "event") this.#type = value;
      else if (name === "id" && !value.includes("\0")) this.#id = value;
      else if (name === "retry" && /^\d+$/.test(value)) this.#on.retry(Number(value));
    }
    #dispatch() {
      this.lastId = this.#id;
      const data = this.#data;
      const type = this.#type === "" ? "message" : this.#type;
      this.#data = [];
      this.#type = "";
      if (data.length > 0) this.#on.event(type, data.join("\n"), this.lastId);
    }
    /** Begins a new stream; the last id stays, what was incomplete does not. */
    restart() {
      this.#decoder = new TextDecoder();
      this.#line = this.#type = "";
      this.#afterCr = false;
      this.#data = [];
    }
  }

  class EventSource extends EventTarget {
    #url; #headers; #operation; #withCredentials; #state = CONNECTING; #retry = RETRY_MS; #exchange = null; #bot; #timer = 0; #parser; #origin = "";
    constructor(url, options = undefined) {
      super();
      this.#bot = own.here("new EventSource");
      try { this.#url = own.urlOf(own.text(url)); } catch (error) { throw new DOMException(error.message, "SyntaxError"); }
      this.#withCredentials = !!options?.withCredentials;
      this.#headers = new Headers(options?.headers);
      this.#operation = options?.operation === undefined ? undefined : own.text(options.operation);
      this.#parser = new EventParser({
        retry: (ms) => { this.#retry = ms; },
        event: (type, data, lastEventId) => {
          if (this.#state !== CLOSED) own.fire(this, new MessageEvent(type, { data, lastEventId, origin: this.#origin }));
        },
      });
      this.#connect();
    }
    get url() { return this.#url; }
    get withCredentials() { return this.#withCredentials; }
    get readyState() { return this.#state; }
    close() {
      this.#state = CLOSED;
      own.stopTimer(this.#bot, this.#timer);
      this.#exchange?.cancel();
      this.#exchange = null;
    }
    #connect() {
      const headers = new Headers(this.#headers);
      if (!headers.has("accept")) headers.set("accept", "text/event-stream");
      headers.set("cache-control", "no-store");
      // Latin-1 on the wire, where the id is UTF-8.
      if (this.#parser.lastId !== "") headers.set("last-event-id", Array.from(host.encode(this.#parser.lastId), (one) => String.fromCharCode(one)).join(""));
      this.#parser.restart();
      const request = { method: "GET", url: this.#url, headers, body: undefined, operation: this.#operation, redirect: "follow", cookies: true };
      this.#exchange = own.exchange(request, {
        respond: (status, statusText, found, url) => {
          const type = found.get("content-type") ?? "";
          if (status !== 200) return this.#fail(`it answered with the status ${status}`);
          if (!/^\s*text\/event-stream\s*(;|$)/i.test(type)) return this.#fail(`it answered with ${type || "no type"} instead of text/event-stream`);
          this.#origin = new URL(url).origin;
          this.#state = OPEN;
          own.fire(this, new Event("open"));
        },
        part: (bytes) => this.#parser.feed(bytes),
        end: () => this.#again(),
        fail: () => this.#again(),
      });
    }
    /** The stream has ended, or did not come about: the client asks again. */
    #again() {
      this.#exchange = null;
      if (this.#state === CLOSED) return;
      this.#state = CONNECTING;
      own.fire(this, new Event("error"));
      if (this.#state === CLOSED) return;
      this.#timer = own.timer(own.now + this.#retry * own.MS_NS, () => this.#connect());
    }
    /** The server does not give events here; asking again would not change that. */
    #fail(why) {
      this.close();
      own.fire(this, new ErrorEvent("error", { message: `EventSource ${this.#url}: ${why}` }));
    }
  }
  own.handlers(EventSource, ["open", "message", "error"]);
  own.constants(EventSource, { CONNECTING, OPEN, CLOSED });
  own.expose({ EventSource });
}
