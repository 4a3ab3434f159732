// The loop itself, against planted operations. Run by inflight/clients/check.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { benchmark, UnknownOutcome, type End, type Line, type Options, type Second } from '../src/inflight.js'

/** Runs without printing, and returns the last line and all lines. */
async function run<T>(options: Options<T>): Promise<{ end: End; seconds: Second[] }> {
  const lines: Line[] = []
  const end = await benchmark({ ...options, onLine: (line) => lines.push(line) })
  assert.equal(lines[0]?.type, 'start')
  assert.equal(lines.at(-1), end)
  return { end, seconds: lines.filter((line) => line.type === 'second') }
}

const names = ['ops', 'ok', 'failed', 'unknown', 'hits', 'misses', 'wrong'] as const
const counts = (end: End) => names.map((name) => end[name])
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('no more than inFlight operations run at once, and as many as that do', async () => {
  let open = 0
  let most = 0
  const nextOp = async (i: number) => {
    most = Math.max(most, ++open)
    // They end in another order than they began.
    for (let turns = i % 7; turns >= 0; turns--) await turn()
    open--
  }
  const { end } = await run({ nextOp, totalOps: 5000, inFlight: 13 })
  assert.equal(most, 13)
  assert.equal(end.ops, 4500)
})

test('every operation is counted once, however it ends', async () => {
  const started = new Map<number, number>()
  const nextOp = (i: number): PromiseLike<unknown> | unknown => {
    started.set(i, (started.get(i) ?? 0) + 1)
    switch (i % 6) {
      case 0: throw new TypeError('thrown at once')
      case 1: return Promise.reject(new Error('rejected'))
      case 2: return 'a result without a promise'
      case 3: return Promise.reject(new UnknownOutcome('who knows'))
      case 4: return { then: (ok: () => void, bad: (error: Error) => void) => { ok(); ok(); bad(new Error('settled twice')) } }
      default: return turn()
    }
  }
  const { end } = await run({ nextOp, totalOps: 6000, warmupOps: 0, inFlight: 10 })
  assert.equal(started.size, 6000)
  assert.ok([...started.values()].every((times) => times === 1))
  assert.deepEqual(counts(end), [6000, 3000, 2000, 1000, 0, 0, 0])
  assert.deepEqual(end.errors.map(({ cause, count }) => [cause, count]).sort(), [['Error', 1000], ['TypeError', 1000], ['UnknownOutcome', 1000]])
})

test('the warm-up is run first and not counted', async () => {
  let last = -1
  const nextOp = async (i: number) => {
    assert.equal(i, last + 1)
    last = i
    await turn()
    if (i < 300) throw new Error('fails in the warm-up')
  }
  const { end, seconds } = await run({ nextOp, totalOps: 1000, warmupOps: 300, inFlight: 5 })
  assert.deepEqual(counts(end), [700, 700, 0, 0, 0, 0, 0])
  assert.deepEqual(end.errors, [])
  const sum = (phase: string) => seconds.filter((each) => each.phase === phase).reduce((ops, each) => ops + each.ops, 0)
  assert.deepEqual([sum('warmup'), sum('measure')], [300, 700])
})

test('an operation that hangs ends as unknown, and its late result is not counted', async () => {
  const pending: (() => void)[] = []
  const nextOp = (i: number) => {
    if (i < 7) return new Promise<void>((resolve) => pending.push(resolve))
    // The last one starts when the first four have been given up. It ends all others, those four too late.
    for (const resolve of pending) resolve()
    return turn()
  }
  const { end } = await run({ nextOp, totalOps: 8, warmupOps: 0, inFlight: 4, timeoutMs: 20 })
  assert.deepEqual(counts(end), [8, 4, 0, 4, 0, 0, 0])
  assert.deepEqual(end.errors, [{ cause: 'timeout', count: 4, first: 'no result within 20 ms' }])
})

test('unlimited starts everything at once and stops at the memory cap', async () => {
  let open = 0
  let most = 0
  const nextOp = async () => {
    most = Math.max(most, ++open)
    await turn()
    open--
  }
  const all = await run({ nextOp, totalOps: 3000, warmupOps: 0, inFlight: Infinity, memoryCapBytes: 1e12 })
  assert.equal(most, 3000)
  assert.equal(all.end.ok, 3000)
  assert.equal(all.end.stopped, undefined)
  const capped = await run({ nextOp, totalOps: 100_000, warmupOps: 0, inFlight: Infinity, memoryCapBytes: 1 })
  assert.equal(capped.end.stopped, 'memory')
  assert.ok(capped.end.ops < 100_000)
  assert.equal(capped.end.ops, capped.end.ok + capped.end.unknown)
})

test('a stop ends the run, and what has no result by then is unknown', async () => {
  const controller = new AbortController()
  const nextOp = (i: number) => {
    if (i === 50) controller.abort()
    return i < 50 ? turn() : new Promise<void>(() => {})
  }
  const { end } = await run({ nextOp, totalOps: 1000, warmupOps: 0, inFlight: 4, signal: controller.signal })
  assert.equal(end.stopped, 'signal')
  assert.equal(end.ops, 51)
  assert.deepEqual([end.ok, end.unknown], [50, 1])
  assert.deepEqual(end.errors.map(({ cause, count }) => [cause, count]), [['stopped', 1]])
})

test('what cannot be run is refused', async () => {
  const nextOp = () => turn()
  await assert.rejects(benchmark({ nextOp, totalOps: 0 }), /totalOps must be 1 or more, got 0/)
  await assert.rejects(benchmark({ nextOp, totalOps: 10, warmupOps: 10 }), /warmupOps must be from 0 to 9, got 10/)
  await assert.rejects(benchmark({ nextOp, totalOps: 10, inFlight: 0 }), /inFlight must be 1 or more, or Infinity, got 0/)
})
