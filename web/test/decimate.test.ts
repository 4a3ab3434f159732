import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decimate, window, type Column } from '../src/decimate'

/** xorshift: the same numbers in every run. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13; state >>>= 0
    state ^= state >>> 17
    state ^= state << 5; state >>>= 0
    return state / 2 ** 32
  }
}

const seconds = (count: number) => Array.from({ length: count }, (_, at) => at)

test('few points are left as they are', () => {
  const x = seconds(60)
  const thin = decimate(x, [x.slice()], 100)
  assert.equal(thin.per, 1)
  assert.deepEqual(thin.x, x)
})

test('the one second that stalled in an hour stays visible, however few points there are', () => {
  const x = seconds(3600)
  for (let at = 0; at < 3600; at += 97) {
    const values: Column = x.map(() => 1)
    values[at] = 50
    for (const points of [10, 100, 1000]) {
      const thin = decimate(x, [values], points)
      assert.ok(thin.columns[0].includes(50), `the stall at ${at} is lost with ${points} points`)
    }
  }
})

test('every value that is kept was measured, instants ascend, and no more points come than were asked for', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed)
    const rows = 5 + Math.floor(next() * 4000)
    const x = seconds(rows)
    const columns: Column[] = [0, 1, 2].map(() => x.map(() => next() < 0.2 ? null : Math.floor(next() * 1e6)))
    const points = 4 + Math.floor(next() * 500)
    const thin = decimate(x, columns, points)
    assert.ok(thin.x.length <= points + 1, `seed ${seed}: ${thin.x.length} points of ${points}`)
    for (let at = 1; at < thin.x.length; at++) assert.ok(thin.x[at] > thin.x[at - 1], `seed ${seed}: instants do not ascend at ${at}`)
    columns.forEach((column, index) => {
      const real = new Set(column)
      assert.equal(thin.columns[index].length, thin.x.length)
      for (const value of thin.columns[index]) assert.ok(value === null || real.has(value), `seed ${seed}: ${value} was invented`)
      const known = column.filter((value): value is number => value !== null)
      const kept = thin.columns[index].filter((value): value is number => value !== null)
      if (known.length > 0) {
        assert.equal(Math.max(...kept), Math.max(...known), `seed ${seed}: the highest is lost`)
        assert.equal(Math.min(...kept), Math.min(...known), `seed ${seed}: the lowest is lost`)
      }
    })
  }
})

test('a gap stays a gap', () => {
  const x = seconds(1000)
  const values: Column = x.map(t => t >= 400 && t < 600 ? null : 1)
  const thin = decimate(x, [values], 100)
  thin.x.forEach((t, row) => { if (t >= 420 && t < 580) assert.equal(thin.columns[0][row], null, `at ${t}`) })
})

test('means keep the sum of what is stacked', () => {
  const x = seconds(1000)
  const thin = decimate(x, [x.map(() => 7)], 100, 'mean')
  assert.equal(thin.per, 10)
  assert.ok(thin.columns[0].every(value => value === 7))
})

test('a window has one neighbour on each side, so that lines reach the edge', () => {
  assert.deepEqual(window(seconds(100), 10.5, 20.5), [10, 22])
  assert.deepEqual(window(seconds(100), -5, 500), [0, 100])
})
