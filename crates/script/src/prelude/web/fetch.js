// Request, Response and fetch. Source: WHATWG Fetch, sections 5.4 to 5.6.
// `{ operation: "items" }` as an init option names the operation that the request is measured as. Not as in browsers: no CORS,
// so all headers can be set and read, and `redirect: "manual"` gives the redirect itself. Modes, caches and referrers are
// accepted and mean nothing.
(host, own) => {
  "use strict";
  const { AbortController, Headers, URL } = globalThis;
  const UPPER = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);
  const NO_BODY = new Set([101, 103, 204, 205, 304]);
  const INTERNAL = Symbol("internal");
  let partsOf;

  own.methodOf = (method) => {
    method = `${method}`;
    const upper = method.toUpperCase();
    if (!own.isToken(method) || upper === "CONNECT" || upper === "TRACE" || upper === "TRACK") throw new TypeError(`${JSON.stringify(own.quoted(method))} is no method of a request`);
    return UPPER.has(upper) ? upper : method;
  };
  own.urlOf = (input) => {
    const url = URL.parse(input, own.base());
    if (url === null) throw new TypeError(`Invalid URL: ${own.quoted(`${input}`)}; write a path of the target, or http://HOST/PATH`);
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`${own.quoted(url.href)}: only http and https can be requested`);
    if (url.username !== "" || url.password !== "") throw new TypeError(`${url.host}: an address of a request has no user name or password; set the header Authorization`);
    return url.href;
  };

  class Request extends own.Body {
    #method; #url; #headers; #signal; #redirect; #credentials; #operation;
    constructor(input, init = undefined) {
      if (init !== undefined && init !== null && !own.isObject(init)) throw new TypeError("Request: its second argument is an object");
      const from = input instanceof Request ? input : undefined;
      const url = from === undefined ? own.urlOf(own.text(input)) : from.#url;
      const method = init?.method === undefined ? (from?.#method ?? "GET") : own.methodOf(init.method);
      const headers = new Headers(init?.headers ?? from?.#headers);
      const given = init?.body ?? undefined;
      const hasBody = given !== undefined || (from !== undefined && init?.body !== null && from.body !== null);
      if (hasBody && (method === "GET" || method === "HEAD")) throw new TypeError(`a request with ${method} has no body`);
      const extracted = given !== undefined ? own.extracted(given) : hasBody ? own.sharedBody(from, "Request") : {};
      if (given === undefined && hasBody) own.takenBody(from);
      super(extracted.bytes, extracted.stream, undefined);
      if (extracted.type !== undefined && !headers.has("content-type")) headers.set("content-type", extracted.type);
      this.#url = url;
      this.#method = method;
      this.#headers = headers;
      this.#redirect = `${init?.redirect ?? from?.#redirect ?? "follow"}`;
      if (!["follow", "error", "manual"].includes(this.#redirect)) throw new TypeError(`redirect is "follow", "error" or "manual", not ${this.#redirect}`);
      this.#credentials = `${init?.credentials ?? from?.#credentials ?? "same-origin"}`;
      this.#operation = init?.operation === undefined ? from?.#operation : own.text(init.operation);
      const signal = init?.signal === undefined ? from?.#signal : (init.signal ?? undefined);
      if (signal !== undefined && !own.isSignal(signal)) throw new TypeError("Request: signal is no AbortSignal");
      this.#signal = signal;
    }
    get method() { return this.#method; }
    get url() { return this.#url; }
    get headers() { return this.#headers; }
    get signal() { return (this.#signal ??= new AbortController().signal); }
    get redirect() { return this.#redirect; }
    get credentials() { return this.#credentials; }
    get mode() { return "cors"; }
    get cache() { return "default"; }
    get destination() { return ""; }
    get referrer() { return "about:client"; }
    get referrerPolicy() { return ""; }
    get integrity() { return ""; }
    get keepalive() { return false; }
    get duplex() { return "half"; }
    clone() {
      const { bytes, stream } = own.sharedBody(this, "clone()");
      return new Request(this.#url, {
        method: this.#method, headers: this.#headers, body: bytes ?? stream, redirect: this.#redirect,
        credentials: this.#credentials, operation: this.#operation, signal: this.#signal,
      });
    }
    static { partsOf = (request) => ({ operation: request.#operation, signal: request.#signal }); }
  }

  class Response extends own.Body {
    #status = 200; #statusText = ""; #headers; #type = "default"; #url = ""; #redirected = false;
    constructor(body = null, init = undefined, token = undefined) {
      if (token === INTERNAL) {
        super(init.bytes, init.stream, init.inflow);
        ({ status: this.#status, statusText: this.#statusText, headers: this.#headers, type: this.#type, url: this.#url, redirected: this.#redirected } = init);
        return;
      }
      const status = init?.status === undefined ? 200 : Math.trunc(Number(init.status));
      if (!(status >= 200 && status <= 599)) throw new RangeError(`Response: the status is a number from 200 to 599, not ${own.shown(init.status)}`);
      const statusText = init?.statusText === undefined ? "" : `${init.statusText}`;
      if (/[^\t\x20-\x7e\x80-\xff]/.test(statusText)) throw new TypeError("Response: the status text has characters that it cannot have");
      const extracted = own.extracted(body);
      if ((body ?? null) !== null && NO_BODY.has(status)) throw new TypeError(`Response: one with the status ${status} has no body`);
      super(extracted.bytes, extracted.stream, undefined);
      this.#headers = new Headers(init?.headers);
      if (extracted.type !== undefined && !this.#headers.has("content-type")) this.#headers.set("content-type", extracted.type);
      this.#status = status;
      this.#statusText = statusText;
    }
    get status() { return this.#status; }
    get statusText() { return this.#statusText; }
    get ok() { return this.#status >= 200 && this.#status <= 299; }
    get headers() { return this.#headers; }
    get type() { return this.#type; }
    get url() { return this.#url; }
    get redirected() { return this.#redirected; }
    clone() {
      const { bytes, stream } = own.sharedBody(this, "clone()");
      const headers = new Headers(this.#headers);
      return new Response(null, { bytes, stream, status: this.#status, statusText: this.#statusText, headers, type: this.#type, url: this.#url, redirected: this.#redirected }, INTERNAL);
    }
    static error() {
      return new Response(null, { status: 0, statusText: "", headers: own.lockHeaders(new Headers()), type: "error", url: "", redirected: false }, INTERNAL);
    }
    static redirect(url, status = 302) {
      const location = URL.parse(own.text(url), own.base());
      if (location === null) throw new TypeError(`Invalid URL: ${own.quoted(`${url}`)}`);
      if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`Response.redirect: ${own.shown(status)} is no status of a redirect`);
      return new Response(null, { status, headers: { location: location.href } });
    }
    static json(data, init) {
      const text = JSON.stringify(data);
      if (text === undefined) throw new TypeError("Response.json: the value cannot be written as JSON");
      const headers = new Headers(init?.headers);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
      return new Response(text, { status: init?.status, statusText: init?.statusText, headers });
    }
  }

  const fetch = async (input, init) => {
    const request = new Request(input, init);
    const { operation, signal } = partsOf(request);
    signal?.throwIfAborted();
    let body = own.takenBody(request);
    if (body instanceof Promise) { body = await body; signal?.throwIfAborted(); }
    return new Promise((resolve, reject) => {
      let inflow;
      const sent = {
        method: request.method, url: request.url, headers: new Headers(request.headers), body, operation,
        redirect: request.redirect, cookies: request.credentials !== "omit",
      };
      const stop = () => {
        exchange.cancel();
        reject(signal.reason);
        inflow?.fail(signal.reason);
      };
      const settle = () => { if (signal !== undefined) own.offAbort(signal, stop); };
      const exchange = own.exchange(sent, {
        respond(status, statusText, headers, url, hops) {
          const hasBody = !NO_BODY.has(status) && sent.method !== "HEAD";
          if (hasBody) inflow = own.inflow(() => { settle(); exchange.cancel(); });
          resolve(new Response(null, { inflow, status, statusText, headers, type: "basic", url: url.replace(/#.*$/, ""), redirected: hops > 0 }, INTERNAL));
        },
        part(bytes) { inflow?.part(bytes); },
        end() { settle(); inflow?.end(); },
        fail(error) {
          settle();
          reject(error);
          inflow?.fail(error);
        },
      });
      if (signal !== undefined) own.onAbort(signal, stop);
    });
  };
  own.expose({ Request, Response, fetch });
}
