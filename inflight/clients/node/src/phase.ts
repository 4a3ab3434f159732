// One phase of a run, warm-up or measurement: the closed loop itself.

import { Tally, type Outcome } from './tally.js'

/** Nanoseconds from any fixed instant. */
export type Clock = () => number

export interface PhaseOptions<T> {
  nextOp: (i: number) => PromiseLike<T> | T
  check: (result: T, i: number) => Outcome
  isUnknown: (error: unknown) => boolean
  inFlight: number
  timeoutNs: number
  memoryCapBytes: number
  clock: Clock
  signal?: AbortSignal
  onSecond?: (counts: ReturnType<Tally['takeInterval']>, inFlight: number) => void
}

export interface PhaseResult {
  tally: Tally
  elapsedNs: number
  /** Start and end of the first operations, in ns since the phase began. */
  timeline: [number, number][]
  stopped?: 'signal' | 'memory'
}

interface Operation {
  readonly i: number
  readonly startedNs: number
  /** Its place among the open operations; −1 once it has ended. */
  at: number
}

/** How many operations of a phase are reported one by one. */
const timelineOps = 200
/** After this many operations in a row the event loop gets a turn, or timers and signals would starve. */
const opsPerTurn = 4096
/** How long operations in flight may still end by themselves after a stop. */
const graceMs = 1000

export class Phase<T> {
  private readonly tally = new Tally()
  private readonly open: Operation[] = []
  private next = 0
  private to = 0
  private from = 0
  private beganNs = 0
  private readonly timeline: [number, number][] = []
  private endedNs = 0
  private starting = false
  private yielding = false
  private opsThisTurn = 0
  private stopped: 'signal' | 'memory' | undefined
  private grace: NodeJS.Timeout | undefined
  private finish: (() => void) | undefined

  constructor(private readonly options: PhaseOptions<T>) {}

  /** Runs operations `from` to `to` − 1 and resolves when each of them has ended. */
  async run(from: number, to: number): Promise<PhaseResult> {
    const { onSecond, timeoutNs, signal, clock } = this.options
    this.next = from
    this.from = from
    this.to = to
    const ended = new Promise<void>((resolve) => (this.finish = resolve))
    const second = () => onSecond?.(this.tally.takeInterval(), this.open.length)
    const seconds = setInterval(second, 1000)
    const overdue = setInterval(() => this.endOverdue(), Math.min(100, Math.ceil(timeoutNs / 4e6)))
    const onAbort = () => this.stop('signal')
    signal?.addEventListener('abort', onAbort)
    const beganNs = (this.beganNs = clock())
    if (signal?.aborted) onAbort()
    else if (this.options.inFlight === Infinity) this.startAll()
    else this.startMore()
    await ended
    const elapsedNs = this.endedNs - beganNs
    clearInterval(seconds)
    clearInterval(overdue)
    clearTimeout(this.grace)
    signal?.removeEventListener('abort', onAbort)
    second()
    return { tally: this.tally, elapsedNs, timeline: this.timeline, ...(this.stopped ? { stopped: this.stopped } : {}) }
  }

  /** Keeps `inFlight` operations open. Not recursive: an operation that ends while it is started only leaves its place. */
  private startMore(): void {
    if (this.starting || this.yielding) return
    this.starting = true
    while (this.next < this.to && this.open.length < this.options.inFlight && !this.stopped) {
      if (this.opsThisTurn++ === opsPerTurn) {
        this.yielding = true
        setImmediate(() => {
          this.yielding = false
          this.opsThisTurn = 0
          this.startMore()
        })
        break
      }
      this.start(this.next++)
    }
    this.starting = false
    this.finishIfDone()
  }

  /** The benchmark without back-pressure: one macrotask for each operation, all of them queued at once. */
  private startAll(): void {
    const task = () => {
      if (this.stopped) return
      this.start(this.next++)
      if (this.next % 1000 === 0) this.stopIfTooLarge()
      this.finishIfDone()
    }
    for (let i = this.next; i < this.to && !this.stopped; i++) {
      setImmediate(task)
      if (i % 1000 === 0) this.stopIfTooLarge()
    }
  }

  private stopIfTooLarge(): void {
    if (process.memoryUsage.rss() > this.options.memoryCapBytes) this.stop('memory')
  }

  private start(i: number): void {
    const operation: Operation = { i, startedNs: this.options.clock(), at: this.open.length }
    this.open.push(operation)
    try {
      const result = this.options.nextOp(i)
      if (isPromise(result)) result.then((value) => this.succeed(operation, value), (error) => this.fail(operation, error))
      else this.succeed(operation, result)
    } catch (error) {
      this.fail(operation, error)
    }
  }

  private succeed(operation: Operation, value: T): void {
    if (operation.at < 0) return
    try {
      const outcome = this.options.check(value, operation.i)
      if (outcome === 'wrong') this.tally.blame('wrong', `operation ${operation.i} returned ${excerpt(value)}`)
      this.end(operation, outcome)
    } catch (error) {
      this.fail(operation, error)
    }
  }

  private fail(operation: Operation, error: unknown): void {
    if (operation.at < 0) return
    this.tally.blame(cause(error), error instanceof Error ? error.message : String(error))
    this.end(operation, this.options.isUnknown(error) ? 'unknown' : 'failed')
  }

  private end(operation: Operation, outcome: Outcome): void {
    const last = this.open.pop()!
    if (last !== operation) {
      this.open[operation.at] = last
      last.at = operation.at
    }
    operation.at = -1
    const now = this.options.clock()
    const place = operation.i - this.from
    if (place < timelineOps) this.timeline[place] = [operation.startedNs - this.beganNs, now - this.beganNs]
    this.tally.record(outcome, now - operation.startedNs)
    if (this.options.inFlight === Infinity) this.finishIfDone()
    else this.startMore()
  }

  private endOverdue(): void {
    const now = this.options.clock()
    for (const operation of this.open.filter((each) => now - each.startedNs >= this.options.timeoutNs)) {
      // Ending one may have started others or, through a callback, have ended this one.
      if (operation.at >= 0) this.giveUp(operation, 'timeout', `no result within ${this.options.timeoutNs / 1e6} ms`)
    }
  }

  private giveUp(operation: Operation, why: string, text: string): void {
    this.tally.blame(why, text)
    this.end(operation, 'unknown')
  }

  private stop(reason: 'signal' | 'memory'): void {
    if (this.stopped) return
    this.stopped = reason
    this.grace = setTimeout(() => {
      for (const operation of [...this.open]) this.giveUp(operation, 'stopped', 'the run was stopped before the result came')
    }, graceMs)
    this.finishIfDone()
  }

  private finishIfDone(): void {
    if (this.open.length > 0 || this.starting || (this.next < this.to && !this.stopped) || !this.finish) return
    this.endedNs = this.options.clock()
    this.finish()
    this.finish = undefined
  }
}

function isPromise<T>(result: PromiseLike<T> | T): result is PromiseLike<T> {
  return typeof (result as PromiseLike<T> | undefined | null)?.then === 'function'
}

function cause(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : error.constructor.name
}

function excerpt(value: unknown): string {
  return typeof value === 'string' ? `${value.length} characters: ${JSON.stringify(value.slice(0, 80))}` : typeof value
}
