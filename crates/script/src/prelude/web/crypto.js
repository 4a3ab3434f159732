// crypto: chance from the seed of the run, digests and HMAC. Source: W3C Web Cryptography. The host computes (crate `ring`).
(host, own) => {
  "use strict";
  const { DOMException } = globalThis;
  const RANDOM_BYTES_MAX = 65536;
  const HASHES = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
  const INTERNAL = Symbol("internal");
  const failed = (words, name) => new DOMException(words, name);
  let partsOf;

  const hashOf = (algorithm) => {
    const name = `${own.isObject(algorithm) ? algorithm.name : algorithm}`.toUpperCase();
    if (!HASHES.includes(name)) throw failed(`the digest ${own.quoted(name)} is not built; ${HASHES.join(", ")} are`, "NotSupportedError");
    return name;
  };
  const isHmac = (algorithm) => `${own.isObject(algorithm) ? algorithm.name : algorithm}`.toUpperCase() === "HMAC";
  const needHmac = (algorithm) => { if (!isHmac(algorithm)) throw failed("of keys only those of HMAC are built", "NotSupportedError"); };
  const bytes = (data, what) => {
    const view = own.bytesOf(data);
    if (view === undefined) throw new TypeError(`${what}: the data is an ArrayBuffer or a view of one`);
    return view;
  };
  const fromBase64Url = (text) => Uint8Array.from(atob(`${text}`.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const toBase64Url = (all) => btoa(Array.from(all, (one) => String.fromCharCode(one)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  class CryptoKey {
    #bytes; #hash; #extractable; #usages;
    constructor(token, all, hash, extractable, usages) {
      if (token !== INTERNAL) throw new TypeError("Illegal constructor");
      this.#bytes = all;
      this.#hash = hash;
      this.#extractable = extractable;
      this.#usages = usages;
    }
    get type() { return "secret"; }
    get extractable() { return this.#extractable; }
    get algorithm() { return { name: "HMAC", hash: { name: this.#hash }, length: this.#bytes.length * 8 }; }
    get usages() { return [...this.#usages]; }
    static {
      partsOf = (key, usage) => {
        if (!own.isObject(key) || !(#hash in key)) throw new TypeError("the key is no CryptoKey");
        if (usage !== undefined && !key.#usages.includes(usage)) throw failed(`the key is not for "${usage}"`, "InvalidAccessError");
        return { bytes: key.#bytes, hash: key.#hash };
      };
    }
  }

  const key = (all, algorithm, extractable, usages) => {
    const wanted = [...usages].map(String);
    if (wanted.length === 0 || wanted.some((one) => one !== "sign" && one !== "verify")) throw failed('usages of a key of HMAC are "sign" and "verify"', "SyntaxError");
    if (all.length === 0) throw failed("the key is empty", "DataError");
    return new CryptoKey(INTERNAL, all, hashOf(algorithm.hash), !!extractable, wanted);
  };
  const subtle = {
    async digest(algorithm, data) { return host.digest(hashOf(algorithm), bytes(data, "digest()")).buffer; },
    async importKey(format, data, algorithm, extractable, usages) {
      needHmac(algorithm);
      if (format === "raw") return key(bytes(data, "importKey()").slice(), algorithm, extractable, usages);
      if (format !== "jwk") throw failed(`the format ${own.quoted(`${format}`)} is not built; "raw" and "jwk" are`, "NotSupportedError");
      if (data?.kty !== "oct" || typeof data.k !== "string") throw failed("the JWK is no symmetric key", "DataError");
      return key(fromBase64Url(data.k), algorithm, extractable, usages);
    },
    async exportKey(format, given) {
      const { bytes: all, hash } = partsOf(given);
      if (!given.extractable) throw failed("the key is not extractable", "InvalidAccessError");
      if (format === "raw") return all.slice().buffer;
      if (format === "jwk") return { kty: "oct", k: toBase64Url(all), alg: `HS${hash.slice(4)}`, key_ops: given.usages, ext: true };
      throw failed(`the format ${own.quoted(`${format}`)} is not built`, "NotSupportedError");
    },
    async generateKey(algorithm, extractable, usages) {
      needHmac(algorithm);
      const bits = algorithm.length ?? (/^SHA-(1|256)$/.test(hashOf(algorithm.hash)) ? 512 : 1024);
      if (!(bits > 0 && bits <= 8 * RANDOM_BYTES_MAX)) throw failed("the length of the key is no number of bits", "OperationError");
      return key(host.randomBytes(Math.ceil(bits / 8)), algorithm, extractable, usages);
    },
    async sign(algorithm, given, data) {
      needHmac(algorithm);
      const { bytes: secret, hash } = partsOf(given, "sign");
      return host.hmac(hash, secret, bytes(data, "sign()")).buffer;
    },
    async verify(algorithm, given, signature, data) {
      needHmac(algorithm);
      const { bytes: secret, hash } = partsOf(given, "verify");
      const expected = host.hmac(hash, secret, bytes(data, "verify()"));
      const found = bytes(signature, "verify()");
      return found.length === expected.length && expected.every((byte, at) => byte === found[at]);
    },
  };

  const INTEGERS = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "BigInt64Array", "BigUint64Array"];
  const crypto = {
    subtle,
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || !INTEGERS.includes(array[Symbol.toStringTag])) throw failed("getRandomValues() takes a typed array of integers", "TypeMismatchError");
      if (array.byteLength > RANDOM_BYTES_MAX) throw failed(`getRandomValues() gives at most ${RANDOM_BYTES_MAX} bytes at once`, "QuotaExceededError");
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.randomBytes(array.byteLength));
      return array;
    },
    randomUUID() {
      const all = host.randomBytes(16);
      all[6] = (all[6] & 0x0f) | 0x40;
      all[8] = (all[8] & 0x3f) | 0x80;
      const hex = Array.from(all, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    },
  };
  Math.random = () => host.random();
  own.expose({ crypto, CryptoKey });
}
