// Bodies of requests and responses. Source: WHATWG Fetch, sections 2.2.4 and 5.3.
(host, own) => {
  "use strict";
  const { FormData, ReadableStream } = globalThis;

  /** Parts of a body as they come in from the host; read as a whole or as a stream, whichever is asked for. */
  class Inflow {
    #chunks = []; #isOver = false; #error = undefined; #whole = null; #controller = null; #onCancel;
    constructor(onCancel) { this.#onCancel = onCancel; }
    part(bytes) {
      if (this.#isOver) return;
      if (this.#controller !== null) this.#controller.enqueue(bytes); else this.#chunks.push(bytes);
    }
    end() {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#controller?.close();
      this.#whole?.resolve(own.joined(this.#chunks));
    }
    fail(error) {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#error = [error];
      this.#controller?.error(error);
      this.#whole?.reject(error);
    }
    whole() {
      if (this.#error !== undefined) return Promise.reject(this.#error[0]);
      if (this.#isOver) return Promise.resolve(own.joined(this.#chunks));
      this.#whole = Promise.withResolvers();
      return this.#whole.promise;
    }
    stream() {
      return new ReadableStream({
        start: (controller) => {
          for (const chunk of this.#chunks.splice(0)) controller.enqueue(chunk);
          if (this.#error !== undefined) controller.error(this.#error[0]);
          else if (this.#isOver) controller.close();
          else this.#controller = controller;
        },
        cancel: () => {
          if (this.#isOver) return;
          this.#isOver = true;
          this.#onCancel();
        },
      });
    }
  }
  own.inflow = (onCancel) => new Inflow(onCancel);

  /** What a script gives as a body: its bytes or its stream, and the type that goes with it. */
  own.extracted = (body) => {
    if (body === undefined || body === null) return { bytes: undefined, stream: undefined, type: undefined };
    if (typeof body === "string") return { bytes: host.encode(body.toWellFormed()), stream: undefined, type: "text/plain;charset=UTF-8" };
    const view = own.bytesOf(body);
    if (view !== undefined) return { bytes: view.slice(), stream: undefined, type: undefined };
    const blob = own.blobBytes(body);
    if (blob !== undefined) return { bytes: blob, stream: undefined, type: body.type === "" ? undefined : body.type };
    if (own.isParams(body)) return { bytes: host.encode(body.toString()), stream: undefined, type: "application/x-www-form-urlencoded;charset=UTF-8" };
    if (own.isForm(body)) {
      const [bytes, type] = own.multipart(body);
      return { bytes, stream: undefined, type };
    }
    if (own.isStream(body)) {
      if (body.locked || own.isDisturbed(body)) throw new TypeError("the stream that is to be a body has been read from, or is locked");
      return { bytes: undefined, stream: body, type: undefined };
    }
    return { bytes: host.encode(own.text(body)), stream: undefined, type: "text/plain;charset=UTF-8" };
  };

  own.collected = async (stream) => {
    const chunks = [];
    for await (const chunk of stream) {
      const bytes = own.bytesOf(chunk);
      if (bytes === undefined) throw new TypeError("a stream that is a body gives Uint8Arrays");
      chunks.push(bytes);
    }
    return own.joined(chunks);
  };

  /** What Request and Response have in common. */
  class Body {
    #bytes; #stream; #inflow; #isUsed = false;
    constructor(bytes, stream, inflow) {
      this.#bytes = bytes;
      this.#stream = stream;
      this.#inflow = inflow;
    }
    get body() {
      if (this.#stream === undefined && this.#inflow !== undefined) {
        this.#stream = this.#inflow.stream();
        this.#inflow = undefined;
      } else if (this.#stream === undefined && this.#bytes !== undefined) {
        const bytes = this.#bytes;
        this.#stream = new ReadableStream({ start(controller) { if (bytes.byteLength > 0) controller.enqueue(bytes.slice()); controller.close(); } });
        // Read as a whole before: the stream stands for a body that is used up.
        if (this.#isUsed) this.#stream.cancel();
        this.#bytes = undefined;
      }
      return this.#stream ?? null;
    }
    get bodyUsed() { return this.#isUsed || (this.#stream !== undefined && own.isDisturbed(this.#stream)); }
    async arrayBuffer() { return (await this.#whole()).slice().buffer; }
    async bytes() { return (await this.#whole()).slice(); }
    async text() { return own.utf8(await this.#whole()); }
    async json() { return JSON.parse(own.utf8(await this.#whole())); }
    async blob() { return own.blobOf((await this.#whole()).slice(), this.headers.get("content-type") ?? ""); }
    async formData() {
      const type = this.headers.get("content-type") ?? "";
      if (/^multipart\/form-data\b/i.test(type)) return own.formOf(await this.#whole(), type);
      if (!/^application\/x-www-form-urlencoded\b/i.test(type)) throw new TypeError(`formData() reads multipart/form-data and application/x-www-form-urlencoded, not ${type || "a body without a type"}`);
      const form = new FormData();
      for (const [name, value] of own.formPairs(own.utf8(await this.#whole()))) form.append(name, value);
      return form;
    }
    #whole() {
      if (this.bodyUsed) return Promise.reject(new TypeError("the body has been read already"));
      if (this.#stream?.locked) return Promise.reject(new TypeError("the body is locked to a reader"));
      const hasBody = this.#bytes !== undefined || this.#stream !== undefined || this.#inflow !== undefined;
      this.#isUsed = hasBody;
      if (!hasBody) return Promise.resolve(new Uint8Array(0));
      if (this.#stream !== undefined) return own.collected(this.#stream);
      return this.#inflow === undefined ? Promise.resolve(this.#bytes) : this.#inflow.whole();
    }
    static {
      /** Bytes or stream for another Request or Response with the same body. */
      own.sharedBody = (body, what) => {
        if (body.bodyUsed || body.#stream?.locked) throw new TypeError(`${what}: the body has been read already, or is locked`);
        if (body.#bytes !== undefined) return { bytes: body.#bytes, stream: undefined };
        if (body.body === null) return { bytes: undefined, stream: undefined };
        const [mine, other] = body.#stream.tee();
        body.#stream = mine;
        return { bytes: undefined, stream: other };
      };
      /** Takes the body away: what it was sent with, or a promise of it. */
      own.takenBody = (body) => {
        const { bytes } = own.heldBody(body);
        if (bytes !== undefined || body.body === null) { body.#isUsed = bytes !== undefined; return bytes; }
        return body.#whole();
      };
      own.heldBody = (body) => ({ bytes: body.#bytes });
    }
  }
  own.Body = Body;
}
