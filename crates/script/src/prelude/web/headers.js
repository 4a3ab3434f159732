// Headers. Source: WHATWG Fetch, section 5.1. A script sees names in lower case; they are sent as they were written.
// No name is forbidden: a bot may send any `Cookie` or `Origin`, since the client that it stands for does.
(host, own) => {
  "use strict";
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  let lock, flat;

  const nameOf = (name) => {
    name = `${name}`;
    if (!TOKEN.test(name)) throw new TypeError(`Headers: ${JSON.stringify(name)} is no name of a header`);
    return name.toLowerCase();
  };
  const valueOf = (value) => {
    value = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\r\n]|[^\0-\xff]/.test(value)) throw new TypeError(`Headers: ${JSON.stringify(own.quoted(value))} is no value of a header: it has a line break, or characters beyond Latin-1`);
    return value;
  };

  class Headers {
    // Name in lower case, value, name as written.
    #list = []; #isLocked = false;
    constructor(init) {
      if (init === undefined) return;
      if (!own.isObject(init)) throw new TypeError("Headers: it takes a list of pairs or an object");
      if (#list in init && init[Symbol.iterator] === Headers.prototype.entries) {
        this.#list = [...init.#list];
      } else if (init[Symbol.iterator] !== undefined && init[Symbol.iterator] !== null) {
        for (const pair of init) {
          const both = own.isObject(pair) ? [...pair] : [];
          if (both.length !== 2) throw new TypeError("Headers: each entry of a list is a pair of name and value");
          this.append(both[0], both[1]);
        }
      } else {
        for (const key of Reflect.ownKeys(init)) {
          if (Object.getOwnPropertyDescriptor(init, key)?.enumerable) this.append(key, init[key]);
        }
      }
    }
    append(name, value) {
      const lower = nameOf(name);
      value = valueOf(value);
      this.#writable();
      this.#list.push([lower, value, `${name}`]);
    }
    delete(name) {
      name = nameOf(name);
      this.#writable();
      this.#list = this.#list.filter((pair) => pair[0] !== name);
    }
    get(name) {
      name = nameOf(name);
      let all = null;
      for (const pair of this.#list) if (pair[0] === name) all = all === null ? pair[1] : `${all}, ${pair[1]}`;
      return all;
    }
    getSetCookie() { return this.#list.filter((pair) => pair[0] === "set-cookie").map((pair) => pair[1]); }
    has(name) { name = nameOf(name); return this.#list.some((pair) => pair[0] === name); }
    set(name, value) {
      const lower = nameOf(name);
      value = valueOf(value);
      this.#writable();
      const at = this.#list.findIndex((pair) => pair[0] === lower);
      if (at < 0) { this.#list.push([lower, value, `${name}`]); return; }
      this.#list[at] = [lower, value, this.#list[at][2]];
      this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== lower);
    }
    forEach(call, self) {
      if (typeof call !== "function") throw new TypeError("forEach takes a function");
      for (const [name, value] of this) call.call(self, value, name, this);
    }
    *entries() { for (let at = 0, all; (all = this.#sorted()), at < all.length; at++) yield [...all[at]]; }
    *keys() { for (const pair of this) yield pair[0]; }
    *values() { for (const pair of this) yield pair[1]; }
    #writable() { if (this.#isLocked) throw new TypeError("Headers: those of a response from the network cannot be changed"); }
    #sorted() {
      const names = [...new Set(this.#list.map((pair) => pair[0]))].sort();
      return names.flatMap((name) => (name === "set-cookie" ? this.getSetCookie().map((value) => [name, value]) : [[name, this.get(name)]]));
    }
    static {
      Object.defineProperty(this.prototype, Symbol.iterator, { value: this.prototype.entries, writable: true, configurable: true });
      lock = (headers) => { headers.#isLocked = true; return headers; };
      flat = (headers) => headers.#list.flatMap((entry) => [entry[2], entry[1]]);
      /** Those of a response, from name, value, name, value as the host has read them. */
      own.headersOf = (all) => {
        const headers = new Headers();
        for (let at = 0; at + 1 < all.length; at += 2) headers.#list.push([all[at].toLowerCase(), all[at + 1], all[at]]);
        return headers;
      };
    }
  }
  own.lockHeaders = lock;
  own.flatHeaders = flat;
  own.isToken = (text) => TOKEN.test(text);
  own.expose({ Headers });
}
