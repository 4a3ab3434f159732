// What the files of the prelude share: whose turn it is, durations, and how errors and values are shown.
//
// One realm serves all bots of a worker. `own.turn` is the state of the bot whose turn it is; the host drains the microtasks
// of a turn before the next one begins, so every continuation runs with its own bot. `own.now` is the instant of the turn in
// ns of the engine's clock; nothing here reads another clock. Scripts reach neither `host` nor `own`.
// Each file takes the interfaces that it needs when it is loaded, so that a polyfill in a script replaces the script's only.
(host, own) => {
  "use strict";
  const QUOTED_CHARACTERS = 200;

  /** State of the bot whose turn it is; undefined while the script itself is loaded. */
  own.turn = undefined;
  own.now = 0;
  own.MS_NS = 1e6;

  own.here = (what) => {
    if (own.turn === undefined) throw new TypeError(`${what} outside a bot: call it in the default function, not while the file is loaded`);
    return own.turn;
  };

  const UNITS = { __proto__: null, ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9 };
  /** A duration in ns: "50ms", "2s", or a number of ms. */
  own.ns = (time, what) => {
    if (typeof time === "number" && time >= 0 && Number.isFinite(time)) return time * own.MS_NS;
    const parts = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h)\s*$/.exec(String(time));
    if (parts === null) throw new TypeError(`${what}: ${JSON.stringify(time)} is no duration; write "50ms", "2s" or a number of milliseconds`);
    return Number(parts[1]) * UNITS[parts[2]];
  };

  /** A message as an error quotes it. */
  own.quoted = (data) => {
    const text = typeof data === "string" ? data : `${data.byteLength ?? data.size} bytes`;
    return text.length > QUOTED_CHARACTERS ? text.slice(0, QUOTED_CHARACTERS) + "…" : text;
  };

  own.shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    try { return JSON.stringify(value) ?? String(value); } catch { /* a cycle, or a toJSON that throws */ }
    try { return String(value); } catch { return "a value that cannot be shown"; }
  };

  /** What a callback of the script throws is an error of its bot and ends nothing else. */
  own.thrown = (error) => {
    if (error instanceof Error) host.thrown(text(`${error.name}: ${error.message}`), text(error.stack ?? ""));
    else host.thrown(typeof error === "string" ? text(error) : text(`a value that is no Error was thrown: ${own.shown(error)}`), "");
  };
  own.guard = (call) => {
    try { return call(); } catch (error) { own.thrown(error); }
  };

  /** A string as the Web's interfaces take it: half a surrogate pair becomes U+FFFD, so that the host gets UTF-8. */
  const text = (value) => `${value}`.toWellFormed();
  own.text = text;

  /** The bytes of a buffer or a view of one, not copied; undefined for anything else. */
  own.bytesOf = (data) => {
    if (data instanceof Uint8Array) return data;
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (data instanceof ArrayBuffer) return new Uint8Array(data);
    return undefined;
  };

  own.joined = (chunks) => {
    if (chunks.length === 1) return chunks[0];
    let size = 0;
    for (const chunk of chunks) size += chunk.byteLength;
    const all = new Uint8Array(size);
    let at = 0;
    for (const chunk of chunks) { all.set(chunk, at); at += chunk.byteLength; }
    return all;
  };

  /** Whether its members can be read as an init dictionary. */
  own.isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  /** Interfaces whose instances cannot be cloned or sent. */
  own.interfaces = [];
  /** Globals like the built-in ones: not enumerable, but a script may replace them. */
  own.expose = (globals) => {
    for (const [name, value] of Object.entries(globals)) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
      if (typeof value === "function" && value.prototype !== undefined && name === value.name) {
        Object.defineProperty(value.prototype, Symbol.toStringTag, { value: name, configurable: true });
        own.interfaces.push(value);
      }
    }
  };
  own.constants = (target, values) => {
    for (const [name, value] of Object.entries(values)) {
      Object.defineProperty(target, name, { value, enumerable: true });
      Object.defineProperty(target.prototype, name, { value, enumerable: true });
    }
  };
}
