import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begun, planted } from '../fixtures/planted.mjs'
import { column, holdSpan, latest, phase, putSecond, rowsOfHold, sumOver } from '../src/columns'
import type { RunPage, Series, TrialPage } from '../src/data'
import { soFar, valueOf, whyNot } from '../src/figures'
import { apply, running, rungsOf, normalize, type LiveEvent } from '../src/state'

const live = (): RunPage => ({ ...planted('live-1', { state: 'running' }), climb: null, trials: [] })
const full = (seq: number, load: number): TrialPage => ({ ...planted('arena-1').trials[1], seq, load })
const secondsOf = (trial: TrialPage): LiveEvent[] => (trial.series.t as number[]).map((t, row) => ({
  kind: 'second', data: { seq: trial.seq, t, values: Object.fromEntries(Object.entries(trial.series).map(([name, values]) => [name, values[row]]).filter(([name, value]) => name !== 't' && value !== null)) },
}))

test('seconds that arrive one by one make the columns that the whole trial has', () => {
  const trial = full(2, 500)
  const page = live()
  apply(page, { kind: 'trial', data: begun(trial) })
  for (const event of secondsOf(trial)) apply(page, event)
  for (const [name, values] of Object.entries(trial.series)) {
    assert.deepEqual(page.trials[0].series[name] ?? values.map(() => null), values, name)
  }
})

test('whatever comes twice, or late, leaves the same columns', () => {
  const trial = full(2, 500)
  const once = live()
  const twice = live()
  for (const page of [once, twice]) apply(page, { kind: 'trial', data: begun(trial) })
  const events = secondsOf(trial)
  for (const event of events) apply(once, event)
  for (const event of [...events.slice(0, 6), ...events.slice(2), ...events.slice(-3).reverse()]) apply(twice, event)
  assert.deepEqual(twice.trials[0].series, once.trials[0].series)
})

test('values that come later complete their second and erase nothing', () => {
  const series: Series = { t: [] }
  putSecond(series, 0, { sent: 10 })
  putSecond(series, 1, { sent: 11 })
  putSecond(series, 0, { subject_cpu_cores: 0.5 })
  assert.deepEqual(series, { t: [0, 1], sent: [10, 11], subject_cpu_cores: [0.5, null] })
})

test('a second that was missed and comes after younger ones finds its place', () => {
  const series: Series = { t: [] }
  for (const t of [0, 2, 1]) putSecond(series, t, { sent: t * 10 })
  assert.deepEqual(series, { t: [0, 1, 2], sent: [0, 10, 20] })
})

test('a second of a trial that nobody announced is dropped', () => {
  const page = live()
  const changed = apply(page, { kind: 'second', data: { seq: 9, t: 0, values: { sent: 1 } } })
  assert.deepEqual(changed, { page: false, trial: null, second: false })
  assert.equal(page.trials.length, 0)
})

test('a judged rung replaces the running one and keeps the seconds that were seen', () => {
  const trial = full(2, 500)
  const page = live()
  apply(page, { kind: 'trial', data: begun(trial) })
  assert.equal(running(page)?.seq, 2)
  for (const event of secondsOf(trial)) apply(page, event)
  apply(page, { kind: 'rung', data: { ...trial, series: { t: [] } } })
  assert.equal(running(page), null)
  assert.equal(page.trials.length, 1)
  assert.equal(page.trials[0].rung?.verdict, 'PASS')
  assert.equal(page.trials[0].series.t.length, trial.series.t.length)
})

test('a run that ends brings its answers and keeps the seconds', () => {
  const trial = full(2, 500)
  const page = live()
  apply(page, { kind: 'trial', data: begun(trial) })
  for (const event of secondsOf(trial)) apply(page, event)
  apply(page, { kind: 'run', data: { ...planted('live-1'), trials: [{ ...trial, series: { t: [] } }] } })
  assert.equal(page.run.state, 'finished')
  assert.equal(page.climb?.conclusions.length, 3)
  assert.equal(page.trials[0].series.t.length, trial.series.t.length)
})

test('calibrations are no rungs', () => {
  const page = planted('arena-1') as RunPage
  assert.match(page.trials[0].purpose, /^calibration/)
  assert.deepEqual(rungsOf(page).map(trial => trial.seq), [1, 2, 3])
})

test('the phase follows from the marks on the time axis', () => {
  const trial = begun(full(2, 500))
  const seen: string[] = [phase(trial)]
  for (const kind of ['settle', 'hold', 'drain', 'end']) {
    trial.events = [...trial.events, { at_ns: 1e9, kind, text: '' }]
    seen.push(phase(trial))
  }
  assert.deepEqual(seen, ['ramp', 'settle', 'hold', 'drain', 'done'])
})

test('sums over the hold leave the ramp out, and a sum of nothing is nothing', () => {
  const trial = full(2, 500)
  const rows = rowsOfHold(trial)
  const [from, to] = holdSpan(trial)!
  assert.ok(rows.every(row => trial.series.t[row]! >= from && trial.series.t[row]! < to))
  assert.equal(rows.length, to - from)
  assert.equal(sumOver(trial.series, 'sent', rows), rows.reduce((sum, row) => sum + trial.series.sent[row]!, 0))
  assert.equal(sumOver(trial.series, 'nobody', rows), null)
  assert.equal(column({ t: [0, 1], empty: [null, null] }, 'empty'), null)
  assert.equal(latest({ t: [0, 1, 2], sent: [1, 2, null] }, 'sent'), 2)
})

test('a share so far is of all ticks of the hold, never a mean of shares', () => {
  const trial = { ...full(2, 500), hold: { from_ns: 0, to_ns: 2e9, cut_s: 0 }, rung: null, series: { t: [0, 1, 2], ticks_due: [100, 900, 5], ticks_over: [50, 0, 5], ticks_under: [0, 0, 0], ticks_missed: [0, 0, 0] } }
  assert.equal(soFar(trial, 'ticks.late_share'), 0.05)
  assert.equal(soFar(trial, 'response.p99'), null)
})

test('what an objective was judged by is what the ladder draws', () => {
  const page = planted('arena-1') as RunPage
  const [first, , last] = rungsOf(page)
  const [low, high] = [first, last].map(trial => valueOf(trial.rung, page.objectives[0]))
  assert.equal(low, first.rung!.ticks!.late_share)
  assert.ok(low! < 0.25 && high! > 0.25)
  assert.equal(valueOf(first.rung, { name: 'response.p99' }), first.rung!.response_ns!.p99)
  assert.equal(valueOf(first.rung, { name: 'audit.wrong' }), null)
})

test('a dash tells its reason', () => {
  assert.equal(whyNot(null, 'p99'), 'not measured in this run')
  assert.match(whyNot({ count: 12_797, p999: null }, 'p999'), /needs 100\u202f000 samples .* there are 12\u202f797/)
  assert.match(whyNot({ count: 1_000_000, p99: null }, 'p99'), /never answered/)
})

test('a rung that stands in the answers alone is found, and no later event takes it back', () => {
  const page = planted('arena-1') as RunPage
  const told = page.trials[1].rung
  for (const trial of page.trials) trial.rung = null
  assert.equal(normalize(page).trials[1].rung, page.climb!.rungs[0])
  assert.deepEqual(page.trials[1].rung, told)
  apply(page, { kind: 'trial', data: { ...page.trials[1], rung: null } })
  assert.deepEqual(page.trials[1].rung, told)
  const ended = { ...page, trials: page.trials.map(trial => ({ ...trial, rung: null, series: {}, distributions: {}, slowest: [] })) }
  apply(page, { kind: 'run', data: ended })
  assert.deepEqual(rungsOf(page).map(trial => trial.rung?.load), [500, 1000, 2000])
  assert.ok(page.trials[1].series.t!.length > 0 && page.trials[1].distributions.response, 'seconds and distributions are kept')
})
