import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plotCsv, tableCsv } from '../src/csv'
import type { Plot } from '../src/chart'

const line = (label: string, values: (number | null)[], more = {}) => ({ label, values, colour: 'c1' as const, ...more })

test('a chart is written with full precision, the unit of each axis, and nothing where nothing is stated', () => {
  const plot: Plot = { x: [0, 1, 2], lines: [line('p99', [1_234_567, null, 0.1 + 0.2]), line('other programs', [0.25, 1, null], { right: true })] }
  assert.equal(plotCsv({ title: '', unit: 'ns', unitRight: 'cores' }, plot), 'time (s),p99 (ns),other programs (cores)\r\n0,1234567,0.25\r\n1,,1\r\n2,0.30000000000000004,\r\n')
  assert.equal(plotCsv({ title: '', unit: 'count', axis: 'ms' }, { x: [16], lines: [line('ticks', [9])] }), 'interval (ms),ticks\r\n16,9\r\n')
  assert.equal(plotCsv({ title: '', unit: 'per_s', axis: 'nines' }, { x: [0, 2], lines: [line('a,b', [1, 2])] }), 'quantile,"a,b (1/s)"\r\n0,1\r\n0.99,2\r\n')
})

test('a table has its units in the head, and in the cells where a column has several', () => {
  const [ns, share] = [{ value: 17_345_678, unit: 'ns' }, { value: 0.837, unit: 'share' }]
  assert.equal(tableCsv(['load', 'late', 'mixed'], [[{ value: 500, unit: 'count' }, share, ns], [{ value: 1000, unit: 'count' }, '', share]]),
    'load,late (share),mixed\r\n500,0.837,17345678 (ns)\r\n1000,,0.837 (share)\r\n')
})

test('words of a server are quoted and become no formula', () => {
  assert.equal(tableCsv(['a', '=b'], [['say "no"', '=cmd()'], ['two\nlines', '-x'], ['a,b', '@x']]), `a,'=b\r\n"say ""no""",'=cmd()\r\n"two\nlines",'-x\r\n"a,b",'@x\r\n`)
})
