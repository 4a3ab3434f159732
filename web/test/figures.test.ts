import assert from 'node:assert/strict'
import { test } from 'node:test'
import cases from '../fixtures/errors.json' with { type: 'json' }
import runs from '../fixtures/runs.json' with { type: 'json' }
import type { RunPage } from '../src/data'
import { errorsOf, failedOf, figureName } from '../src/figures'

test('errors are counted as the judge counts them', () => {
  for (const { connects_failed, count, ...rung } of cases) {
    const counts = (of: object) => of as Record<string, number>
    const { errors, ...flow } = rung
    assert.equal(errorsOf({ ...flow, errors: counts(errors), connections: { failed: counts(connects_failed) } }), count, JSON.stringify(rung))
  }
})

test('a request that never left or was never answered has failed, as on the terminal; a message of a game has not', () => {
  const rung = (runs as unknown as RunPage[]).flatMap(page => page.climb?.rungs ?? [])[0]
  const counted = { ...rung, failed: 1, lost: 2, not_sent: 30, unanswered_at_stop: 400 }
  assert.deepEqual((['req/s', 'games'] as const).map(load_unit => failedOf({ ...counted, load_unit })), [433, 3])
})

test('figures are named as people say them', () => {
  assert.deepEqual(['deliveries.latency.p99', 'subject.cpu_per_message', 'errors.share', 'response.p999'].map(figureName),
    ['delivery p99', 'server CPU per message', 'share of errors', 'response p99.9'])
})

test('what a rung was judged by is what its own counts say', () => {
  const rungs = (runs as unknown as RunPage[]).flatMap(page => page.climb?.rungs ?? [])
  const judged = rungs.flatMap(rung => rung.evidence.objectives
    .filter(one => one.objective.startsWith('errors ')).map(one => [one.value, errorsOf(rung)]))
  assert.ok(judged.some(([value]) => value! > 0), 'a rung with errors is among them')
  for (const [value, own] of judged) assert.equal(own, value)
})
