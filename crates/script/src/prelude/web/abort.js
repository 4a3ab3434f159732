// AbortController and AbortSignal. Source: WHATWG DOM, section 3.
(host, own) => {
  "use strict";
  const { Event, DOMException } = globalThis;
  const INTERNAL = Symbol("internal");
  let abort;

  class AbortSignal extends EventTarget {
    #aborted = false; #reason = undefined; #algorithms = null; #sources = null; #dependents = null;
    constructor(token) {
      super();
      if (token !== INTERNAL) throw new TypeError("Illegal constructor: an AbortSignal comes from an AbortController");
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static abort(reason) {
      const signal = new AbortSignal(INTERNAL);
      abort(signal, reason);
      return signal;
    }
    static timeout(ms) {
      const signal = new AbortSignal(INTERNAL);
      if (!(Number(ms) >= 0)) throw new TypeError("AbortSignal.timeout takes a number of milliseconds");
      own.timer(own.now + Number(ms) * own.MS_NS, () => abort(signal, new DOMException("the time is over", "TimeoutError")));
      return signal;
    }
    static any(signals) {
      const all = [...signals];
      if (!all.every(own.isSignal)) throw new TypeError("AbortSignal.any takes AbortSignals");
      const signal = new AbortSignal(INTERNAL);
      const first = all.find((one) => one.aborted);
      if (first !== undefined) abort(signal, first.reason);
      // A signal that depends on others is replaced by them, so that the order is that of the first cause.
      else signal.#sources = new Set(all.flatMap((one) => (one.#sources === null ? [one] : [...one.#sources])));
      for (const source of signal.#sources ?? []) (source.#dependents ??= new Set()).add(signal);
      return signal;
    }
    static {
      abort = (signal, reason) => {
        if (signal.#aborted) return;
        const all = [signal];
        for (const dependent of signal.#dependents ?? []) if (!dependent.#aborted) all.push(dependent);
        reason = reason === undefined ? new DOMException("it was aborted", "AbortError") : reason;
        for (const one of all) { one.#aborted = true; one.#reason = reason; }
        for (const one of all) {
          const algorithms = one.#algorithms ?? [];
          one.#algorithms = one.#dependents = null;
          // A source that lives on does not keep it.
          for (const source of one.#sources ?? []) source.#dependents?.delete(one);
          for (const algorithm of algorithms) algorithm();
          own.fire(one, new Event("abort"));
        }
      };
      own.isSignal = (value) => own.isObject(value) && #algorithms in value;
      /** Calls once when the signal aborts; before its listeners hear of it. */
      own.onAbort = (signal, algorithm) => { (signal.#algorithms ??= new Set()).add(algorithm); };
      own.offAbort = (signal, algorithm) => { signal.#algorithms?.delete(algorithm); };
    }
  }
  own.handlers(AbortSignal, ["abort"]);

  class AbortController {
    #signal = new AbortSignal(INTERNAL);
    get signal() { return this.#signal; }
    abort(reason) { abort(this.#signal, reason); }
  }
  own.expose({ AbortController, AbortSignal });
}
