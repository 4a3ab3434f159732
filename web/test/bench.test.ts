import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientsOf, measured, runAfterRun, runningProcess, spread, taskName, tasksOf } from '../src/bench.ts'
import type { BenchPage, ProcessPage } from '../src/data.ts'
import { planted } from '../fixtures/planted.mjs'

const bench = (): BenchPage => planted('clients-1').bench

test('tasks and clients keep the order of the table, also those that no client finished yet', () => {
  const { comparison, processes } = bench()
  assert.deepEqual(tasksOf(comparison, processes).map(taskName), ['get 3 B, 100 in flight', 'get 1 KB, 100 in flight'])
  assert.deepEqual(clientsOf(comparison, processes), ['rust', 'node', 'python'])
  const none = { ...comparison, cells: [] }
  assert.deepEqual(tasksOf(none, processes.slice(0, 1)).map(taskName), ['get 3 B, 100 in flight'])
  assert.deepEqual(clientsOf(none, processes.slice(0, 1)), ['rust'])
})

test('runs lie end to end in the order in which they ran, with a gap between any two', () => {
  const { comparison, processes } = bench()
  const [task] = tasksOf(comparison, processes)
  const { x, columns } = runAfterRun(processes, task, ['rust', 'node', 'python'], 'ops_per_s')
  assert.equal(x.length, 9 * 5 + 8)
  assert.ok(x.every((at, row) => row === 0 || at > x[row - 1]), 'time goes on')
  assert.deepEqual(columns.map(values => values.slice(0, 7)), [
    [60_000, 60_000, 60_000, 60_000, 60_000, null, null], [null, null, null, null, null, null, 30_000], [null, null, null, null, null, null, null],
  ])
  // The second block begins with node.
  assert.deepEqual(columns.map(values => values[18]), [null, 30_600, null])
})

test('profiled runs are not drawn and do not count', () => {
  const { comparison, processes } = bench()
  const profiled: ProcessPage[] = processes.map(process => ({ ...process, profile: 'cpu' }))
  assert.equal(measured(profiled), 0)
  assert.equal(measured(processes), 18)
  assert.deepEqual(runAfterRun(profiled, tasksOf(comparison, [])[0], ['rust'], 'ops_per_s').x, [])
})

test('the running process is the last one, as long as the run goes on', () => {
  const { processes } = bench()
  const last = { ...processes[3], has_ended: false }
  assert.equal(runningProcess('running', [...processes.slice(0, 3), last])?.number, 3)
  assert.equal(runningProcess('running', processes), null)
  assert.equal(runningProcess('interrupted', [last]), null)
})

test('one run has no spread', () => {
  const [cell] = bench().comparison.cells
  assert.equal(spread({ ...cell, runs: 1 }), null)
  assert.equal(spread({ ...cell, runs: 2, ops_per_s: 100, ops_per_s_stddev: 5 }), 0.05)
})
