// structuredClone. Source: WHATWG HTML, section 2.7.
(host, own) => {
  "use strict";
  const { DOMException, File } = globalThis;
  const ERRORS = new Set([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]);
  const UNCLONABLE = [Promise, WeakMap, WeakSet, WeakRef, FinalizationRegistry];
  const refused = (what) => new DOMException(`${what} could not be cloned`, "DataCloneError");
  const BOXED = [Boolean, Number, String, BigInt];

  const cloned = (value, seen) => {
    if (typeof value === "symbol") throw refused(String(value));
    if (typeof value === "function") throw refused(`the function ${value.name || "without a name"}`);
    if (typeof value !== "object" || value === null) return value;
    const known = seen.get(value);
    if (known !== undefined) return known;
    const keep = (copy) => { seen.set(value, copy); return copy; };
    if (Array.isArray(value)) {
      const copy = keep(new Array(value.length));
      return members(value, copy, seen);
    }
    const proto = Object.getPrototypeOf(value);
    if (proto === Object.prototype || proto === null) return members(value, keep({}), seen);
    if (value instanceof Date) return keep(new Date(Date.prototype.getTime.call(value)));
    if (value instanceof Map) {
      const copy = keep(new Map());
      const entries = [];
      Map.prototype.forEach.call(value, (item, key) => entries.push(key, item));
      for (let at = 0; at < entries.length; at += 2) copy.set(cloned(entries[at], seen), cloned(entries[at + 1], seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      const items = [];
      Set.prototype.forEach.call(value, (item) => items.push(item));
      for (const item of items) copy.add(cloned(item, seen));
      return copy;
    }
    if (value instanceof ArrayBuffer) return keep(ArrayBuffer.prototype.slice.call(value, 0));
    if (ArrayBuffer.isView(value)) {
      const buffer = cloned(value.buffer, seen);
      const View = value instanceof DataView ? DataView : globalThis[value[Symbol.toStringTag]];
      return keep(new View(buffer, value.byteOffset, View === DataView ? value.byteLength : value.length));
    }
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    for (const Boxed of BOXED) if (value instanceof Boxed) return keep(Object(Boxed.prototype.valueOf.call(value)));
    if (value instanceof Error && !(value instanceof DOMException)) return error(value, seen, keep);
    if (value instanceof DOMException) return keep(new DOMException(value.message, value.name));
    if (own.isBlob(value)) {
      const bytes = own.blobBytes(value);
      return keep(value instanceof File ? new File([bytes], value.name, { type: value.type, lastModified: value.lastModified }) : own.blobOf(bytes, value.type));
    }
    if (UNCLONABLE.some((one) => value instanceof one) || own.interfaces.some((one) => value instanceof one)) {
      throw refused(`an object of ${value.constructor?.name ?? "an interface"}`);
    }
    return members(value, keep({}), seen);
  };
  const members = (from, to, seen) => {
    for (const key of Object.keys(from)) {
      // Defined, not assigned: a member named __proto__ stays a member.
      if (Object.hasOwn(from, key)) Object.defineProperty(to, key, { value: cloned(from[key], seen), writable: true, enumerable: true, configurable: true });
    }
    return to;
  };
  const error = (value, seen, keep) => {
    const Kind = [...ERRORS].find((one) => one.name === `${value.name}`) ?? Error;
    const fresh = keep(Reflect.construct(Error, [], Kind));
    const define = (name, item) => Object.defineProperty(fresh, name, { value: item, writable: true, configurable: true, enumerable: false });
    const message = Object.getOwnPropertyDescriptor(value, "message");
    if (message !== undefined && "value" in message) define("message", `${message.value}`);
    define("stack", `${value.stack ?? ""}`);
    if (Object.hasOwn(value, "cause")) define("cause", cloned(value.cause, seen));
    return fresh;
  };

  const structuredClone = (value, options) => {
    const transfer = options?.transfer === undefined ? [] : [...options.transfer];
    const seen = new Map();
    for (const one of transfer) {
      if (!(one instanceof ArrayBuffer)) throw refused("what is to be transferred is no ArrayBuffer; it");
      if (one.detached || transfer.indexOf(one) !== transfer.lastIndexOf(one)) throw refused("an ArrayBuffer that is detached, or is transferred twice,");
    }
    // Cloned first: where that fails, nothing has been taken away.
    for (const one of transfer) seen.set(one, ArrayBuffer.prototype.slice.call(one, 0));
    const copy = cloned(value, seen);
    for (const one of transfer) one.transfer();
    return copy;
  };
  own.expose({ structuredClone });
}
