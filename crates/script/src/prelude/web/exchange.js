// One request with its redirects, below fetch, XMLHttpRequest and EventSource. Source: WHATWG Fetch, sections 4.3 to 4.5.
//
// The host sends each request and tells its response in turns; redirects and cookies are followed here. Each hop is a request
// of its own to the host, so that each is measured.
(host, own) => {
  "use strict";
  const { URL } = globalThis;
  const REDIRECTS_MAX = 20;
  const REDIRECTS = new Set([301, 302, 303, 307, 308]);
  /** Headers that describe a body which is no longer sent. */
  const OF_BODY = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];

  const isId = (part) => /^[-+]?\d+([.,]\d+)*$/.test(part)
    || /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(part)
    || (part.length >= 16 && /^[0-9a-f]+$/i.test(part) && /\d/.test(part))
    || (part.length >= 20 && /^[\w.~-]+={0,2}$/.test(part) && /\d/.test(part) && /[a-z]/.test(part) && /[A-Z]/.test(part));
  /** The name of a request without one of its own: method and path, with numbers and ids as `:id`. */
  own.operationOf = (method, path) => `${method} ${path.split("/").map((part) => (isId(part) ? ":id" : part)).join("/")}`;

  /** The address that relative ones are resolved against: the target, as http. */
  own.base = () => {
    const target = own.turn?.target;
    return target === undefined || !/^(ws|http)s?:/i.test(target) ? undefined : target.replace(/^ws/i, "http");
  };

  class Exchange {
    #bot; #id = 0; #hops = 0; #isOver = false;
    /**
     * `request`: method, url (whole), headers (Headers of its own), body (Uint8Array or undefined), operation (text or
     * undefined), redirect, cookies (whether the jar is used). `sink`: respond(status, statusText, headers, url, hops),
     * part(bytes), end(), fail(why).
     */
    constructor(request, sink) {
      this.request = request;
      this.sink = sink;
      this.#bot = own.here("a request");
      this.#send();
    }
    #send() {
      const { request } = this;
      const bot = this.#bot;
      bot.held.delete(this.#id);
      bot.held.set((this.#id = bot.nextId++), this);
      const headers = own.flatHeaders(request.headers);
      if (!request.headers.has("accept")) headers.push("accept", "*/*");
      if (request.cookies && !request.headers.has("cookie")) {
        const cookies = own.cookiesOf(bot, request.url);
        if (cookies !== "") headers.push("cookie", cookies);
      }
      const operation = request.operation ?? own.operationOf(request.method, new URL(request.url).pathname);
      const hash = request.url.indexOf("#");
      host.request(this.#id, request.method, hash < 0 ? request.url : request.url.slice(0, hash), headers, request.body, operation);
    }
    // ---- turns of the host
    responded(status, statusText, flat) {
      const { request } = this;
      const headers = own.headersOf(flat);
      if (request.cookies) for (const line of headers.getSetCookie()) own.setCookie(this.#bot, request.url, line);
      const location = headers.get("location");
      if (REDIRECTS.has(status) && location !== null && request.redirect !== "manual") return this.#redirected(status, location);
      this.sink.respond(status, statusText, own.lockHeaders(headers), request.url, this.#hops);
    }
    part(bytes) { this.sink.part(bytes); }
    end() {
      this.#finish();
      this.sink.end();
    }
    fail(why) {
      this.#finish();
      this.sink.fail(new TypeError(why));
    }
    /** Stops the request; its sink hears nothing more. */
    cancel() {
      if (this.#isOver) return;
      this.#finish();
      host.cancel(this.#id);
    }
    #finish() {
      this.#isOver = true;
      this.#bot.held.delete(this.#id);
    }
    #redirected(status, location) {
      const { request } = this;
      const refuse = (why) => { this.cancel(); this.sink.fail(new TypeError(why)); };
      if (request.redirect === "error") return refuse(`${request.url} redirects to ${own.quoted(location)}, and redirect is "error"`);
      if (this.#hops >= REDIRECTS_MAX) return refuse(`${request.url}: more than ${REDIRECTS_MAX} redirects`);
      const target = URL.parse(location, request.url);
      if (target === null || !/^https?:$/.test(target.protocol)) return refuse(`${request.url} redirects to ${own.quoted(location)}, which is no address of http or https`);
      const from = new URL(request.url);
      if (target.hash === "") target.hash = from.hash;
      this.#hops++;
      const turnsIntoGet = (status === 303 && request.method !== "GET" && request.method !== "HEAD") || ((status === 301 || status === 302) && request.method === "POST");
      if (turnsIntoGet) {
        request.method = "GET";
        request.body = undefined;
        for (const name of OF_BODY) request.headers.delete(name);
      }
      // What was meant for one server is not told another.
      if (target.origin !== from.origin) for (const name of ["authorization", "proxy-authorization", "cookie"]) request.headers.delete(name);
      request.url = target.href;
      // The body of the redirect itself may still come; its number is no longer known, so it goes unread.
      this.#send();
    }
  }
  own.exchange = (request, sink) => new Exchange(request, sink);
}
