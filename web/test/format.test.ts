import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytes, change, clock, duration, inUnit, ns, number, onAxis, perSecond, quantile, ratio, share, when } from '../src/format'

test('times have three digits and the unit that fits, as on the terminal', () => {
  for (const [value, text] of [
    [0, '0 ns'], [900, '900 ns'], [999.4, '999 ns'], [999.5, '1 µs'], [460_123, '460 µs'], [999_499, '999 µs'], [999_500, '1 ms'],
    [5_970_000, '5.97 ms'], [17_345_000, '17.3 ms'], [61_300_000_000, '61.3 s'], [119.94e9, '120 s'], [200e9, '3 m 20 s'], [3_725e9, '1 h 2 m'],
  ] as const) assert.equal(ns(value), text)
})

test('a share that is not nothing never reads as nothing, nor one that is not all as all', () => {
  assert.equal(share(0), '0 %')
  assert.equal(share(0.00003), '< 0.01 %')
  assert.equal(share(0.0065670148), '0.66 %')
  assert.equal(share(0.31249), '31.2 %')
  assert.equal(share(0.9996), '99.96 %')
  assert.equal(share(0.99999), '> 99.99 %')
  assert.equal(share(1), '100 %')
})

test('what may not be stated is a dash in every unit', () => {
  for (const unit of ['ns', 'share', 'count', 'per_s', 'bytes', 'number', 'cores', 'ms', 'bytes_per_s']) {
    for (const value of [null, undefined, NaN, Infinity]) assert.equal(inUnit(unit)(value), '—', `${unit} of ${value}`)
  }
})

test('large numbers are grouped, four digits are not, and millions are abbreviated', () => {
  assert.equal(number(1424), '1424')
  assert.equal(number(96081), '96\u202f081')
  assert.deepEqual([999_499, 999_500, 40_404_040, 1.5e9, -2e6].map(number), ['999\u202f499', '1 M', '40.4 M', '1.5 G', '−2 M'])
  assert.equal(number(-12_345), '−12\u202f345')
  assert.equal(number(0.853), '0.85')
  assert.equal(perSecond(96080.83), '96\u202f081/s')
})

test('bytes go by thousands', () => {
  assert.equal(bytes(15_663_104), '15.7 MB')
  assert.equal(bytes(999), '999 B')
  assert.equal(bytes(213_000_000), '213 MB')
})

test('a time is UTC wherever it is read', () => {
  assert.equal(when(Date.UTC(2026, 10, 29, 23, 5)), '2026-11-29 23:05')
})

test('clocks, percentiles and changes read as people say them', () => {
  assert.equal(clock(247), '4:07')
  assert.equal(clock(3723), '1:02:03')
  assert.deepEqual([0, 41.4, 200.4, null].map(duration), ['0 s', '41 s', '3 m 20 s', '—'])
  assert.equal(quantile(0.999), '99.9 %')
  assert.equal(change(100, 112), '+12 %')
  assert.equal(change(100, 40), '−60 %')
  assert.equal(change(100, 310), '×3.1')
  assert.equal(change(5, 5), '=')
  assert.equal(change(0, 5), '')
  assert.equal(change(null, 5), '')
})

test('a ratio far below 1 keeps two digits that matter, and cores are named beside the axis', () => {
  assert.deepEqual([0.51, 1.0249, 0.0667, 0.00789, 12.34, null].map(ratio), ['0.51', '1.02', '0.067', '0.0079', '12.3', '—'])
  assert.deepEqual([1.5e6, 30_600, 0].map(onAxis('per_s')), ['1.5 M/s', '30\u202f600/s', '0/s'])
  assert.equal(onAxis('cores')(1.5), '1.5')
  assert.deepEqual([onAxis('ns')(0), onAxis('bytes')(0), onAxis('ns')(2e9), onAxis('share')(0)], ['0', '0', '2 s', '0 %'])
})
