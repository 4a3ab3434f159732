// Groups: the bots of a worker that play together.
//
// A group is the bots i·size to i·size + size − 1 by their place within the worker, so that its members share this realm.
// A promise of another bot is settled in a turn of that bot, which the host is asked for: otherwise what follows would run
// as the bot whose turn it is.
(host, own) => {
  "use strict";
  const { structuredClone } = globalThis;
  const groups = new Map();

  class Group {
    #state; #size; #shared; #isGone = false;
    constructor(state, size, shared) {
      this.#state = state;
      this.#size = size;
      this.#shared = shared;
      shared.members.set(state.place, this);
    }
    get index() { return this.#state.place % this.#size; }
    get size() { return this.#size; }
    #queue = []; #receivers = []; #arrived = null;
    /** Waits until every member has called it as often as this one. */
    all() {
      const shared = this.#shared;
      if (this.#arrived !== null) return Promise.reject(new Error("group.all(): this bot waits in it already"));
      if (shared.gone !== undefined) return Promise.reject(goneError(shared.gone));
      const arrived = new Promise((resolve, reject) => { this.#arrived = { resolve, reject }; });
      if (++shared.arrived === this.#size) {
        shared.arrived = 0;
        for (const member of shared.members.values()) member.#settle((one) => one.resolve());
      }
      return arrived;
    }
    #settle(how) {
      const arrived = this.#arrived;
      if (arrived === null) return;
      this.#arrived = null;
      wake(this.#state, () => how(arrived));
    }
    /** To all other members, each with its own copy, in the order of sending. */
    send(value) {
      for (const member of this.#shared.members.values()) {
        if (member === this || member.#isGone) continue;
        const copy = structuredClone(value);
        const receiver = member.#receivers.shift();
        if (receiver === undefined) member.#queue.push(copy);
        else wake(member.#state, () => receiver.resolve(copy));
      }
    }
    receive() {
      if (this.#queue.length > 0) return Promise.resolve(this.#queue.shift());
      if (this.#shared.gone !== undefined) return Promise.reject(goneError(this.#shared.gone));
      return new Promise((resolve, reject) => this.#receivers.push({ resolve, reject }));
    }
    static {
      own.leaveGroups = (state) => {
        for (const [size, left] of state.groups) {
          const shared = left.#shared;
          left.#isGone = true;
          shared.gone = state.id;
          let isOver = true;
          for (const member of shared.members.values()) {
            if (member.#isGone) continue;
            isOver = false;
            member.#settle((one) => one.reject(goneError(state.id)));
            for (const receiver of member.#receivers.splice(0)) wake(member.#state, () => receiver.reject(goneError(state.id)));
          }
          const key = keyOf(state, size);
          if (isOver && groups.get(key) === shared) groups.delete(key);
        }
      };
    }
  }
  const goneError = (id) => new Error(`bot ${id} of this group has ended`);

  const keyOf = (state, size) => `${size}:${Math.floor(state.place / size)}`;

  const wake = (state, call) => {
    const id = state.nextId++;
    state.held.set(id, call);
    host.timerOf(state.index, id, own.now);
  };

  own.group = (state, size) => {
    if (!Number.isInteger(size) || size < 1 || size > 10_000) throw new TypeError(`bot.group: the size is a whole number from 1 to 10000, not ${own.shown(size)}`);
    const known = (state.groups ??= new Map()).get(size);
    if (known !== undefined) return known;
    const key = keyOf(state, size);
    let shared = groups.get(key);
    // A bot that begins again where one has ended begins a new round of its group.
    if (shared === undefined || shared.gone !== undefined) groups.set(key, (shared = { members: new Map(), arrived: 0, gone: undefined }));
    const group = new Group(state, size, shared);
    state.groups.set(size, group);
    return group;
  };
}
