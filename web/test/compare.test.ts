import assert from 'node:assert/strict'
import { test } from 'node:test'
import { held, planted } from '../fixtures/planted.mjs'
import type { RunPage, RunRow, TickFile } from '../src/data'
import { before, capacityWords, matches } from '../src/runs'
import { bandOf, histogramOf } from '../src/ticklogs'
import { concluded, doubts, sharedLoads } from '../src/comparability'

const run = (id: string, loads: number[]) => held(id, loads) as RunPage

test('only loads that all runs held are compared', () => {
  assert.deepEqual(sharedLoads([run('a', [500, 1000, 2000]), run('b', [1000, 2000, 4000])]), [1000, 2000])
  assert.deepEqual(sharedLoads([run('a', [500]), run('b', [1000])]), [])
})

test('the conclusion says more only where no capacity lies in both', () => {
  const of = (id: string, lower: number | null, upper: number | null, more = {}) => {
    const page = run(id, [500])
    page.climb!.capacity = { ...page.climb!.capacity, lower_bound: lower, upper_bound: upper, ...more }
    return page
  }
  for (const [old, young, says] of [
    [of('a', 500, 1000), of('b', 1000, 2000), /^b holds more games than a \(a: 500 – 1000 games; b: 1000 – 2000 games\)\./],
    [of('a', 1000, null), of('b', null, 500), /^b holds fewer games than a /],
    [of('a', 500, 2000), of('b', 1000, 4000), /^The capacities overlap/],
    [of('a', 500, null), of('b', 1000, null), /^The capacities overlap/],
    // What is most likely counts, where it is known.
    [of('a', 500, 2000, { interval: [600, 800] }), of('b', 500, 2000, { interval: [900, 1500] }), /^b holds more games than a/],
    [of('a', null, null), of('b', 500, 1000), /^The capacity of a is not known/],
  ] as const) assert.match(concluded([old, young], undefined), says)
  const clients = of('b', 500, 1000)
  clients.climb!.capacity.unit = 'clients'
  assert.match(concluded([of('a', 500, 1000), clients], undefined), /^One counts games, the other clients/)
  assert.match(concluded([of('a', 1, 2), of('b', 2, 3), of('c', 5, 9)], undefined), /^c holds more than all others/)
  const [a, b] = [of('a', 500, 1000), of('b', 500, 1000)]
  const figure = a.objectives[0]
  for (const [page, value] of [[a, 0.2], [b, 0.1]] as const) page.climb!.rungs[0].evidence.objectives[0].value = value
  assert.match(concluded([a, b], figure), / At 500 games: late share of ticks 20 %, then 10 % \(−50 %\)\.$/)
})

test('a comparison of stored runs always says that they were not interleaved', () => {
  const said = doubts([run('a', [500]), run('b', [500])])
  assert.match(said.at(-1)!, /not interleaved/)
  assert.ok(!said.some(one => /machines differ|plans differ/.test(one)), said.join(' '))
})

test('seconds that were added to see undisturbed ones are no other plan', () => {
  const [a, b] = [run('a', [500]), run('b', [500])]
  b.climb!.rungs[0].ended_by = `${a.climb!.rungs[0].ended_by} and 6 s more, to see undisturbed seconds`
  for (const trial of b.trials) if (trial.rung) trial.rung.ended_by = b.climb!.rungs[0].ended_by
  assert.ok(!doubts([a, b]).some(one => /plans differ/.test(one)))
})

test('other machines, other plans and no common load are said, each by its name', () => {
  const [a, b] = [run('a', [500]), planted('chat-1') as RunPage]
  b.climb!.run.environment.cpu_model = 'another'
  const said = doubts([a, b]).join('\n')
  assert.match(said, /machines differ \(cpu model\)/)
  assert.match(said, /plans differ \(subject, objectives, hold length\)/)
  assert.match(said, /no load in common/)
})

test('a search looks at names, subjects, tags and verdicts, and every word must be found', () => {
  const row = planted('arena-1').run as RunRow
  for (const words of ['main', 'MAIN fail', 'release arena', 'ticker', '']) assert.ok(matches(row, words), words)
  for (const words of ['chat', 'main pass', 'released']) assert.ok(!matches(row, words), words)
})

test('a capacity is told by the bounds that are known', () => {
  const row = run('a', [500, 1000]).run
  const told = (lower: number | null, upper: number | null) => capacityWords({ ...row.capacity!, lower_bound: lower, upper_bound: upper })
  assert.equal(told(1000, 2000), '1000 – 2000 games')
  assert.equal(told(1000, null), '≥ 1000 games')
  assert.equal(told(null, 500), '< 500 games')
  assert.equal(told(null, null), 'unknown')
  assert.equal(capacityWords(null), '—')
})

const log = (histogram: Record<string, number>) => ({ histogram } as unknown as TickFile)

test('logs of different length lie over each other as shares', () => {
  const { x, columns } = histogramOf([log({ 15: 1, 17: 3 }), log({ 16: 200 })])
  assert.deepEqual(x, [15, 16, 17])
  assert.deepEqual(columns, [[0.25, null, 0.75], [null, 1, null]])
})

test('the band on time follows the commonest interval', () => {
  assert.deepEqual(bandOf([log({ 16: 900, 17: 800, 33: 5 })]), [15, 17])
  assert.deepEqual(bandOf([log({ 33: 900 })]), [32, 34])
  assert.deepEqual(bandOf([log({ 50: 9 })]), [49, 51])
  assert.equal(bandOf([log({ 72: 9 })]), null)
  assert.equal(bandOf([]), null)
})

test('a run is laid over the one that it repeats, else over the last one before it of the same subject', () => {
  const row = (id: string, started: number, more: Partial<RunRow> = {}): RunRow => ({ ...run(id, [500]).run, id, started_unix_ms: started, labels: {}, ...more })
  const all = [
    row('arena-1', 10), row('arena-2', 20), row('chat-1', 30, { subject: 'chat' }), row('arena-3', 40, { rungs: [] }),
    row('arena-4', 50), row('arena-5', 60, { labels: { again: 'arena-1' } }),
  ]
  const of = (id: string) => before(all.find(one => one.id === id)!, all)?.id ?? null
  assert.equal(of('arena-5'), 'arena-1', 'the repeated one')
  assert.equal(of('arena-4'), 'arena-2', 'neither another subject nor a run without rungs')
  assert.equal(of('arena-1'), null)
  assert.equal(of('chat-1'), null)
})
