// What a bot sees besides the Web's interfaces. Written by `stepladder new`; editors read it, the run does not need it.
//
// The Web's interfaces are there as in a Web Worker: WebSocket, fetch with Headers, Request, Response and ReadableStream,
// EventSource, XMLHttpRequest (asynchronous), Event and EventTarget, AbortController, URL, URLSearchParams, TextEncoder,
// TextDecoder (utf-8, utf-16le, latin1), Blob, File, FileReader, FormData, atob, btoa, crypto (getRandomValues, randomUUID, and
// subtle.digest, importKey, exportKey, generateKey, sign and verify for HMAC), structuredClone, queueMicrotask, timers,
// performance and console. What differs on purpose:
//   Time and chance are the run's: Date, performance.now, Math.random and crypto follow the engine's clock and the seed.
//   Relative addresses are paths of --target; for fetch and its like ws: becomes http:, and wss: https:.
//   fetch has no CORS: every header can be set and read. redirect: "manual" gives the response of the redirect itself.
//   Each bot has its own cookies, also for WebSocket handshakes; Secure cookies go to loopback without TLS too.
//   A WebSocket takes no headers; `bot.websocket` does.
//   A WebSocket also opens where the server chooses none of the protocols that were offered; `protocol` is empty then.
//   `close` waits 2 s for the server's answer, as browsers do. What was sent before leaves first.
//   Over HTTP/1.1 a bot has up to six connections to a server; over HTTP/2 (behind TLS, or with --http 2) one with many requests.
//   A streamed body that is sent is collected first. Bodies that come are held until they are read.
//   console keeps 20 lines per bot and second, each of at most 2000 characters.
//   There is no window, no document, no file, no process and no module of Node.js.

/** Of `fetch` and `new Request`. */
interface RequestInit {
  /**
   * The operation that this request is measured as, such as "items". Without it: method and path, with numbers and ids
   * (UUIDs, long hexadecimal or random parts) as `:id`. Each hop of a redirect is measured under it, or under its own path.
   */
  operation?: string;
}

interface EventSourceInit {
  /** Further headers of the request. */
  headers?: HeadersInit;
  /** The operation that its requests are measured as. */
  operation?: string;
}

declare module "stepladder" {
  /** Milliseconds, or a text such as "50ms", "2s" or "1min". Anything else is a TypeError. */
  export type Duration = number | string;

  /** What a script may say about its climb; options of the command line go before them. */
  export interface Options {
    /** Loads, in bots or in sessions per second, as `load` says. */
    rungs?: number[];
    /**
     * What a load counts. `bots`, which is the default: from the ramp to the end of the hold. `sessions/s`: at each planned
     * instant a new bot begins, with an id of its own, and ends with its function; how many are there at once follows.
     */
    load?: "bots" | "sessions/s";
    /** Of sessions/s: how their instants are planned, at random (the default) or equally spaced. */
    arrivals?: "poisson" | "even";
    /** Of sessions/s: so many at once at most, 10000 unless it says otherwise. Those that find no room are not begun. */
    sessions_max?: number;
    /**
     * A bot whose function returns, or throws, begins again: the same id, row and group, without its connections, cookies and
     * timers. Otherwise it is done. Not with sessions/s. Each life is measured as the operation `session` then, and one that
     * throws has failed.
     */
    repeat?: boolean;
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

  /**
   * One simulated client.
   *
   * Names of operations, checks, counters and distributions are string literals where they are used: all workers know them
   * before the run. What a bot throws, in its function or in a handler, is an error of that bot with file and line.
   */
  export interface Bot {
    /** From 0, unique over all workers and machines of a load. */
    readonly id: number;
    /** The URL of --target. */
    readonly target: string;
    /** The environment variables that --env NAME handed over. */
    readonly env: Readonly<Record<string, string>>;
    /** In [0, 1), from the seed of the run; `Math.random` is the same. */
    random(): number;
    /**
     * This bot's row of a CSV file (its first line names the columns; values are strings) or of a file of JSON lines
     * (`.jsonl`, `.ndjson`). `unique`, which is the default: the row with the bot's number, which no other bot has; a file with
     * fewer rows than bots is refused before any load. `wrap`: from the first row again after the last. `shared`: a row by
     * chance, the same at each call. The file's name is a string literal. Errors: TypeError where there is no such row.
     */
    row<Row extends object = Record<string, string>>(file: string, how?: "unique" | "shared" | "wrap"): Row;
    /**
     * The bots that play together: of each worker, the first `size`, the next `size`, and so on. Let the number of bots per
     * worker be a multiple of it: the members of a group that is not full wait for the others in vain.
     */
    group(size: number): Group;
    /** This client is in; the ramp waits for all. Without it a bot is in with its first connection. */
    ready(): void;
    /**
     * Planned instants: the n-th is n periods after the first, whatever the server does. The period is at least 0.1 ms. The
     * first is at a random phase unless `phase` says when; `jitter` adds up to so much to each, at random. Both follow from
     * the seed, the bot and the number of the call alone.
     */
    every(period: Duration, options?: { jitter?: Duration; phase?: Duration }): AsyncIterableIterator<number>;
    /** Waits until so long after the bot began. */
    at(time: Duration): Promise<void>;
    sleep(time: Duration): Promise<void>;
    /**
     * A request that owes a reply, timed from the planned instant of the turn that asks. `send` sends its message. The promise
     * is that of the reply, and nobody has to await it; with more than 1000 of one name unanswered, the oldest stay pending.
     */
    ask(name: string, key: string | number | bigint, send: () => void): Promise<any>;
    /** The reply to it; the promise of `ask` gives `value`. Unknown and second replies are counted as unexpected. */
    answered(name: string, key: string | number | bigint, value?: unknown): void;
    /**
     * Any step as an operation with a response time, from the planned instant of its turn until its promise is settled. A step
     * that throws counts as failed, and the error goes on. Steps may be nested and overlap.
     */
    measure<Result>(name: string, step: () => Result | Promise<Result>): Promise<Result>;
    /** The ledger of what is said in a room (a channel, a match, a topic) and who heard it. Nothing is sent. */
    room(name: string): Room;
    /** A tick of the server's loop arrived; `time`: the server's own time of it, ms, if its messages carry one. */
    tick(time?: number): void;
    /** What must hold; where it does not, the server's answers are not right. Returns `ok`. */
    check(name: string, ok: boolean): boolean;
    /** Counts an error with its words. */
    fail(why: unknown): void;
    /** Adds to a counter of one's own; n is from 0. */
    count(name: string, n?: number): void;
    /**
     * A value of a distribution of one's own, in a unit of one's own: from 0 to 3.6e9, kept to three decimals and 0.1 %. It counts
     * where its turn was planned in the hold. Objectives name it without a unit: "damage.p99 < 120". Errors: TypeError for any
     * other value.
     */
    record(name: string, value: number): void;
    /**
     * A connection to a path of the target (the target's own path without one), once it stands. Rejected where it does not
     * come about, with the reason.
     */
    websocket(path?: string, options?: WebSocketOptions): Promise<Connection>;
    /** A TCP connection to the target's host and port, or others, once it stands. */
    tcp(options: TcpOptions): Promise<Transport>;
    /** A UDP socket that talks to the target's host and port, or others. Each message is a datagram. */
    udp(options?: { host?: string; port?: number }): Promise<Transport>;
  }

  export interface WebSocketOptions {
    headers?: HeadersInit;
    protocols?: string[];
    /** Sent besides those that the server has set for this bot; one of the same name goes before. */
    cookies?: Record<string, string>;
  }

  export interface TcpOptions {
    host?: string;
    port?: number;
    /**
     * Where a message ends. `lines`: text; the line end is added and taken off. `u8` to `u32le`: a length in so many bits
     * before each, high or low byte first, which counts the message without itself. `until 0xff`: the message ends in this
     * byte, or another one of two hex digits, which is added and taken off. `raw`: what comes in one piece. A message that
     * comes has up to 4 MiB; a longer one ends the connection.
     */
    frames: "lines" | "u8" | "u16be" | "u16le" | "u32be" | "u32le" | `until 0x${string}` | "raw";
  }

  export interface Waiting {
    /**
     * The data of the next message that `match` accepts (any without it); messages before it are skipped. Messages that came
     * while nobody listened are kept, up to 1000. Rejected after `within` (10 s) with the last message quoted, and when the
     * connection ends.
     */
    next(match?: (data: any) => boolean, options?: { within?: Duration }): Promise<any>;
  }

  /** A `WebSocket` that can also be asked for its next message. Bytes come as `ArrayBuffer`. */
  export interface Connection extends WebSocket, Waiting {}

  /** Of `bot.tcp` and `bot.udp`: like a `WebSocket`. Bytes come as `ArrayBuffer`, lines as strings. */
  export interface Transport extends EventTarget, Waiting {
    /** 0 connecting, 1 open, 2 closing, 3 closed. */
    readonly readyState: number;
    onopen: ((event: Event) => void) | null;
    onmessage: ((event: MessageEvent) => void) | null;
    onerror: ((event: Event) => void) | null;
    onclose: ((event: CloseEvent) => void) | null;
    /** One message. Errors: InvalidStateError before the connection is open; after its end nothing is sent. */
    send(data: string | ArrayBuffer | ArrayBufferView | Blob): void;
    close(): void;
  }

  /** The bots of a worker that play together. */
  export interface Group {
    /** From 0, unique in the group. */
    readonly index: number;
    readonly size: number;
    /** Waits until each member has called it as often. Rejected when a member has ended. */
    all(): Promise<void>;
    /** To all other members: each gets a clone of the value. Errors: DataCloneError. */
    send(value: unknown): void;
    /** The next value that another member has sent, in the order of sending. Rejected when a member has ended. */
    receive(): Promise<any>;
  }

  /**
   * Each message owes a delivery to every other bot that is in the room; lost, doubled and reordered ones are counted, and the
   * latency of each from the planned instant of the turn that sent it. What is sent within a second after a bot joined, or
   * within the patience before it left, it may or may not hear. A bot whose last connection ends is in no room any more.
   */
  export interface Room {
    /** From now on this bot hears what is said. It need not be a member to send. */
    join(): void;
    leave(): void;
    /**
     * This bot has sent its message number `seq` in this room: whole numbers from 0 that count up, each used once; some may be
     * passed over. Call it in the turn that sends.
     */
    sent(seq: number): void;
    /** It has received message `seq` of the bot whose `id` is `from`. Its own are ignored. */
    received(from: number, seq: number): void;
  }
}
