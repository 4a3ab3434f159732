import assert from 'node:assert/strict'
import { test } from 'node:test'
import { profileTables } from '../src/profile'

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
