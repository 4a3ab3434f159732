import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DuelFigure } from '../src/data.ts'
import { alike, changeText, extent, position, ticks } from '../src/duel.ts'
import { planted } from '../fixtures/planted.mjs'

const figures: DuelFigure[] = planted('duel-1').duel.loads[0].figures
const named = (name: string) => figures.find(one => one.figure === name)!

test('changes are worded as on the terminal', () => {
  const ratio = named('response.p50')
  assert.deepEqual([1.051, 0.92, 1, 3.2, 0.25, null].map(value => changeText(ratio, value)), ['+5.1 %', '−8 %', '0 %', '× 3.2', '× 0.25', '—'])
  const share = named('ticks.late_share')
  assert.deepEqual([0.31, -0.005, 0].map(value => changeText(share, value)), ['+31 pp', '−0.5 pp', '0 pp'])
  assert.deepEqual([2, -3].map(value => changeText({ ...share, unit: 'count' }, value)), ['+2', '−3'])
})

test('a chart holds every block, no change, and the last interval', () => {
  for (const figure of figures) {
    const [low, high] = extent(figure, 0.05)
    const all = [alike(figure), figure.low, figure.high, ...figure.by_block.map(block => block.change)].filter(value => value !== null)
    assert.ok(all.length > 5 && all.every(value => position(figure, value) > low && position(figure, value) < high), figure.figure)
  }
})

test('half and twice are equally far from alike', () => {
  const ratio = named('response.p50')
  assert.equal(position(ratio, 1), 0)
  assert.ok(Math.abs(position(ratio, 2) + position(ratio, 0.5)) < 1e-12)
})

test('an axis has a handful of round places within its extent', () => {
  const ratio = named('response.p50')
  const all = ticks(ratio, [Math.log(0.93), Math.log(1.52)], 5)
  assert.deepEqual(all, [1, 1.2, 1.4])
  assert.deepEqual(ticks(named('ticks.late_share'), [-0.011, 0.022], 5), [-0.01, 0, 0.01, 0.02])
})
