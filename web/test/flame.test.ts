import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlameGraph } from '../src/data'
import { callersOf, fitted, framesOf, layout, neighbour, ownCost, search, type Side } from '../src/flame'

const graph = (functions: FlameGraph['functions'], frames: FlameGraph['frames'], total: [number, number]): FlameGraph =>
  ({ total, functions, frames, steps: [0.01, 0.05, 0.2], least_share: 0.001, left_out: [0, 0], too_deep: [0, 0] })

/** all 100 → 200: main (parse 80 → 40, render 0 → 150, itself 10 → 10), sweep 10 → 0 */
const frames = framesOf(graph(
  [['user', 'main'], ['user', 'shop::parse'], ['user', 'render'], ['gc', 'sweep']],
  [[0, 0, 90, 200, 3], [1, 1, 80, 40, -2], [1, 2, 0, 150, 3], [2, 1, 0, 30, 1], [0, 3, 10, 0, -1]], [100, 200],
))
const drawn = (zoom: number, side: Side, least = 0) => layout(frames, zoom, side, least).map(({ frame, row, x, width }) => [frame, row, x, width])

test('frames know their callers and where what they call ends', () => {
  assert.deepEqual(frames.map(({ depth, caller, end }) => [depth, caller, end]), [[0, -1, 6], [1, 0, 5], [2, 1, 3], [2, 1, 5], [3, 3, 5], [1, 0, 6]])
  assert.deepEqual(callersOf(frames, 4), [0, 1, 3])
  assert.deepEqual(frames.map((_, at) => ownCost(frames, at)), [[0, 0], [10, 10], [80, 40], [0, 120], [0, 30], [10, 0]])
})

test('a width is the share of the time at one load, and a frame that took none there is not drawn', () => {
  for (const [zoom, side, least, expected] of [
    [0, 1, 0.01, [[0, 0, 0, 1], [1, 1, 0, 1], [2, 2, 0, 0.2], [3, 2, 0.2, 0.75], [4, 3, 0.2, 0.15]]],
    [0, 0, 0.01, [[0, 0, 0, 1], [1, 1, 0, 0.9], [2, 2, 0, 0.8], [5, 1, 0.9, 0.1]]],
    // Without its caller nothing is drawn either, and what stands behind it keeps its place.
    [0, 1, 0.5, [[0, 0, 0, 1], [1, 1, 0, 1], [3, 2, 0.2, 0.75]]],
    [3, 1, 0.01, [[3, 0, 0, 1], [4, 1, 0, 0.2]]],
    [3, 0, 0.01, []],
  ] as const) assert.deepEqual(drawn(zoom, side, least), expected)
  assert.deepEqual(layout(framesOf(graph([], [], [0, 0])), 0, 1, 0), [])
})

test('no frame is wider than its caller, and a recursion as deep as any is drawn', () => {
  const deep = framesOf(graph([['user', 'f']], Array.from({ length: 10_000 }, (_, at): [number, number, number, number, number] => [at, 0, 5, 5, 0]), [5, 5]))
  assert.equal(layout(deep, 0, 1, 0.001).length, 10_001)
  assert.equal(callersOf(deep, 10_000).length, 10_000)
})

test('a search tells the share of what matches, once where matches call each other', () => {
  for (const [text, side, found, share] of [
    ['', 1, [], 0], ['  ', 1, [], 0], ['RENDER', 1, [3], 0.75], ['render', 0, [3], 0], ['parse', 1, [2, 4], 0.35],
    ['e', 1, [2, 3, 4, 5], 0.95], ['all', 1, [], 0], ['<img', 1, [], 0],
  ] as const) assert.deepEqual(((it) => [[...it.found], it.share])(search(frames, text, side)), [found, share], text)
})

test('arrow keys lead to the caller, the widest that is called, and the neighbours', () => {
  const boxes = layout(frames, 0, 1, 0.01)
  for (const [at, key, expected] of [
    [0, 'ArrowUp', null], [0, 'ArrowDown', 1], [1, 'ArrowDown', 3], [1, 'ArrowUp', 0], [3, 'ArrowLeft', 2], [2, 'ArrowRight', 3], [2, 'ArrowLeft', null],
    [4, 'ArrowDown', null], [4, 'Home', 0], [4, 'x', null], [5, 'ArrowUp', null],
  ] as const) assert.equal(neighbour(frames, boxes, at, key), expected, `${at} ${key}`)
  assert.equal(neighbour(frames, layout(frames, 3, 1, 0.01), 3, 'ArrowUp'), null, 'what is zoomed away is not reached')
})

test('a name that does not fit loses its path, then its end', () => {
  for (const [name, chars, expected] of [
    ['render', 6, 'render'], ['render', 5, 'rend…'], ['render', 2, ''], ['shop::cart::hold', 11, '…cart::hold'], ['shop::cart::hold', 6, '…hold'],
    ['shop::cart::hold', 4, 'sho…'], ['😀😀😀😀', 3, '😀😀…'],
  ] as const) assert.equal(fitted(name, chars), expected)
})
