// XMLHttpRequest, asynchronous, as far as clients of real-time servers use it. Source: WHATWG XHR. Not here: synchronous
// requests, documents, progress of what is sent.
(host, own) => {
  "use strict";
  const { DOMException, Event, Headers, ProgressEvent } = globalThis;
  const UNSENT = 0, OPENED = 1, HEADERS_RECEIVED = 2, LOADING = 3, DONE = 4;
  const TYPES = ["", "text", "json", "arraybuffer", "blob"];
  const EVENTS = ["loadstart", "progress", "abort", "error", "load", "timeout", "loadend"];

  class XMLHttpRequestEventTarget extends EventTarget {}
  own.handlers(XMLHttpRequestEventTarget, EVENTS);
  class XMLHttpRequestUpload extends XMLHttpRequestEventTarget {}

  class XMLHttpRequest extends XMLHttpRequestEventTarget {
    #state = UNSENT; #method = "GET"; #url = ""; #headers = null; #exchange = null; #isSent = false;
    #status = 0; #statusText = ""; #found = null; #responseURL = ""; #chunks = []; #loaded = 0; #total = 0;
    #type = ""; #timeout = 0; #timer = 0; #bot = null; #upload = null; #response = undefined; #mime = undefined; #hasFailed = false;
    withCredentials = false;
    get readyState() { return this.#state; }
    get status() { return this.#status; }
    get statusText() { return this.#statusText; }
    get responseURL() { return this.#responseURL; }
    get responseXML() { return null; }
    get upload() { return (this.#upload ??= new XMLHttpRequestUpload()); }
    get timeout() { return this.#timeout; }
    set timeout(ms) { this.#timeout = Math.max(Number(ms) || 0, 0); if (this.#isSent) this.#watch(); }
    get responseType() { return this.#type; }
    set responseType(value) {
      if (this.#state >= LOADING) throw new DOMException("responseType is set before the body comes", "InvalidStateError");
      if (TYPES.includes(value)) this.#type = value;
    }
    open(method, url, isAsync = true) {
      if (!isAsync) throw new DOMException("a synchronous XMLHttpRequest would stop all bots of this worker", "InvalidAccessError");
      try { this.#method = own.methodOf(method); this.#url = own.urlOf(own.text(url)); } catch (error) { throw new DOMException(error.message, "SyntaxError"); }
      this.#stop();
      this.#headers = new Headers();
      this.#clear();
      this.#isSent = false;
      this.#move(OPENED);
    }
    setRequestHeader(name, value) {
      if (this.#state !== OPENED || this.#isSent) throw new DOMException("setRequestHeader() comes between open() and send()", "InvalidStateError");
      try { this.#headers.append(name, value); } catch (error) { throw new DOMException(error.message, "SyntaxError"); }
    }
    overrideMimeType(type) { this.#mime = `${type}`; }
    send(body = null) {
      if (this.#state !== OPENED || this.#isSent) throw new DOMException("send() comes after open(), once", "InvalidStateError");
      this.#bot = own.here("XMLHttpRequest.send()");
      const hasBody = body !== null && body !== undefined && this.#method !== "GET" && this.#method !== "HEAD";
      const { bytes, type } = own.extracted(hasBody ? body : null);
      if (type !== undefined && !this.#headers.has("content-type")) this.#headers.set("content-type", type);
      this.#isSent = true;
      this.#progress("loadstart");
      if (this.#state !== OPENED || !this.#isSent) return;
      const request = { method: this.#method, url: this.#url, headers: this.#headers, body: bytes, operation: undefined, redirect: "follow", cookies: true };
      this.#exchange = own.exchange(request, {
        respond: (status, statusText, found, url) => {
          this.#status = status;
          this.#statusText = statusText;
          this.#found = found;
          this.#responseURL = url.replace(/#.*$/, "");
          this.#total = Number(found.get("content-length")) || 0;
          this.#move(HEADERS_RECEIVED);
        },
        part: (part) => {
          this.#chunks.push(part);
          this.#loaded += part.byteLength;
          this.#response = undefined;
          this.#move(LOADING);
          this.#progress("progress");
        },
        end: () => { this.#over("load"); },
        fail: () => { this.#clear(); this.#hasFailed = true; this.#over("error"); },
      });
      this.#watch();
    }
    abort() {
      const wasSent = this.#isSent && this.#state !== DONE;
      this.#stop();
      this.#clear();
      if (wasSent) { this.#hasFailed = true; this.#over("abort"); }
      if (this.#state === DONE) this.#state = UNSENT;
    }
    getResponseHeader(name) { try { return this.#found?.get(name) ?? null; } catch { return null; } }
    getAllResponseHeaders() {
      if (this.#found === null) return "";
      let text = "";
      for (const [name, value] of this.#found) text += `${name}: ${value}\r\n`;
      return text;
    }
    get responseText() {
      if (this.#type !== "" && this.#type !== "text") throw new DOMException(`responseText is not there with responseType "${this.#type}"`, "InvalidStateError");
      if (this.#state < LOADING) return "";
      return (this.#response ??= own.utf8(own.joined(this.#chunks)));
    }
    get response() {
      if (this.#type === "" || this.#type === "text") return this.responseText;
      if (this.#state !== DONE || this.#hasFailed) return null;
      if (this.#response === undefined) {
        const bytes = own.joined(this.#chunks);
        if (this.#type === "arraybuffer") this.#response = bytes.slice().buffer;
        else if (this.#type === "blob") this.#response = own.blobOf(bytes.slice(), this.#mime ?? this.#found.get("content-type") ?? "");
        else try { this.#response = JSON.parse(own.utf8(bytes)); } catch { this.#response = null; }
      }
      return this.#response;
    }
    #clear() {
      this.#status = this.#loaded = this.#total = 0;
      this.#statusText = this.#responseURL = "";
      this.#found = null;
      this.#chunks = [];
      this.#response = undefined;
      this.#hasFailed = false;
    }
    #stop() {
      if (this.#bot !== null) own.stopTimer(this.#bot, this.#timer);
      this.#exchange?.cancel();
      this.#exchange = null;
    }
    #watch() {
      own.stopTimer(this.#bot, this.#timer);
      if (this.#timeout === 0 || this.#exchange === null) return;
      this.#timer = own.timer(own.now + this.#timeout * own.MS_NS, () => {
        this.#stop();
        this.#clear();
        this.#hasFailed = true;
        this.#over("timeout");
      });
    }
    #over(how) {
      this.#exchange = null;
      own.stopTimer(this.#bot, this.#timer);
      this.#isSent = false;
      this.#move(DONE);
      this.#progress(how);
      this.#progress("loadend");
    }
    #move(state) {
      this.#state = state;
      own.fire(this, new Event("readystatechange"));
    }
    #progress(type) {
      own.fire(this, new ProgressEvent(type, { lengthComputable: this.#total > 0, loaded: this.#loaded, total: this.#total }));
    }
  }
  own.handlers(XMLHttpRequest, ["readystatechange"]);
  own.constants(XMLHttpRequest, { UNSENT, OPENED, HEADERS_RECEIVED, LOADING, DONE });
  own.expose({ XMLHttpRequest, XMLHttpRequestUpload, XMLHttpRequestEventTarget });
}
