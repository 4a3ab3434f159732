// What all languages agree on: the files beside ../../check, which ../../expected.py and README.md stand for.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { decodeFromCompressedBase64, type JsHistogram } from 'hdr-histogram-js'
import { fake } from '../src/fake.js'
import { benchmark } from '../src/inflight.js'
import { BadPlan, readPlan } from '../src/plan.js'
import { operations } from '../src/runner.js'
import { nullStore } from '../src/store.js'
import { Workload } from '../src/workload.js'

const read = (name: string) => JSON.parse(readFileSync(name, 'utf8'))

test('the fake gives the expected histogram, bucket by bucket', async () => {
  const expected = read('fake-histogram.json') as {
    plan: { total: number; warmup: number }
    counts: Record<string, number>
    buckets: [number, number][]
  }
  const { total, warmup } = expected.plan
  const end = await benchmark({ ...fake(), totalOps: total, warmupOps: warmup, onLine: () => {} })
  for (const [name, count] of Object.entries(expected.counts)) assert.equal(end[name as 'ops'], count, name)
  const histogram = decodeFromCompressedBase64(end.latency) as JsHistogram
  assert.equal(histogram.totalCount, expected.counts['ops'])
  for (const [lowest, count] of expected.buckets) {
    // The sum over all buckets is right, so that no other bucket holds anything.
    assert.equal(histogram.getCountAtIndex(histogram.countsArrayIndex(lowest)), count, `from ${lowest} ns`)
  }
})

test('keys, values and kinds are those of every language', () => {
  const expected = read('vectors.json') as Record<string, string[]> & { values: Record<string, string> }
  const workload = (op: string, keys: object, value_bytes = 70) =>
    new Workload(readPlan(JSON.stringify({ target: 'null:', op, keys, value_bytes, seed: 7 })))
  const mix = workload('mix', { pattern: 'uniform', count: 1000 })
  const zipf = workload('mix', { pattern: 'zipf', count: 1000, theta: 0.99 })
  const all = Array.from({ length: 200 }, (_, i) => i)
  assert.deepEqual(all.map(mix.kind), expected['kinds'])
  assert.deepEqual(all.map(mix.key), expected['uniform_1000'])
  assert.deepEqual(all.map(zipf.key), expected['zipf_1000_0.99'])
  const many = workload('get', { pattern: 'uniform', count: 1_000_000 })
  for (const [name, value] of Object.entries(expected.values)) assert.equal(many.value(Number(name.slice(1))), value)
})

test('plans are read, or refused with everything that is wrong', () => {
  const plans = read('plans.json') as { good: { plan: object; as_run: object }[]; bad: { plan: string; message: string }[] }
  for (const { plan, as_run } of plans.good) assert.deepEqual(readPlan(JSON.stringify(plan)), as_run)
  for (const { plan, message } of plans.bad) assert.throws(() => readPlan(plan), new BadPlan(message))
  assert.throws(() => readPlan('{"target":"null:","variant":"semaphore"}'), /"variant" is for the Java runner only/)
})

test('a client that returns a wrong value or length is counted as wrong, and a missing one as a miss', async () => {
  const plan = readPlan('{"target":"null:","op":"get","total":400,"warmup":0,"keys":{"pattern":"uniform","count":4},"value_bytes":10}')
  const workload = new Workload(plan)
  const right = nullStore(workload)
  const planted: Record<string, unknown> = { k0: workload.value(0) + 'x', k1: 'x'.repeat(10), k2: null }
  const broken = { ...right, get: (key: string) => (key in planted ? Promise.resolve(planted[key]) : right.get(key)) }
  const drawn = [0, 0, 0, 0]
  for (let i = 0; i < 400; i++) drawn[workload.key(i)]!++
  const end = await benchmark({ ...operations(plan, broken, workload), totalOps: 400, warmupOps: 0, onLine: () => {} })
  const wrong = drawn[0]! + drawn[1]!
  assert.deepEqual([end.hits, end.misses, end.wrong, end.failed, end.ok], [drawn[3], drawn[2], wrong, wrong, drawn[2]! + drawn[3]!])
  assert.deepEqual(end.errors.map(({ cause, count }) => [cause, count]), [['wrong', wrong]])
})
