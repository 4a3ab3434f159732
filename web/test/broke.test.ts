import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planted } from '../fixtures/planted.mjs'
import { broke, failedTrial } from '../src/broke'
import type { RunPage } from '../src/data'

/** The planted arena, whose rung of 2000 games failed; its hold goes from 2 s to 14 s. */
const arena = (late: (t: number) => number | null): RunPage => {
  const page = planted('arena-1') as RunPage
  const { series } = failedTrial(page)!
  series.late_share = series.t!.map(t => late(t as number))
  return page
}

test('it broke in the first second of the hold beyond the limit', () => {
  const hold = failedTrial(arena(() => 0))!.hold!.from_ns / 1e9
  for (const [late, at] of [
    [(t: number) => t >= 7 ? 0.4 : 0.1, 7],
    // Beyond it before the hold only, or not stated.
    [(t: number) => t < hold ? 0.9 : t === 9 ? 0.25 : 0.1, 9],
    [(t: number) => t === 6 ? null : t > 8 ? 0.3 : 0.2, 9],
    [() => 0.2, null],
  ] as const) {
    const found = broke(arena(late))!
    assert.equal(found.at, at)
    assert.equal(at === null ? -1 : found.x[found.row], at ?? -1)
  }
})

test('the seconds around it are shown, with what the cause is seen by', () => {
  const page = arena(() => 0.1)
  const trial = failedTrial(page)!
  const length = 100
  trial.series = { t: Array.from({ length }, (_, t) => t), late_share: Array.from({ length }, (_, t) => t < 60 ? 0.1 : 0.5), subject_cpu_cores: Array.from({ length }, () => 1) }
  trial.hold!.to_ns = 90e9
  const found = broke(page)!
  assert.deepEqual([found.at, found.x[0], found.x.at(-1), found.figure!.values.length], [60, 45, 75, 31])
  assert.equal(found.cause?.label, 'server CPU')
  const why = page.climb!.conclusions.find(one => one.id === 'why_not_more')!
  ;(why.evidence.cause as { standing: string }).standing = 'open'
  assert.equal(broke(page)!.cause, null, 'a cause that is open is seen by nothing')
})

test('where no second counts what failed, the time that answers took is shown instead, without the limit of the other', () => {
  const page = arena(() => 0.1)
  page.objectives.push({ name: 'errors', unit: 'count', op: '==', bound: 0, text: 'errors == 0' })
  page.climb!.conclusions.find(one => one.id === 'why_not_more')!.evidence.signal = 'errors'
  const { series } = failedTrial(page)!
  series.response_mean_ns = series.t!.map(t => (t as number) * 1e9)
  delete series.errors
  const found = broke(page)!
  assert.deepEqual([found.figure?.label, found.isInstead, found.at], ['mean response time', true, null])
})

test('errors add up over the hold, and a server that exits broke when it did', () => {
  const page = arena(() => 0.1)
  const objective = { name: 'errors', unit: 'count', op: '<', bound: 5, text: 'errors < 5' }
  page.objectives.push(objective)
  page.climb!.conclusions.find(one => one.id === 'why_not_more')!.evidence.signal = 'errors'
  const trial = failedTrial(page)!
  trial.series.errors = trial.series.t!.map(t => (t as number) >= 4 ? 2 : 0)
  assert.equal(broke(page)!.at, 6, 'two a second from the fourth on')
  const gone = broke(planted('arena-5') as RunPage)!
  assert.equal(gone.at, 7)
  assert.equal(broke(planted('arena-2') as RunPage), null, 'nothing failed')
})
