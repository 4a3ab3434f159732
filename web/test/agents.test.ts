import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentRows } from '../src/agents'
import type { AgentFacts } from '../src/data'

const agent = (number: number, more: Partial<AgentFacts> = {}): AgentFacts => ({
  name: `m${number}`, bots: 250, workers: 2, send_lag_p99_ns: 100_000 + number * 1_000, busy_share_max: 0.01 * number, cpu_cores: 0.5,
  clock_bound_ns: 80_000, clock_offset_ns: -7, round_trip_ns: 160_000, link: 'eth0', lost: null, ...more,
})
const all = (count: number) => Array.from({ length: count }, (_, number) => agent(number))
const names = (agents: AgentFacts[]) => agents.map(one => one.name).join(' ')

test('what is the same for all agents is said once, and of many the worst are shown', () => {
  const alike = ['250 bots each', '2 workers each', 'over eth0']
  for (const [agents, shown, folded, words] of [
    [all(1), 'm0', 0, []],
    [all(2), 'm0 m1', 0, alike],
    [[agent(0), agent(1, { bots: 1, link: 'lo' })], 'm0 m1', 0, ['2 workers each']],
    [all(8), 'm0 m1 m2 m3 m4 m5 m6 m7', 0, alike],
    [all(9), 'm8 m7 m6 m5 m4 m3 m2 m1', 1, alike],
    [all(100), 'm99 m98 m97 m96 m95 m94 m93 m92', 92, alike],
  ] as [AgentFacts[], string, number, string[]][]) {
    const rows = agentRows(agents)
    assert.deepEqual([names(rows.shown), rows.folded.length, rows.alike], [shown, folded, words])
    assert.equal(rows.shared.size, words.length)
    assert.equal(new Set([...rows.shown, ...rows.folded]).size, agents.length, 'none is left out')
  }
})

test('a lost agent comes before the late ones, and one without sends after them', () => {
  const agents = [...all(9), agent(9, { lost: 'its user ended it', send_lag_p99_ns: null }), agent(10, { send_lag_p99_ns: null })]
  assert.equal(names(agentRows(agents).shown), 'm9 m8 m7 m6 m5 m4 m3 m2')
  assert.equal(names(agentRows(agents).folded), 'm1 m0 m10')
})
