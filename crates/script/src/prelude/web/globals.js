// The rest of the global object: console, navigator, process, and its own names.
//
// There is no `window` and no `document`: the global object is a WorkerGlobalScope, and SDKs do what they do in a Web Worker.
// With a `window` but no document, SignalR takes the realm for React Native and sends its token in headers that no browser
// sends; without a WorkerGlobalScope, MQTT.js takes it for Node.js.
// The global object has no `addEventListener`: no event ever comes to it, and engine.io would keep each socket in a list for it.
// `eval` and `new Function` stay: protobufjs and ajv make their codecs with them and throw without. Code that is made so
// reaches the globals that the script itself reaches, no more, and no message of a server is ever taken for code here.
(host, own) => {
  "use strict";
  const { queueMicrotask } = globalThis;
  const LINES_PER_SECOND_MAX = 20;
  const LINE_CHARACTERS_MAX = 2000;

  const whileLoading = { logSecond: -1, logCount: 0 };
  const print = (level, values) => {
    const state = own.turn ?? whileLoading;
    const second = Math.floor(own.now / 1e9);
    if (state.logSecond !== second) { state.logSecond = second; state.logCount = 0; }
    if (++state.logCount > LINES_PER_SECOND_MAX) {
      if (state.logCount === LINES_PER_SECOND_MAX + 1) host.log("warn", `more than ${LINES_PER_SECOND_MAX} lines in a second: the rest of them is left out`);
      return;
    }
    let line = "";
    for (const value of values) {
      line += (line === "" ? "" : " ") + own.shown(value);
      if (line.length > LINE_CHARACTERS_MAX) { line = line.slice(0, LINE_CHARACTERS_MAX) + "…"; break; }
    }
    host.log(level, own.text(line));
  };
  const console = {
    assert(holds, ...values) { if (!holds) print("error", ["Assertion failed:", ...values]); },
    count() {}, countReset() {}, group() {}, groupCollapsed() {}, groupEnd() {}, time() {}, timeEnd() {}, timeLog() {}, clear() {},
    table(value) { print("log", [value]); },
    dir(value) { print("log", [value]); },
  };
  for (const level of ["log", "info", "warn", "error", "debug"]) console[level] = (...values) => print(level, values);
  console.trace = console.debug;

  // Packages look for it to choose their production build. They must not take the realm for Node.js, which has sockets and
  // files: no `versions`, no `release`.
  const process = {
    env: { NODE_ENV: "production" }, browser: true, version: "", argv: [], platform: "browser",
    nextTick: (call, ...args) => queueMicrotask(() => call(...args)),
  };
  const navigator = Object.freeze({ userAgent: "Stepladder", onLine: true, language: "en", languages: Object.freeze(["en"]), hardwareConcurrency: 1 });

  class WorkerGlobalScope {
    constructor() { throw new TypeError("Illegal constructor"); }
  }
  Object.setPrototypeOf(globalThis, WorkerGlobalScope.prototype);

  /** What a module calls whose decorators are those of `experimentalDecorators`. Source: TypeScript, its helpers of these names. */
  const babelHelpers = {
    decorate(decorators, target, key, described) {
      const isOfClass = key === undefined, isOfMember = described !== undefined;
      let result = isOfClass ? target : described === null ? Object.getOwnPropertyDescriptor(target, key) : described;
      for (const decorator of decorators.toReversed()) {
        result = (isOfClass ? decorator(result) : isOfMember ? decorator(target, key, result) : decorator(target, key)) || result;
      }
      if (isOfMember && result) Object.defineProperty(target, key, result);
      return result;
    },
    decorateParam: (index, decorator) => (target, key) => decorator(target, key, index),
    decorateMetadata: (name, value) => Reflect.metadata?.(name, value) ?? (() => {}),
  };

  own.expose({ babelHelpers, WorkerGlobalScope, console, navigator, process, self: globalThis, global: globalThis, reportError: (error) => own.thrown(error) });
}
