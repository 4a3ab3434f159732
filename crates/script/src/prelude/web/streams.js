// ReadableStream with its default reader. Source: WHATWG Streams, section 4. There is no BYOB reader and no piping: bodies of
// responses are what it is for.
(host, own) => {
  "use strict";
  const READABLE = 0, CLOSED = 1, ERRORED = 2;
  const INTERNAL = Symbol("internal");
  let readFrom, cancelStream, controllerOf;

  class ReadableStreamDefaultController {
    #stream;
    constructor(token, stream) {
      if (token !== INTERNAL) throw new TypeError("Illegal constructor");
      this.#stream = stream;
    }
    get desiredSize() { return controllerOf.desired(this.#stream); }
    enqueue(chunk) { controllerOf.enqueue(this.#stream, chunk); }
    close() { controllerOf.close(this.#stream); }
    error(error) { controllerOf.error(this.#stream, error); }
  }

  class ReadableStream {
    #state = READABLE; #error = undefined; #reader = null; #isDisturbed = false;
    #queue = []; #queued = 0; #isClosing = false; #isPulling = false; #pullsAgain = false; #isStarted = false;
    #source; #limit; #size; #controller;
    constructor(source, strategy) {
      this.#source = source ?? {};
      if (!own.isObject(this.#source)) throw new TypeError("ReadableStream: its source is an object");
      const type = this.#source.type;
      if (type !== undefined && `${type}` !== "bytes") throw new RangeError(`ReadableStream: the type ${type} is not known`);
      this.#limit = strategy?.highWaterMark === undefined ? (type === undefined ? 1 : 0) : Number(strategy.highWaterMark);
      if (!(this.#limit >= 0)) throw new RangeError("ReadableStream: highWaterMark is a number from 0");
      this.#size = strategy?.size ?? (() => 1);
      this.#controller = new ReadableStreamDefaultController(INTERNAL, this);
      const started = this.#source.start?.(this.#controller);
      Promise.resolve(started).then(() => { this.#isStarted = true; this.#pull(); }, (error) => this.#fail(error));
    }
    get locked() { return this.#reader !== null; }
    getReader(options) {
      if (options?.mode !== undefined) throw new TypeError("getReader: only the default reader is there, no BYOB reader");
      return new ReadableStreamDefaultReader(this);
    }
    cancel(reason) {
      if (this.locked) return Promise.reject(new TypeError("cancel(): the stream is locked to a reader"));
      return cancelStream(this, reason);
    }
    tee() {
      const reader = this.getReader();
      const branches = [];
      const cancelled = [undefined, undefined];
      let isReading = false;
      const whenCancelled = Promise.withResolvers();
      const pull = async () => {
        if (isReading) return;
        isReading = true;
        try {
          const { value, done } = await reader.read();
          isReading = false;
          for (const [at, branch] of branches.entries()) {
            if (cancelled[at] !== undefined) continue;
            if (done) branch.close();
            // Bytes are copied, so that one branch does not change what the other reads.
            else branch.enqueue(at === 1 && value instanceof Uint8Array ? value.slice() : value);
          }
          if (done) whenCancelled.resolve();
        } catch (error) {
          isReading = false;
          for (const [at, branch] of branches.entries()) if (cancelled[at] === undefined) branch.error(error);
          whenCancelled.resolve();
        }
      };
      const branch = (at) => new ReadableStream({
        start(controller) { branches[at] = controller; },
        pull,
        cancel(reason) {
          cancelled[at] = [reason];
          if (cancelled[0] !== undefined && cancelled[1] !== undefined) whenCancelled.resolve(reader.cancel([cancelled[0][0], cancelled[1][0]]));
          return whenCancelled.promise;
        },
      }, { highWaterMark: 0 });
      return [branch(0), branch(1)];
    }
    async *values(options) {
      const reader = this.getReader();
      let isOver = false;
      try {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) { isOver = true; return; }
          yield value;
        }
      } catch (error) {
        isOver = true;
        throw error;
      } finally {
        if (!isOver && !options?.preventCancel) await reader.cancel();
        reader.releaseLock();
      }
    }
    static from(items) {
      const iterator = items[Symbol.asyncIterator]?.() ?? items[Symbol.iterator]();
      return new ReadableStream({
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close(); else controller.enqueue(await value);
        },
        async cancel(reason) { await iterator.return?.(reason); },
      }, { highWaterMark: 0 });
    }
    #desired() {
      if (this.#state === ERRORED) return null;
      return this.#state === CLOSED ? 0 : this.#limit - this.#queued;
    }
    #pull() {
      const wanted = this.#state === READABLE && this.#isStarted && !this.#isClosing && (this.#reader?.[WAITS]() || this.#desired() > 0);
      if (!wanted || this.#source.pull === undefined) return;
      if (this.#isPulling) { this.#pullsAgain = true; return; }
      this.#isPulling = true;
      let pulled;
      try { pulled = this.#source.pull(this.#controller); } catch (error) { this.#fail(error); return; }
      Promise.resolve(pulled).then(() => {
        this.#isPulling = false;
        if (this.#pullsAgain) { this.#pullsAgain = false; this.#pull(); }
      }, (error) => this.#fail(error));
    }
    #finish() {
      this.#state = CLOSED;
      this.#reader?.[CLOSE]();
    }
    #fail(error) {
      if (this.#state !== READABLE) return;
      this.#state = ERRORED;
      this.#error = error;
      this.#queue = [];
      this.#reader?.[FAIL](error);
    }
    static {
      Object.defineProperty(this.prototype, Symbol.asyncIterator, { value: this.prototype.values, writable: true, configurable: true });
      controllerOf = {
        desired: (stream) => stream.#desired(),
        enqueue(stream, chunk) {
          if (stream.#state !== READABLE || stream.#isClosing) throw new TypeError("enqueue(): the stream is closed or has failed");
          if (stream.#reader?.[GIVE](chunk)) { stream.#pull(); return; }
          let size;
          try { size = Number(stream.#size(chunk)); } catch (error) { stream.#fail(error); throw error; }
          stream.#queue.push([chunk, size]);
          stream.#queued += size;
          stream.#pull();
        },
        close(stream) {
          if (stream.#state !== READABLE || stream.#isClosing) throw new TypeError("close(): the stream is closed already or has failed");
          stream.#isClosing = true;
          if (stream.#queue.length === 0) stream.#finish();
        },
        error: (stream, error) => stream.#fail(error),
      };
      own.attach = (stream, reader) => {
        if (!own.isStream(stream)) throw new TypeError("a reader reads a ReadableStream");
        if (stream.#reader !== null) throw new TypeError("getReader(): the stream is locked to another reader");
        stream.#reader = reader;
        return [stream.#state, stream.#error];
      };
      own.detach = (stream) => { stream.#reader = null; };
      /** Takes a chunk that is there: `[chunk]`; else the state that the reader waits in. */
      readFrom = (stream) => {
        stream.#isDisturbed = true;
        if (stream.#queue.length > 0) {
          const [chunk, size] = stream.#queue.shift();
          stream.#queued -= size;
          if (stream.#queue.length === 0 && stream.#isClosing) stream.#finish(); else stream.#pull();
          return [chunk];
        }
        return stream.#state;
      };
      own.pullStream = (stream) => stream.#pull();
      own.errorOf = (stream) => stream.#error;
      cancelStream = (stream, reason) => {
        stream.#isDisturbed = true;
        if (stream.#state === CLOSED) return Promise.resolve();
        if (stream.#state === ERRORED) return Promise.reject(stream.#error);
        stream.#queue = [];
        stream.#queued = 0;
        stream.#finish();
        return (async () => { await stream.#source.cancel?.(reason); })();
      };
      own.isStream = (value) => own.isObject(value) && #isDisturbed in value;
      own.isDisturbed = (stream) => stream.#isDisturbed;
    }
  }
  const WAITS = Symbol("waits"), GIVE = Symbol("give"), CLOSE = Symbol("close"), FAIL = Symbol("fail");

  class ReadableStreamDefaultReader {
    #stream; #requests = []; #closed;
    constructor(stream) {
      const [state, error] = own.attach(stream, this);
      this.#stream = stream;
      this.#closed = Promise.withResolvers();
      // Nobody has to wait for `closed`.
      this.#closed.promise.catch(() => {});
      if (state === CLOSED) this.#closed.resolve();
      else if (state === ERRORED) this.#closed.reject(error);
    }
    get closed() { return this.#closed.promise; }
    read() {
      if (this.#stream === null) return Promise.reject(new TypeError("read(): the reader has released its stream"));
      const found = readFrom(this.#stream);
      if (found === CLOSED) return Promise.resolve({ value: undefined, done: true });
      if (found === ERRORED) return Promise.reject(own.errorOf(this.#stream));
      if (found !== READABLE) return Promise.resolve({ value: found[0], done: false });
      return new Promise((resolve, reject) => {
        this.#requests.push({ resolve, reject });
        own.pullStream(this.#stream);
      });
    }
    cancel(reason) {
      if (this.#stream === null) return Promise.reject(new TypeError("cancel(): the reader has released its stream"));
      return cancelStream(this.#stream, reason);
    }
    releaseLock() {
      if (this.#stream === null) return;
      own.detach(this.#stream);
      this.#stream = null;
      const error = new TypeError("the reader has released its stream");
      for (const request of this.#requests.splice(0)) request.reject(error);
      this.#closed.reject(error);
      this.#closed = { promise: Promise.reject(error), resolve() {}, reject() {} };
      this.#closed.promise.catch(() => {});
    }
    [WAITS]() { return this.#requests.length > 0; }
    [GIVE](value) {
      const request = this.#requests.shift();
      request?.resolve({ value, done: false });
      return request !== undefined;
    }
    [CLOSE]() {
      for (const request of this.#requests.splice(0)) request.resolve({ value: undefined, done: true });
      this.#closed.resolve();
    }
    [FAIL](error) {
      for (const request of this.#requests.splice(0)) request.reject(error);
      this.#closed.reject(error);
    }
  }
  own.expose({ ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController });
}
