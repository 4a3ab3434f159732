import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planted } from '../fixtures/planted.mjs'
import type { TrialPage } from '../src/data'
import { eventsOf, inRows } from '../src/events'

function trial(series: TrialPage['series']): TrialPage {
  const t = Array.from({ length: 10 }, (_, second) => second)
  return {
    ...planted('arena-1').trials[1],
    events: [
      { at_ns: 0, kind: 'agents', text: '[]' }, { at_ns: 0, kind: 'networks', text: '[]' },
      { at_ns: 8e9, kind: 'drain', text: '6s' }, { at_ns: 2e9, kind: 'hold', text: '' }, { at_ns: 5.5e9, kind: 'error', text: 'reset: by peer' },
      { at_ns: 7.5e9, kind: 'mark', text: 'deployed <b>1.4</b>' },
    ],
    hold: { from_ns: 2e9, to_ns: 8e9, cut_s: 0 }, series: { t, ...series },
  }
}

test('what ended a hold is in words, and seconds in a row that were disturbed are one row', () => {
  const all = eventsOf({ ...trial({ others_cores: [0, 0, 0, 1, 1.2, 1, 0, 1, 0, 0] }), disturbed_above: { others_cores: 0.2, steal_share: 0.02 } })
  assert.equal(all.find(event => event.kind === 'hold ends')?.text, 'after 6 s')
  assert.equal(all.filter(event => event.kind === 'disturbed').length, 4)
  assert.deepEqual(inRows(all.filter(event => event.kind === 'disturbed')).map(event => `${event.at}: ${event.text}`),
    ['3: for 3 s; in the first, other programs used 1.0 cores', '7: other programs used 1.0 cores'])
})

const kinds = (series: TrialPage['series']) => eventsOf(trial(series)).map(event => `${event.at} ${event.kind}`)

test('marks of the trial stand in the order of their time, in words', () => {
  assert.deepEqual(kinds({}), ['2 hold begins', '5.5 error', '7.5 mark', '8 hold ends'])
  assert.deepEqual(eventsOf(trial({})).filter(event => event.isBad).map(event => event.kind), ['error'])
})

test('connections that fall away in the hold are an event and so is their return; the ramp and the drain are none', () => {
  const open = [0, 100, 200, 200, 120, 200, 199, 200, 0, 0]
  assert.deepEqual(kinds({ open }).filter(kind => /conn/.test(kind)), ['4 connections fell', '5 reconnected'])
})

test('connections that a server of requests may close are no bad event', () => {
  const open = [0, 100, 200, 200, 120, 200, 199, 200, 0, 0]
  const isBad = (load_unit: TrialPage['load_unit']) =>
    eventsOf({ ...trial({ open }), load_unit }).find(event => event.kind === 'connections fell')?.isBad
  assert.deepEqual([isBad('req/s'), isBad('updates/s'), isBad('clients')], [false, false, true])
})

test('only the first second of failures is marked, and nothing where there were none', () => {
  assert.ok(kinds({ failed: [9, 0, 0, 0, 3, 4, 0, 0, 0, 0] }).includes('4 first failed'))
  assert.equal(kinds({ failed: [9, 0, 0, 0, 3, 4, 0, 0, 0, 0] }).length, 5)
  assert.equal(kinds({ lost: [0, 0, 0, 0, 0, 0, 0, 0, 0, 5] }).length, 4)
})

test('seconds that somebody else had are marked beyond the limit of the judge, and never before the hold', () => {
  assert.deepEqual(kinds({ steal_share: [0.5, 0, 0.02, 0.021, null, 0, 0, 0, 0, 0.4] }).filter(kind => /disturbed/.test(kind)), ['3 disturbed'])
})
