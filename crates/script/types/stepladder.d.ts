// What a bot sees besides the Web's interfaces. Written by `stepladder new`; editors read it, the run does not need it.

declare module "stepladder" {
  /** Milliseconds, or a text such as "50ms", "2s" or "1min". */
  export type Duration = number | string;

  /** What a script may say about its climb; options of the command line go before them. */
  export interface Options {
    /** Loads, in bots, ascending. */
    rungs?: number[];
    /** How long each load is held. */
    hold?: Duration;
    /** How the bots arrive: the time between two, or a rate such as "500/s". */
    ramp?: Duration;
    /** What each load must meet, such as "response.p99 < 50ms" or "errors == 0". */
    objectives?: string[];
    /** The period of the server's loop, against which `bot.tick()` is held. */
    ticks?: Duration;
    /** Of everything that is random. */
    seed?: number;
    /** An answer after this is late. */
    patience?: Duration;
  }

  /** One simulated client. */
  export interface Bot {
    /** From 0, unique over all workers of a load. */
    readonly id: number;
    /** The URL of --target. */
    readonly target: string;
    /** The environment variables that --env NAME handed over. */
    readonly env: Readonly<Record<string, string>>;
    /** In [0, 1), from the seed of the run; `Math.random` is the same. */
    random(): number;
    /** This client is in; the ramp waits for all. Without it a bot is in with its first connection. */
    ready(): void;
    /** Planned instants: the n-th is n periods after the first, whatever the server does. The first is at a random phase. */
    every(period: Duration, options?: { jitter?: Duration; phase?: Duration }): AsyncIterableIterator<number>;
    /** Waits until so long after the bot began. */
    at(time: Duration): Promise<void>;
    sleep(time: Duration): Promise<void>;
    /** A request that owes a reply, timed from the planned instant of the turn that asks. `send` sends its message. */
    ask(name: string, key: string | number, send: () => void): Promise<unknown>;
    /** The reply to it. */
    answered(name: string, key: string | number, value?: unknown): void;
    /** A tick of the server's loop arrived. */
    tick(): void;
    /** What must hold; where it does not, the server's answers are not right. Returns `ok`. */
    check(name: string, ok: boolean): boolean;
    /** Counts an error with its words. */
    fail(why: unknown): void;
    /** Adds to a counter of one's own. */
    count(name: string, n?: number): void;
    /** A connection to a path of the target (the target's own path without one), once it stands. */
    websocket(path?: string, options?: WebSocketOptions): Promise<Connection>;
  }

  export interface WebSocketOptions {
    headers?: Record<string, string>;
    protocols?: string[];
    cookies?: Record<string, string>;
  }

  /** A `WebSocket` that can also be asked for its next message. Bytes come as `ArrayBuffer`. */
  export interface Connection extends WebSocket {
    /** The data of the next message that `match` accepts; messages before it are skipped. Rejected after `within` (10 s). */
    next(match?: (data: any) => boolean, options?: { within?: Duration }): Promise<any>;
  }
}
