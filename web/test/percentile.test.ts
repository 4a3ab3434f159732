import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aligned, at, bins, curve, onTimeMs, quantileOf, type Buckets } from '../src/percentile'

/** 1 … count, one sample each. */
const each = (count: number): Buckets => Array.from({ length: count }, (_, index) => [index + 1, 1] as const)

test('a percentile is the smallest value with so many samples at or below it', () => {
  const of = each(100_000)
  assert.equal(quantileOf(of, 0.5), 50_000)
  assert.equal(quantileOf(of, 0.99), 99_000)
  assert.equal(quantileOf(of, 0.999), 99_900)
})

test('with fewer than 100 samples beyond it a percentile is not stated', () => {
  assert.equal(quantileOf(each(9_999), 0.99), null)
  assert.equal(quantileOf(each(10_000), 0.99), 9_900)
  assert.equal(quantileOf(each(100_000), 0.9999), null)
  assert.equal(quantileOf([], 0.5), null)
})

test('a curve goes through the percentiles and ends where fewer than 100 samples lie beyond', () => {
  const of = curve(each(100_000))
  assert.equal(of.count, 100_000)
  assert.equal(at(of, 1), 90_000)
  assert.equal(at(of, 2), 99_000)
  assert.equal(at(of, 3), 99_900)
  assert.equal(at(of, 3.01), null)
  assert.deepEqual(curve(each(99)).nines, [])
})

test('curves on one axis ascend, and each ends by itself', () => {
  const { x, columns } = aligned([curve(each(100_000)), curve(each(1_000))])
  assert.equal(x[0], 0)
  const last = (column: (number | null)[]) => x[column.findLastIndex(value => value !== null)]
  assert.ok(Math.abs(last(columns[0]) - 3) < 0.03)
  assert.ok(Math.abs(last(columns[1]) - 1) < 0.03)
  for (const column of columns) {
    const known = column.filter((value): value is number => value !== null)
    for (let index = 1; index < known.length; index++) assert.ok(known[index] >= known[index - 1])
  }
})

test('bins stand around whole ms, also the empty ones between, and no sample is lost', () => {
  const { at: where, counts } = bins([[14_600_000, 2], [15_400_000, 3], [16_670_000, 90], [21_000_000, 1]], 1e6)
  assert.deepEqual(where, [15e6, 16e6, 17e6, 18e6, 19e6, 20e6, 21e6])
  assert.deepEqual(counts, [5, 0, 90, 0, 0, 0, 1])
})

test('on time is the period in whole ms, one more, one less', () => {
  assert.deepEqual(onTimeMs(16_666_667), [15, 17])
  assert.deepEqual(onTimeMs(33_333_333), [32, 34])
  assert.deepEqual(onTimeMs(50_000_000), [49, 51])
  assert.equal(onTimeMs(0), null)
})
