// What the host calls. Each call is a turn of one bot: its number within the worker and the instant come first.
(host, own) => {
  "use strict";
  const bots = [];
  /** Of bots that have ended: the next numbers, so that a timer of an ended bot finds nothing in the next one of its index. */
  const after = [];

  /** Begins a turn; undefined for a bot that does nothing more. */
  const turn = (index, now) => {
    own.now = now;
    own.forgetSoon();
    return (own.turn = bots[index]);
  };

  // For `running`: taken here, so that what a script replaces changes nothing.
  const RealError = Error, { apply } = Reflect;
  const getter = (name) => {
    const { get } = Object.getOwnPropertyDescriptor(Function.prototype, name);
    return (value) => (typeof value === "function" ? apply(get, value, []) : undefined);
  };
  const fileOf = getter("fileName"), lineOf = getter("lineNumber"), columnOf = getter("columnNumber");
  const asSites = (_, sites) => sites;

  const ended = () => host.ended();
  const failed = (error) => { own.thrown(error); host.broke(); };

  own.turns = {
    __proto__: null,
    start(index, now, place, id, target, env, main) {
      own.now = now;
      own.forgetSoon();
      // Timers, sockets and requests that are under way stand in `held` by their number; the rest is made when it is used.
      const { nextId, series } = after[index] ?? { nextId: 1, series: 0 };
      const state = (own.turn = bots[index] = {
        index, place, id, target, began: now, nextId, series, held: new Map(),
        asked: null, jar: null, groups: null, logSecond: -1, logCount: 0,
      });
      let result;
      try { result = main(own.botOf(state, env)); } catch (error) { failed(error); return; }
      Promise.resolve(result).then(ended, failed);
    },
    timer(index, now, id) {
      const state = turn(index, now);
      const call = state?.held.get(id);
      if (typeof call === "function") {
        state.held.delete(id);
        call();
      } else if (call !== undefined) own.due(call);
    },
    /** The innermost function of the script that runs: its name, a line end, and where it begins. Called between two of its steps. */
    running() {
      const { prepareStackTrace, stackTraceLimit } = RealError;
      let sites;
      try {
        RealError.prepareStackTrace = asSites;
        RealError.stackTraceLimit = 50;
        ({ stack: sites } = new RealError());
      } finally {
        RealError.prepareStackTrace = prepareStackTrace;
        RealError.stackTraceLimit = stackTraceLimit;
      }
      for (let at = 1; at < sites.length; at++) {
        const running = sites[at].getFunction();
        const file = fileOf(running);
        if (file !== undefined && !file.startsWith("stepladder:")) return `${sites[at].getFunctionName() ?? ""}\n${file}:${lineOf(running)}:${columnOf(running)}`;
      }
      return "";
    },
    soon() { return own.callSoon(); },
    opened(index, now, id, protocol) {
      const socket = turn(index, now)?.held.get(id);
      if (socket !== undefined) own.opened(socket, protocol);
    },
    message(index, now, id, data) {
      const socket = turn(index, now)?.held.get(id);
      if (socket !== undefined) own.message(socket, data);
    },
    closed(index, now, id, code, reason, clean) {
      const state = turn(index, now);
      const socket = state?.held.get(id);
      if (socket === undefined) return;
      state.held.delete(id);
      own.closed(socket, code, reason, clean);
    },
    responded(index, now, id, status, statusText, headers) {
      turn(index, now)?.held.get(id)?.responded?.(status, statusText, headers);
    },
    bodyPart(index, now, id, bytes) { turn(index, now)?.held.get(id)?.part?.(bytes); },
    bodyEnd(index, now, id) { turn(index, now)?.held.get(id)?.end?.(); },
    requestFailed(index, now, id, why) { turn(index, now)?.held.get(id)?.fail?.(why); },
    /** The bot does nothing more: what it held goes. */
    forget(index, now) {
      const state = turn(index, now);
      if (state === undefined) return;
      if (state.groups !== null) own.leaveGroups(state);
      after[index] = { nextId: state.nextId, series: state.series };
      bots[index] = own.turn = undefined;
    },
  };
}
