import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstGraph, profileTables, stopRows, unseen, wordsOf } from '../src/profile'

const cost = (ns: number, share: number) => ({ ns, share, samples: 1 })
const growth = (name: string, share: number, is_sure: boolean) => ({ function: name, good: cost(1, 0.1), bad: cost(2, share), is_sure, deviations: 9 })

test('a profile is tables of at most ten functions, waiting first, and without rows none', () => {
  const many = Array.from({ length: 12 }, (_, at) => growth(`f${at}`, 0.05, at === 0))
  for (const [evidence, expected] of [
    [{ missing: 'perf is missing' }, []],
    [{ grew: [], most: [growth('parse', 0.9, false)] }, [['CPU', 1, false]]],
    [{ grew: many, most: [growth('parse', 0.9, false)] }, [['CPU', 10, true]]],
    [{ grew: [growth('chance', 0.1, false)], most: many, waits: { grew: [growth('hold', 1, true), growth('little', 0.001, false)] } }, [['Waiting', 1, true], ['CPU', 10, false]]],
    [{ allocations: { grew: many, most: [] } }, [['Memory allocated', 10, true]]],
    [{ allocations: { grew: [], most: [growth('parse', 0.9, false)] } }, [['Memory allocated', 1, false]]],
    [{ allocations: { missing: 'there is no JDK' } }, []],
    [{ grew: 'of another version' }, []],
  ] as const) {
    const tables = profileTables(evidence as never)
    assert.deepEqual(tables.map(one => [one.title, one.rows.length, one.marks]), expected)
  }
})

test('what a runtime tells of its stops is a row each, and of a damaged profile none', () => {
  const hold = (ms: number, gc_share: number | null) => ({ stops: { gc_share, gc_max_ns: gc_share && 4e6, loop_delay_ns: [1e6, ms * 1e6], callback: { ns: ms * 1e6, long: ms >= 20 ? 7 : 0 } } })
  for (const [evidence, expected] of [
    [{ good: hold(1, 0.5), bad: hold(40, 0.125) }, [
      ['garbage collection, share of the hold', '50 %', '12.5 %'], ['longest stop for garbage collection', '4 ms', '4 ms'],
      ['delay of the event loop, p99', '1 ms', '1 ms'], ['delay of the event loop, worst', '1 ms', '40 ms'],
      ['longest callback', '1 ms', '40 ms'], ['callbacks of 20 ms or longer', '0', '7'],
    ]],
    [{ good: { stops: { gc_share: null } }, bad: { stops: { gc_share: 0.5, callback: null } } }, [['garbage collection, share of the hold', '—', '50 %']]],
    [{ good: {}, bad: hold(1, 1) }, []], [{}, []],
  ] as const) assert.deepEqual(stopRows(evidence as never), expected)
})

test('the graph of waiting comes first where requests are known to wait, and loads have their units', () => {
  const graphs = (['cpu', 'waits'] as const).map(of => ({ of, graph: null, problem: null }))
  for (const [shown, grew, expected] of [
    [graphs, [growth('hold', 1, true)], 1], [graphs, [growth('hold', 1, false)], 0], [graphs, undefined, 0], [graphs.slice(0, 1), [growth('hold', 1, true)], 0],
    [graphs.slice(1), undefined, 0],
  ] as const) assert.equal(firstGraph([...shown], { waits: { grew } } as never), expected)
  const hold = (load: number) => ({ load, load_unit: 'in_flight', samples: load, cpu_ns: load * 2 })
  assert.deepEqual(wordsOf({ per: 'request', good: hold(5), bad: hold(600) } as never), { per: 'request', loads: ['5 in flight', '600 in flight'], samples: [5, 600], cpu_ns: [10, 1200] })
  assert.deepEqual(wordsOf({}), { per: 'operation', loads: ['—', '—'], samples: [null, null], cpu_ns: [null, null] })
})

test('samples that tell of little of the CPU say so', () => {
  const words = (cpu_ns: [number | null, number | null]) => ({ per: 'request', loads: ['50 req/s', '600 req/s'] as [string, string], samples: [1, 1] as [number, number], cpu_ns })
  for (const [cpu_ns, total_ns, expected] of [
    [[100, 100], [80, 120], ''], [[null, null], [1, 1], ''], [[0, null], [1, 1], ''],
    [[100, 100], [90, 1], "Samples tell of 1 % of the server's CPU at 600 req/s."],
    [[100, 100], [50, 1], "Samples tell of 1 % of the server's CPU at 600 req/s and 50 % of the server's CPU at 50 req/s."],
  ] as [[number | null, number | null], [number, number], string][]) assert.equal(unseen(words(cpu_ns), total_ns), expected)
})
