import assert from 'node:assert/strict'
import { test } from 'node:test'
import { logLabels, logRange, nineSplits, roomFor, span, top } from '../src/axes'

const none = null as never

test('the first seconds of a trial do not fill the width, and a zoom is left as it is', () => {
  assert.deepEqual(span(0, 0), [0, 10])
  assert.deepEqual(span(0, 4), [0, 10])
  assert.deepEqual(span(0, 90), [0, 90])
  assert.deepEqual(span(12, 14), [12, 14])
  assert.deepEqual(span(none, none), [0, 10])
})

test('a bound is shown unless that would press the data flat', () => {
  const bound = (at: number, right = false) => [{ at, name: '', right }]
  const above10 = top(10, undefined, [], false)
  assert.ok(above10 > 10 && above10 < 11, `${above10}`)
  assert.ok(top(10, undefined, bound(25), false) > 25)
  assert.equal(top(10, undefined, bound(1000), false), above10)
  assert.equal(top(10, undefined, bound(25, true), false), above10, 'the other axis is not asked')
  assert.equal(top(0, undefined, [], false), 1, 'nothing but noughts still has a height')
})

test('a logarithmic axis begins at a whole power and ends at the next 1, 2 or 5', () => {
  assert.deepEqual(logRange(3, 70, []), [1, 100])
  assert.deepEqual(logRange(3, 150, []), [1, 200])
  assert.deepEqual(logRange(null, null, []), [1, 20])
  const [from, to] = logRange(1, 50, [200])
  assert.ok(from === 1 && to >= 260, `the bound is on it: ${to}`)
})

test('wide logarithmic axes name powers of ten only, narrow ones 2 and 5 too', () => {
  assert.deepEqual(logLabels(none, [1, 2, 3, 5, 10, 20]), [1, 2, null, 5, 10, 20])
  assert.deepEqual(logLabels(none, [1, 2, 5, 10, 100, 1000]), [1, null, null, 10, 100, 1000])
})

test('percentiles are named at 0, 50, 90, 99 …, and none over the one before it', () => {
  assert.deepEqual(nineSplits(none, none as never, 0, 2).map(nines => Math.round(100 * (1 - 10 ** -nines))), [0, 50, 90, 99])
  const chart = { valToPos: (value: number) => value * 40 } as never
  assert.deepEqual(roomFor(40)(chart, [0, 0.3, 1, 2], 0, 0, 0), [0, null, 1, 2])
})
