// AbortController and AbortSignal. Source: WHATWG DOM, section 3.
(host, own) => {
  "use strict";
  const INTERNAL = Symbol("internal");
  let abort;

  class AbortSignal extends EventTarget {
    #aborted = false; #reason = undefined; #algorithms = null;
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
      else for (const one of all) own.onAbort(one, () => abort(signal, one.reason));
      return signal;
    }
    static {
      abort = (signal, reason) => {
        if (signal.#aborted) return;
        signal.#aborted = true;
        signal.#reason = reason === undefined ? new DOMException("it was aborted", "AbortError") : reason;
        const algorithms = signal.#algorithms ?? [];
        signal.#algorithms = null;
        for (const algorithm of algorithms) algorithm();
        own.fire(signal, new Event("abort"));
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
