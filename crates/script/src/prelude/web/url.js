// URL and URLSearchParams. The host parses addresses (crate `url`). Source: WHATWG URL.
(host, own) => {
  "use strict";
  const NAMES = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
  let link, refresh;

  class URLSearchParams {
    #list = []; #changed = undefined;
    constructor(init = "") {
      if (own.isObject(init)) {
        const iterator = init[Symbol.iterator];
        if (iterator !== undefined && iterator !== null) {
          for (const pair of init) {
            const both = own.isObject(pair) ? [...pair] : [];
            if (both.length !== 2) throw new TypeError("URLSearchParams: each entry of a list is a pair of name and value");
            this.#list.push([own.text(both[0]), own.text(both[1])]);
          }
        } else {
          const named = new Map();
          for (const key of Reflect.ownKeys(init)) {
            if (!Object.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
            if (typeof key === "symbol") throw new TypeError("URLSearchParams: a symbol is no name");
            named.set(own.text(key), own.text(init[key]));
          }
          this.#list = [...named];
        }
      } else {
        const text = own.text(init);
        this.#list = parsed(text.startsWith("?") ? text.slice(1) : text);
      }
    }
    get size() { return this.#list.length; }
    append(name, value) { this.#list.push([own.text(name), own.text(value)]); this.#changed?.(); }
    delete(name, value) {
      name = own.text(name);
      const isMeant = value === undefined ? (pair) => pair[0] === name : ((text) => (pair) => pair[0] === name && pair[1] === text)(own.text(value));
      this.#list = this.#list.filter((pair) => !isMeant(pair));
      this.#changed?.();
    }
    get(name) { name = own.text(name); return this.#list.find((pair) => pair[0] === name)?.[1] ?? null; }
    getAll(name) { name = own.text(name); return this.#list.filter((pair) => pair[0] === name).map((pair) => pair[1]); }
    has(name, value) {
      name = own.text(name);
      value = value === undefined ? undefined : own.text(value);
      return this.#list.some((pair) => pair[0] === name && (value === undefined || pair[1] === value));
    }
    set(name, value) {
      name = own.text(name);
      value = own.text(value);
      const at = this.#list.findIndex((pair) => pair[0] === name);
      if (at < 0) this.#list.push([name, value]);
      else {
        this.#list[at] = [name, value];
        this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== name);
      }
      this.#changed?.();
    }
    sort() {
      // By code units, and stable.
      this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed?.();
    }
    forEach(call, self) {
      if (typeof call !== "function") throw new TypeError("forEach takes a function");
      for (const [name, value] of this) call.call(self, value, name, this);
    }
    *entries() { for (let at = 0; at < this.#list.length; at++) yield [...this.#list[at]]; }
    *keys() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][0]; }
    *values() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][1]; }
    toString() { return this.#list.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&"); }
    static {
      Object.defineProperty(this.prototype, Symbol.iterator, { value: this.prototype.entries, writable: true, configurable: true });
      link = (params, changed) => { params.#changed = changed; return params; };
      refresh = (params, search) => { params.#list = parsed(search.startsWith("?") ? search.slice(1) : search); };
      own.isParams = (value) => own.isObject(value) && #list in value;
    }
  }

  const decoded = (text) => {
    if (text.includes("+")) text = text.replaceAll("+", " ");
    if (!text.includes("%")) return text;
    // Refuses what is no UTF-8 or no escape; the bytes are looked at then.
    try { return decodeURIComponent(text); } catch { /* below */ }
    const bytes = host.encode(text);
    const left = new Uint8Array(bytes.length);
    let length = 0;
    for (let at = 0; at < bytes.length; at++, length++) {
      const value = bytes[at] === 0x25 && at + 2 < bytes.length ? Number(`0x${String.fromCharCode(bytes[at + 1], bytes[at + 2])}`) : NaN;
      const isEscape = value === value && isHex(bytes[at + 1]) && isHex(bytes[at + 2]);
      left[length] = isEscape ? value : bytes[at];
      if (isEscape) at += 2;
    }
    return host.decode(left.subarray(0, length), false);
  };
  const isHex = (code) => (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);
  const parsed = (text) => text.split("&").filter((part) => part !== "").map((part) => {
    const at = part.indexOf("=");
    return at < 0 ? [decoded(part), ""] : [decoded(part.slice(0, at)), decoded(part.slice(at + 1))];
  });
  const encoded = (text) => encodeURIComponent(text)
    .replace(/%20|[!'()~]/g, (one) => (one === "%20" ? "+" : `%${one.charCodeAt(0).toString(16).toUpperCase()}`));
  own.formPairs = parsed;

  class URL {
    #parts; #params = null;
    constructor(url, base) {
      if (arguments.length === 0) throw new TypeError("URL: its address is missing");
      this.#parts = host.url(own.text(url), base === undefined ? undefined : own.text(base));
      if (this.#parts === undefined) throw new TypeError(`Invalid URL: ${own.quoted(`${url}`)}`);
    }
    static canParse(url, base) { return host.url(own.text(url), base === undefined ? undefined : own.text(base)) !== undefined; }
    static parse(url, base) { return URL.canParse(url, base) ? new URL(url, base) : null; }
    get searchParams() {
      return (this.#params ??= link(new URLSearchParams(this.search), () => {
        const search = this.#params.toString();
        this.#parts = host.urlWith(this.#parts[0], "search", search) ?? this.#parts;
      }));
    }
    toString() { return this.#parts[0]; }
    toJSON() { return this.#parts[0]; }
    static {
      for (const [at, name] of NAMES.entries()) {
        const set = name === "origin" ? undefined : function set(value) {
          const parts = host.urlWith(this.#parts[0], name, own.text(value));
          if (parts === undefined) {
            if (name === "href") throw new TypeError(`Invalid URL: ${own.quoted(`${value}`)}`);
            return;
          }
          this.#parts = parts;
          if (this.#params !== null && (name === "search" || name === "href")) refresh(this.#params, parts[9]);
        };
        Object.defineProperty(this.prototype, name, { get() { return this.#parts[at]; }, set, enumerable: true, configurable: true });
      }
    }
  }
  own.expose({ URL, URLSearchParams });
}
