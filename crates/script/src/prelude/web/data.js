// Blob, File and FormData. Sources: W3C File API; WHATWG XHR, section 5; multipart as WHATWG HTML writes it.
(host, own) => {
  "use strict";
  const { ReadableStream, Date } = globalThis;
  let bytesIn;

  class Blob {
    #bytes; #type;
    constructor(parts, options) {
      if (parts !== undefined && (!own.isObject(parts) || typeof parts[Symbol.iterator] !== "function")) throw new TypeError("Blob: its parts are a list");
      const type = options?.type === undefined ? "" : `${options.type}`;
      this.#type = /^[\x20-\x7e]*$/.test(type) ? type.toLowerCase() : "";
      const isNative = options?.endings === "native";
      const all = [...(parts ?? [])].map((part) => {
        const bytes = own.bytesOf(part) ?? own.blobBytes(part);
        if (bytes !== undefined) return bytes;
        const text = own.text(part);
        return host.encode(isNative ? text.replace(/\r\n?/g, "\n") : text);
      });
      const joined = own.joined(all);
      // A part of the script's own may change later.
      this.#bytes = all.length === 1 && parts[0] !== undefined && typeof parts[0] !== "string" ? joined.slice() : joined;
    }
    get size() { return this.#bytes.byteLength; }
    get type() { return this.#type; }
    slice(start, end, type = "") {
      const size = this.size;
      const place = (at, otherwise) => (at === undefined ? otherwise : at < 0 ? Math.max(size + Math.trunc(at), 0) : Math.min(Math.trunc(at) || 0, size));
      const from = place(start, 0);
      return own.blobOf(this.#bytes.subarray(from, Math.max(place(end, size), from)), type);
    }
    async text() { return own.utf8(this.#bytes); }
    async bytes() { return this.#bytes.slice(); }
    async arrayBuffer() { return this.#bytes.slice().buffer; }
    stream() {
      const bytes = this.#bytes;
      return new ReadableStream({ start(controller) { if (bytes.byteLength > 0) controller.enqueue(bytes.slice()); controller.close(); } });
    }
    static {
      bytesIn = (value) => (own.isObject(value) && #bytes in value ? value.#bytes : undefined);
      /** A blob of bytes that nothing else changes. */
      own.blobOf = (bytes, type) => {
        const blob = new Blob(undefined, { type });
        blob.#bytes = bytes;
        return blob;
      };
    }
  }
  own.blobBytes = (value) => bytesIn(value);
  own.isBlob = (value) => bytesIn(value) !== undefined;

  class File extends Blob {
    #name; #lastModified;
    constructor(parts, name, options) {
      if (arguments.length < 2) throw new TypeError("File: it takes its parts and a name");
      super(parts, options);
      this.#name = own.text(name);
      this.#lastModified = options?.lastModified === undefined ? Date.now() : Math.trunc(Number(options.lastModified)) || 0;
    }
    get name() { return this.#name; }
    get lastModified() { return this.#lastModified; }
    get webkitRelativePath() { return ""; }
  }

  class FormData {
    #list = [];
    constructor(form) { if (form !== undefined) throw new TypeError("FormData: there are no forms here; append its entries"); }
    append(name, value, fileName) { this.#list.push(entry(name, value, fileName, arguments.length)); }
    delete(name) { name = own.text(name); this.#list = this.#list.filter((pair) => pair[0] !== name); }
    get(name) { name = own.text(name); return this.#list.find((pair) => pair[0] === name)?.[1] ?? null; }
    getAll(name) { name = own.text(name); return this.#list.filter((pair) => pair[0] === name).map((pair) => pair[1]); }
    has(name) { name = own.text(name); return this.#list.some((pair) => pair[0] === name); }
    set(name, value, fileName) {
      const added = entry(name, value, fileName, arguments.length);
      const at = this.#list.findIndex((pair) => pair[0] === added[0]);
      if (at < 0) { this.#list.push(added); return; }
      this.#list[at] = added;
      this.#list = this.#list.filter((pair, index) => index <= at || pair[0] !== added[0]);
    }
    forEach(call, self) { for (const [name, value] of this) call.call(self, value, name, this); }
    *entries() { for (let at = 0; at < this.#list.length; at++) yield [...this.#list[at]]; }
    *keys() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][0]; }
    *values() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][1]; }
    static {
      Object.defineProperty(this.prototype, Symbol.iterator, { value: this.prototype.entries, writable: true, configurable: true });
      own.isForm = (value) => own.isObject(value) && #list in value;
    }
  }
  const entry = (name, value, fileName, count) => {
    if (count < 2) throw new TypeError("FormData: an entry has a name and a value");
    name = own.text(name);
    if (!own.isBlob(value)) {
      if (count > 2) throw new TypeError("FormData: only a Blob has a file name");
      return [name, own.text(value)];
    }
    if (value instanceof File && fileName === undefined) return [name, value];
    return [name, new File([value], fileName === undefined ? "blob" : fileName, { type: value.type, lastModified: value.lastModified })];
  };

  const escaped = (text) => text.replace(/\r\n|\r|\n|"/g, (one) => (one === '"' ? "%22" : one === "\r" ? "%0D" : one === "\n" ? "%0A" : "%0D%0A"));
  const lines = (text) => text.replace(/\r\n?|\n/g, "\r\n");
  /** A form as multipart/form-data: its bytes and their type. */
  own.multipart = (form) => {
    let boundary = "----stepladder";
    for (const byte of host.randomBytes(12)) boundary += byte.toString(16).padStart(2, "0");
    const chunks = [];
    for (const [name, value] of form) {
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(lines(name))}"`;
      if (typeof value === "string") chunks.push(host.encode(`${head}\r\n\r\n${lines(value)}\r\n`));
      else {
        chunks.push(host.encode(`${head}; filename="${escaped(value.name)}"\r\nContent-Type: ${value.type || "application/octet-stream"}\r\n\r\n`));
        chunks.push(bytesIn(value), host.encode("\r\n"));
      }
    }
    chunks.push(host.encode(`--${boundary}--\r\n`));
    return [own.joined(chunks), `multipart/form-data; boundary=${boundary}`];
  };
  /** The form that a body of multipart/form-data holds. Errors: TypeError where it is not whole. */
  own.formOf = (bytes, type) => {
    const boundary = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(type);
    if (boundary === null) throw new TypeError("formData(): the type names no boundary");
    const mark = `--${boundary[1] ?? boundary[2]}`;
    const text = own.binary(bytes);
    const part = (from, to) => own.utf8(bytes.subarray(from, to));
    const form = new FormData();
    for (let at = text.indexOf(mark); at >= 0;) {
      at += mark.length;
      if (text.startsWith("--", at)) return form;
      const start = text.indexOf("\r\n\r\n", at) + 4;
      const end = text.indexOf(`\r\n${mark}`, start);
      if (start < 4 || end < 0) break;
      const head = part(at, start);
      const name = /^content-disposition:\s*form-data\b[^\r\n]*?;\s*name="([^"]*)"/im.exec(head);
      if (name === null) break;
      const file = /^content-disposition:[^\r\n]*;\s*filename="([^"]*)"/im.exec(head);
      const unescaped = (value) => value.replace(/%22|%0D|%0A/gi, decodeURIComponent);
      if (file === null) form.append(unescaped(name[1]), part(start, end));
      else {
        const kind = /^content-type:\s*([^\r\n]*)/im.exec(head)?.[1] ?? "text/plain";
        form.append(unescaped(name[1]), new File([bytes.slice(start, end)], unescaped(file[1]), { type: kind }));
      }
      at = end + 2;
    }
    throw new TypeError("formData(): the body is no whole multipart/form-data");
  };
  own.expose({ Blob, File, FormData });
}
