// Events and their targets. Source: WHATWG DOM, sections 2.2 to 2.10; there is no tree, so nothing is captured or bubbles.
(host, own) => {
  "use strict";
  const { DOMException } = globalThis;
  const CANCELABLE = 1, CANCELED = 2, STOPPED = 4, STOPPED_AT_ONCE = 8, DISPATCHED = 16, BUBBLES = 32, COMPOSED = 64, TRUSTED = 128;
  let fire;
  const untyped = () => { throw new TypeError("Event: its type is missing"); };

  // What an event holds stands under symbols that no script has, not in private fields: those cost every message two calls of
  // initialisers. What most events do not have stands on the prototypes. There is no tree: an event is at its target or nowhere.
  const TYPE = Symbol("type"), FLAGS = Symbol("flags"), TIME = Symbol("time"), TARGET = Symbol("target"), DATA = Symbol("data"), FROM = Symbol("from");
  class Event {
    constructor(type = untyped(), init) {
      this[TYPE] = `${type}`;
      this[TIME] = own.now;
      this[FLAGS] = init === undefined || init === null ? 0
        : (init.bubbles ? BUBBLES : 0) | (init.cancelable ? CANCELABLE : 0) | (init.composed ? COMPOSED : 0);
    }
    get type() { return this[TYPE]; }
    get target() { return this[TARGET]; }
    get srcElement() { return this[TARGET]; }
    get currentTarget() { return (this[FLAGS] & DISPATCHED) === 0 ? null : this[TARGET]; }
    get eventPhase() { return (this[FLAGS] & DISPATCHED) === 0 ? 0 : 2; }
    get bubbles() { return (this[FLAGS] & BUBBLES) !== 0; }
    get cancelable() { return (this[FLAGS] & CANCELABLE) !== 0; }
    get composed() { return (this[FLAGS] & COMPOSED) !== 0; }
    get defaultPrevented() { return (this[FLAGS] & CANCELED) !== 0; }
    get returnValue() { return (this[FLAGS] & CANCELED) === 0; }
    get isTrusted() { return (this[FLAGS] & TRUSTED) !== 0; }
    get timeStamp() { return this[TIME] / own.MS_NS; }
    get cancelBubble() { return (this[FLAGS] & STOPPED) !== 0; }
    set cancelBubble(value) { if (value) this[FLAGS] |= STOPPED; }
    composedPath() { return (this[FLAGS] & DISPATCHED) === 0 ? [] : [this[TARGET]]; }
    preventDefault() { if ((this[FLAGS] & CANCELABLE) !== 0) this[FLAGS] |= CANCELED; }
    stopPropagation() { this[FLAGS] |= STOPPED; }
    stopImmediatePropagation() { this[FLAGS] |= STOPPED | STOPPED_AT_ONCE; }
  }
  Object.defineProperty(Event.prototype, TARGET, { value: null, writable: true });
  own.isEvent = (value) => own.isObject(value) && Object.hasOwn(value, TYPE);
  own.constants(Event, { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 });

  class MessageEvent extends Event {
    constructor(type, init) {
      super(type, init);
      if (init === undefined || init === null) return;
      this[DATA] = init.data ?? null;
      const text = (value) => (value === undefined ? "" : `${value}`);
      this[FROM] = { origin: text(init.origin), lastEventId: text(init.lastEventId) };
    }
    get data() { return this[DATA]; }
    get origin() { return this[FROM].origin; }
    get lastEventId() { return this[FROM].lastEventId; }
    get source() { return null; }
    get ports() { return []; }
  }
  Object.defineProperty(MessageEvent.prototype, DATA, { value: null, writable: true });
  Object.defineProperty(MessageEvent.prototype, FROM, { value: { origin: "", lastEventId: "" }, writable: true });
  /** Makes the event of a message that came: as the constructor would, in one step. */
  function Came(data) {
    this[TYPE] = "message";
    this[TIME] = own.now;
    this[FLAGS] = 0;
    this[DATA] = data;
  }
  Came.prototype = MessageEvent.prototype;
  class CloseEvent extends Event {
    #code; #reason; #wasClean;
    constructor(type, init) {
      super(type, init);
      this.#code = Number(init?.code ?? 0) & 0xffff;
      this.#reason = init?.reason === undefined ? "" : `${init.reason}`;
      this.#wasClean = !!init?.wasClean;
    }
    get code() { return this.#code; }
    get reason() { return this.#reason; }
    get wasClean() { return this.#wasClean; }
  }
  class ErrorEvent extends Event {
    #init;
    constructor(type, init) { super(type, init); this.#init = { ...init }; }
    get message() { return `${this.#init.message ?? ""}`; }
    get filename() { return `${this.#init.filename ?? ""}`; }
    get lineno() { return Number(this.#init.lineno ?? 0); }
    get colno() { return Number(this.#init.colno ?? 0); }
    get error() { return this.#init.error; }
  }
  class CustomEvent extends Event {
    #detail;
    constructor(type, init) { super(type, init); this.#detail = init?.detail ?? null; }
    get detail() { return this.#detail; }
  }
  class ProgressEvent extends Event {
    #lengthComputable; #loaded; #total;
    constructor(type, init) {
      super(type, init);
      this.#lengthComputable = !!init?.lengthComputable;
      this.#loaded = Number(init?.loaded ?? 0);
      this.#total = Number(init?.total ?? 0);
    }
    get lengthComputable() { return this.#lengthComputable; }
    get loaded() { return this.#loaded; }
    get total() { return this.#total; }
  }

  class EventTarget {
    // Entries in their order. The array is replaced when it changes, so that a dispatch walks the one it began with.
    #entries = null;
    addEventListener(type, listener, options) {
      const [capture, once, signal] = flattened(options);
      if (listener === null || listener === undefined) return;
      if (!own.isObject(listener)) throw new TypeError("addEventListener: the listener is neither a function nor an object");
      if (signal?.aborted) return;
      type = `${type}`;
      const entries = this.#entries;
      const isKnown = (one) => one.type === type && one.listener === listener && one.capture === capture && !one.isHandler;
      if (entries !== null && entries.some(isKnown)) return;
      const entry = { type, listener, capture, once, isHandler: false, removed: false };
      this.#entries = entries === null ? [entry] : [...entries, entry];
      if (signal !== undefined) own.onAbort(signal, () => this.#remove(entry));
    }
    removeEventListener(type, listener, options) {
      const [capture] = flattened(options);
      const isMeant = (one) => one.type === `${type}` && one.listener === listener && one.capture === capture && !one.isHandler;
      const entry = this.#entries?.find(isMeant);
      if (entry !== undefined) this.#remove(entry);
    }
    dispatchEvent(event) {
      if (!own.isEvent(event)) throw new TypeError("dispatchEvent: it takes an Event");
      return fire(this, event, false);
    }
    #remove(entry) {
      entry.removed = true;
      const rest = this.#entries?.filter((one) => one !== entry) ?? [];
      this.#entries = rest.length === 0 ? null : rest;
    }
    static {
      fire = (target, event, trusted) => {
        if ((event[FLAGS] & DISPATCHED) !== 0) throw new DOMException("the event is being dispatched", "InvalidStateError");
        event[FLAGS] |= trusted ? DISPATCHED | TRUSTED : DISPATCHED;
        event[TARGET] = target;
        const type = event[TYPE], entries = target.#entries;
        if (entries !== null) {
          for (let at = 0; at < entries.length; at++) {
            const entry = entries[at];
            if (entry.type !== type || entry.removed) continue;
            if (entry.once) target.#remove(entry);
            const { listener } = entry;
            try {
              if (typeof listener !== "function") listener.handleEvent(event);
              else if (listener.call(target, event) === false && entry.isHandler) event.preventDefault();
            } catch (error) { own.thrown(error); }
            if ((event[FLAGS] & STOPPED_AT_ONCE) !== 0) break;
          }
        }
        event[FLAGS] &= ~(DISPATCHED | STOPPED | STOPPED_AT_ONCE);
        return (event[FLAGS] & CANCELED) === 0;
      };
      /** Dispatches an event of ours. */
      own.fire = (target, event) => fire(target, event, true);
      own.hears = (target, type) => {
        const entries = target.#entries;
        if (entries !== null) for (let at = 0; at < entries.length; at++) if (entries[at].type === type) return true;
        return false;
      };
      own.handlerOf = (target, type) => target.#entries?.find((one) => one.isHandler && one.type === type)?.listener ?? null;
      own.setHandler = (target, type, value) => {
        const listener = typeof value === "function" ? value : null;
        const entry = target.#entries?.find((one) => one.isHandler && one.type === type);
        if (entry !== undefined) {
          // A handler that is replaced keeps its place among the listeners; one that was taken away does not.
          if (listener === null) target.#remove(entry); else entry.listener = listener;
        } else if (listener !== null) {
          const added = { type, listener, capture: false, once: false, isHandler: true, removed: false };
          target.#entries = target.#entries === null ? [added] : [...target.#entries, added];
        }
      };
    }
  }
  const flattened = (options) => {
    if (!own.isObject(options)) return [!!options, false, undefined];
    if (options.signal !== undefined && !own.isSignal(options.signal)) throw new TypeError("addEventListener: signal is no AbortSignal");
    return [!!options.capture, !!options.once, options.signal];
  };

  /** Defines `onopen` and the like. */
  own.handlers = (target, types) => {
    for (const type of types) {
      Object.defineProperty(target.prototype, `on${type}`, {
        get() { return own.handlerOf(this, type); },
        set(value) { own.setHandler(this, type, value); },
        enumerable: true, configurable: true,
      });
    }
  };
  /** A `message` event without an init object for each: this is the path of every message. */
  own.messageEvent = (data) => new Came(data);

  own.expose({ Event, MessageEvent, CloseEvent, ErrorEvent, CustomEvent, ProgressEvent, EventTarget });
}
