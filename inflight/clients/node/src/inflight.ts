// The in-flight benchmark: N operations in flight, each one that ends starts the next, until the total is reached.
//
// It works for any client library whose operations return promises. The output is described in ../../README.md.
// Invariant: every operation that was started is counted exactly once, even when nextOp throws, its promise settles
// twice or it never settles.

import { Fitness } from './fitness.js'
import { Phase, type Clock, type PhaseOptions } from './phase.js'
import { profile } from './profile.js'
import { Tally, type Counts, type ErrorCount, type Outcome } from './tally.js'
import type { RuntimeFigures } from './fitness.js'

export type { Outcome } from './tally.js'

/** Throw it, or reject with it, when an operation may or may not have been carried out. */
export class UnknownOutcome extends Error {
  override name = 'UnknownOutcome'
}

export interface Options<T = unknown> {
  /** Starts operation `i` (from 0, warm-up included). A promise ends when it settles, any other result at once. */
  nextOp: (i: number) => PromiseLike<T> | T
  /** Operations in all, warm-up included. Default: 1,000,000. */
  totalOps?: number
  /** Operations that are under way at once; `Infinity`: all of them. Default: 100. */
  inFlight?: number
  /** The first ones, which are not counted. Default: a tenth of `totalOps`. */
  warmupOps?: number
  /** An operation that takes longer ends as unknown. Default: 10,000. */
  timeoutMs?: number
  /** Judges the result of operation `i`. Default: every result is `ok`. */
  check?: (result: T, i: number) => Outcome
  /** Whether an error leaves it open what became of the operation. Default: an `UnknownOutcome` does. */
  isUnknown?: (error: unknown) => boolean
  /** With `inFlight: Infinity`, the run stops when the process holds more memory than this. Default: 512 MiB. */
  memoryCapBytes?: number
  /** Stops the run; what it has is still reported. */
  signal?: AbortSignal
  client?: { name: string; version: string }
  member?: { version: string } | null
  /** Goes into the line `start` as it is. */
  plan?: unknown
  /** Does nothing, at the price that `nextOp` and `check` have here. Default: a promise that is already resolved. */
  nullOp?: { nextOp: (i: number) => PromiseLike<T> | T; check?: (result: T, i: number) => Outcome }
  /** Where the lines go. Default: standard output. */
  onLine?: (line: Line) => void
  /** For tests: a clock in nanoseconds. */
  clock?: Clock
}

export interface Start {
  type: 'start'
  format: 1
  client: { name: string; version: string }
  runtime: { name: 'node'; version: string }
  member: { version: string } | null
  plan: unknown
  own_overhead_ns_per_op: number
  own_overhead_cpu_ns_per_op: number
}

export interface Second extends Counts {
  type: 'second'
  phase: 'warmup' | 'measure'
  at_ns: number
  in_flight: number
  p50_ns: number
  p99_ns: number
  max_ns: number
  runtime: RuntimeFigures
}

export interface Timeline {
  type: 'timeline'
  /** Start and end of the first operations of the measured part, in ns since it began. */
  operations: [number, number][]
}

export interface End extends Counts {
  type: 'end'
  elapsed_ns: number
  latency: string
  cpu_user_ns: number
  cpu_system_ns: number
  rss_bytes: number
  rss_peak_bytes: number
  runtime: RuntimeFigures
  errors: ErrorCount[]
  stopped?: 'signal' | 'memory'
}

export type Line = Start | Second | Timeline | End

export const printLine = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`)

/** Runs the benchmark, writes its lines and returns the last one. */
export async function benchmark<T>(options: Options<T>): Promise<End> {
  const totalOps = options.totalOps ?? 1_000_000
  const warmupOps = options.warmupOps ?? Math.floor(totalOps / 10)
  if (!(Number.isInteger(totalOps) && totalOps >= 1)) throw new RangeError(`totalOps must be 1 or more, got ${totalOps}`)
  if (!(Number.isInteger(warmupOps) && warmupOps >= 0 && warmupOps < totalOps)) {
    throw new RangeError(`warmupOps must be from 0 to ${totalOps - 1}, got ${warmupOps}`)
  }
  const phase: PhaseOptions<T> = {
    nextOp: options.nextOp,
    check: options.check ?? (() => 'ok'),
    isUnknown: options.isUnknown ?? ((error) => error instanceof UnknownOutcome),
    inFlight: options.inFlight ?? 100,
    timeoutNs: (options.timeoutMs ?? 10_000) * 1e6,
    memoryCapBytes: options.memoryCapBytes ?? 512 * 1024 * 1024,
    clock: options.clock ?? monotonicNs,
    ...(options.signal ? { signal: options.signal } : {}),
  }
  if (!(phase.inFlight === Infinity || (Number.isInteger(phase.inFlight) && phase.inFlight >= 1))) {
    throw new RangeError(`inFlight must be 1 or more, or Infinity, got ${phase.inFlight}`)
  }
  const write = options.onLine ?? printLine
  const overhead = await ownOverhead(options.nullOp ?? { nextOp: () => Promise.resolve(undefined as T) }, phase)
  write({
    type: 'start',
    format: 1,
    client: options.client ?? { name: 'custom', version: '' },
    runtime: { name: 'node', version: process.versions.node },
    member: options.member ?? null,
    plan: options.plan ?? { total: totalOps, warmup: warmupOps, in_flight: inFlightText(phase.inFlight) },
    own_overhead_ns_per_op: overhead.wallNs,
    own_overhead_cpu_ns_per_op: overhead.cpuNs,
  })

  const fitness = new Fitness()
  const beganNs = phase.clock()
  const run = async (name: 'warmup' | 'measure', from: number, to: number) => {
    const running = new Phase({ ...phase, onSecond: (counts, inFlight) => {
      write({ type: 'second', phase: name, at_ns: phase.clock() - beganNs, ...counts, in_flight: inFlight, runtime: fitness.takeSecond() })
    } })
    return running.run(from, to)
  }
  let stopped = warmupOps > 0 ? (await run('warmup', 0, warmupOps)).stopped : undefined
  const endProfile = await profile()
  fitness.takeSecond()
  fitness.takePhase()
  const cpu = process.cpuUsage()
  let tally = new Tally()
  let elapsedNs = 0
  let timeline: [number, number][] = []
  if (stopped === undefined) ({ tally, elapsedNs, timeline, stopped } = await run('measure', warmupOps, totalOps))
  const { user, system } = process.cpuUsage(cpu)
  const end: End = {
    type: 'end',
    elapsed_ns: elapsedNs,
    ...tally.counts,
    latency: tally.encoded(),
    cpu_user_ns: user * 1000,
    cpu_system_ns: system * 1000,
    rss_bytes: process.memoryUsage.rss(),
    rss_peak_bytes: process.resourceUsage().maxRSS * 1024,
    runtime: fitness.takePhase(),
    errors: tally.errors(),
    ...(stopped === undefined ? {} : { stopped }),
  }
  fitness.close()
  await endProfile(stopped === undefined)
  write({ type: 'timeline', operations: timeline })
  write(end)
  return end
}

const monotonicNs: Clock = () => Math.round(performance.now() * 1e6)
const overheadNs = 100e6
const inFlightText = (inFlight: number) => (inFlight === Infinity ? 'unlimited' : inFlight)

/** What an operation costs that does nothing: in a run of at least 100 ms, after shorter ones that warm the code up. */
async function ownOverhead<T>(op: NonNullable<Options<T>['nullOp']>, options: PhaseOptions<T>) {
  const phase: PhaseOptions<T> = {
    nextOp: op.nextOp,
    check: op.check ?? (() => 'ok'),
    isUnknown: options.isUnknown,
    inFlight: options.inFlight === Infinity ? 100 : options.inFlight,
    timeoutNs: options.timeoutNs,
    memoryCapBytes: options.memoryCapBytes,
    clock: monotonicNs,
  }
  let warmedNs = 0
  for (let ops = 10_000; ; ) {
    const cpu = process.cpuUsage()
    const { elapsedNs } = await new Phase(phase).run(0, ops)
    if (elapsedNs >= overheadNs && warmedNs >= overheadNs) {
      const { user, system } = process.cpuUsage(cpu)
      return { wallNs: Math.round(elapsedNs / ops), cpuNs: Math.round(((user + system) * 1000) / ops) }
    }
    warmedNs += elapsedNs
    if (elapsedNs < overheadNs) ops *= 2
  }
}
