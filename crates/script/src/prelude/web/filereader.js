// FileReader. Source: W3C File API, section 6. The bytes are there already, so reading ends with the turn's microtasks.
(host, own) => {
  "use strict";
  const { ProgressEvent, TextDecoder, DOMException, queueMicrotask } = globalThis;
  const EMPTY = 0, LOADING = 1, DONE = 2;

  class FileReader extends EventTarget {
    #state = EMPTY; #result = null; #error = null; #round = 0;
    get readyState() { return this.#state; }
    get result() { return this.#result; }
    get error() { return this.#error; }
    readAsArrayBuffer(blob) { this.#read(blob, (bytes) => bytes.slice().buffer); }
    readAsText(blob, encoding) {
      let decoder;
      try { decoder = new TextDecoder(encoding); } catch { decoder = new TextDecoder(); }
      this.#read(blob, (bytes) => decoder.decode(bytes));
    }
    readAsDataURL(blob) { this.#read(blob, (bytes) => `data:${blob.type || "application/octet-stream"};base64,${btoa(own.binary(bytes))}`); }
    readAsBinaryString(blob) { this.#read(blob, own.binary); }
    abort() {
      if (this.#state !== LOADING) return;
      this.#round++;
      this.#state = DONE;
      this.#result = null;
      this.#tell("abort", 0);
      this.#tell("loadend", 0);
    }
    #read(blob, made) {
      const bytes = own.blobBytes(blob);
      if (bytes === undefined) throw new TypeError("a FileReader reads a Blob");
      if (this.#state === LOADING) throw new DOMException("the FileReader is reading already", "InvalidStateError");
      this.#state = LOADING;
      this.#result = this.#error = null;
      const round = ++this.#round;
      queueMicrotask(() => {
        if (round !== this.#round) return;
        this.#tell("loadstart", 0);
        if (round !== this.#round) return;
        this.#state = DONE;
        this.#result = made(bytes);
        this.#tell("load", bytes.byteLength);
        // A listener may have begun to read another one.
        if (this.#state !== LOADING) this.#tell("loadend", bytes.byteLength);
      });
    }
    #tell(type, loaded) { own.fire(this, new ProgressEvent(type, { lengthComputable: true, loaded, total: loaded })); }
  }
  own.handlers(FileReader, ["loadstart", "progress", "load", "abort", "error", "loadend"]);
  own.constants(FileReader, { EMPTY, LOADING, DONE });
  own.expose({ FileReader });
}
