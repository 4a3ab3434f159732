// What the host calls. Each call is a turn of one bot: its number within the worker and the instant come first.
(host, own) => {
  "use strict";
  const bots = [];

  /** Begins a turn; undefined for a bot that does nothing more. */
  const turn = (index, now) => {
    own.now = now;
    own.forgetSoon();
    return (own.turn = bots[index]);
  };

  const ended = () => host.ended();
  const failed = (error) => { own.thrown(error); host.ended(); };

  own.turns = {
    __proto__: null,
    start(index, now, id, target, env, main) {
      own.now = now;
      own.forgetSoon();
      // Timers, sockets and requests that are under way stand in `held` by their number; the rest is made when it is used.
      const state = (own.turn = bots[index] = {
        index, id, target, began: now, nextId: 1, series: 0, held: new Map(),
        asked: null, jar: null, groups: null, logSecond: -1, logCount: 0,
      });
      let result;
      try { result = main(own.botOf(state, env)); } catch (error) { failed(error); return; }
      Promise.resolve(result).then(ended, failed);
    },
    timer(index, now, id) {
      const state = turn(index, now);
      const call = state?.held.get(id);
      if (typeof call !== "function") return;
      state.held.delete(id);
      call();
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
      if (state !== undefined && state.groups !== null) own.leaveGroups(state);
      bots[index] = own.turn = undefined;
    },
  };
}
