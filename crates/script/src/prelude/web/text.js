// TextEncoder and TextDecoder. Source: WHATWG Encoding; utf-8, utf-16le and windows-1252 (which "latin1" means there).
(host, own) => {
  "use strict";
  const LABELS = new Map();
  for (const [encoding, labels] of Object.entries({
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 "
      + "iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
  })) for (const label of labels.split(" ")) LABELS.set(label, encoding);
  // Code points of the bytes 0x80 to 0x9f in windows-1252.
  const UPPER = "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f"
    + "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";
  const UNITS_AT_ONCE = 8192;

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return host.encode(own.text(text)); }
    encodeInto(text, into) {
      if (!(into instanceof Uint8Array)) throw new TypeError("encodeInto writes into a Uint8Array");
      text = own.text(text);
      const bytes = host.encode(text);
      let written = Math.min(bytes.length, into.length);
      // No character is written in part.
      while (written > 0 && written < bytes.length && (bytes[written] & 0xc0) === 0x80) written--;
      into.set(written === bytes.length ? bytes : bytes.subarray(0, written));
      const read = written === bytes.length ? text.length : host.decode(bytes.subarray(0, written), false).length;
      return { read, written };
    }
  }

  class TextDecoder {
    #encoding; #fatal; #ignoreBOM; #rest = null; #isBomSeen = false;
    constructor(label = "utf-8", options = undefined) {
      this.#encoding = LABELS.get(`${label}`.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "").toLowerCase());
      if (this.#encoding === undefined) throw new RangeError(`TextDecoder: utf-8, utf-16le and latin1 are known, not ${label}`);
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(data, options) {
      let bytes = data === undefined ? new Uint8Array(0) : own.bytesOf(data);
      if (bytes === undefined) throw new TypeError("decode() takes an ArrayBuffer or a view of one");
      const isStream = !!options?.stream;
      if (this.#rest !== null) { bytes = own.joined([this.#rest, bytes]); this.#rest = null; }
      if (isStream) {
        const kept = this.#encoding === "utf-8" ? host.incomplete(bytes) : this.#encoding === "utf-16le" ? incompleteUnits(bytes) : 0;
        if (kept > 0) { this.#rest = bytes.slice(bytes.length - kept); bytes = bytes.subarray(0, bytes.length - kept); }
      }
      let text;
      try {
        text = this.#decoded(bytes);
      } catch (error) {
        this.#rest = null;
        this.#isBomSeen = false;
        throw error;
      }
      if (!this.#isBomSeen && text.length > 0) {
        if (!this.#ignoreBOM && this.#encoding !== "windows-1252" && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
        this.#isBomSeen = true;
      }
      if (!isStream) this.#isBomSeen = false;
      return text;
    }
    #decoded(bytes) {
      if (this.#encoding === "utf-8") {
        const text = host.decode(bytes, this.#fatal);
        if (text === undefined) throw new TypeError("decode(): the bytes are not UTF-8");
        return text;
      }
      if (this.#encoding === "windows-1252") {
        const text = units(bytes);
        return text.replace(/[\x80-\x9f]/g, (one) => UPPER[one.charCodeAt(0) - 0x80]);
      }
      const isOdd = bytes.length % 2 === 1;
      const even = new Uint16Array(bytes.length >> 1);
      for (let at = 0; at < even.length; at++) even[at] = bytes[2 * at] | (bytes[2 * at + 1] << 8);
      const text = units(even);
      if (this.#fatal && (isOdd || !text.isWellFormed())) throw new TypeError("decode(): the bytes are not UTF-16");
      // A first half and the odd byte after it are one error.
      return text.toWellFormed() + (isOdd && !/[\ud800-\udbff]$/.test(text) ? "\ufffd" : "");
    }
  }
  /** The units of an array as characters: of bytes, a binary string. */
  const units = own.binary = (all) => {
    let text = "";
    for (let at = 0; at < all.length; at += UNITS_AT_ONCE) text += String.fromCharCode.apply(null, all.subarray(at, at + UNITS_AT_ONCE));
    return text;
  };
  /** An odd byte, and before it the first half of a pair. */
  const incompleteUnits = (bytes) => {
    const odd = bytes.length % 2;
    const last = bytes.length - odd - 1;
    return odd + (last > 0 && (bytes[last] & 0xfc) === 0xd8 ? 2 : 0);
  };
  /** UTF-8 as bodies and blobs are decoded: replaced where wrong, without its byte order mark. */
  own.utf8 = (bytes) => {
    const text = host.decode(bytes, false);
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  };
  own.expose({ TextEncoder, TextDecoder });
}
