import { agentRows, type Shared } from '../agents'
import type { AgentFacts } from '../data'
import { h, table } from '../dom'
import { shown } from '../figures'
import { redrawn, type Panel } from './panel'

function rowsOf(agents: AgentFacts[], shared: Set<Shared>): HTMLElement {
  const own = <T>(key: Shared, value: T): T[] => shared.has(key) ? [] : [value]
  const rows = agents.map(agent => [
    h('span', null, agent.name, agent.lost === null ? null : h('b', { class: 'bad' }, ' lost')),
    ...own('bots', shown(agent.bots, 'count')), ...own('workers', shown(agent.workers, 'count')),
    shown(agent.send_lag_p99_ns, 'ns', 'too few sends for a p99'), shown(agent.busy_share_max, 'share'), shown(agent.cpu_cores, 'cores'),
    shown(agent.clock_bound_ns, 'ns'), shown(agent.round_trip_ns, 'ns'), ...own('link', agent.link),
  ])
  const head = ['agent', ...own('bots', 'bots'), ...own('workers', 'workers'), 'send lag p99', 'busiest worker', 'CPU', 'clock within', 'round trip', ...own('link', 'link')]
  return table(head, rows)
}

/** How each of the machines did that made the load together. */
const panel: Panel = {
  id: 'agents', title: 'Agents', of: 'rung', order: 82,
  shows: ({ trial }) => (trial.rung?.agents ?? []).length > 0,
  mount: context => redrawn(context, ({ trial }) => trial.rung, ({ trial }) => {
    const agents = trial.rung?.agents ?? []
    const { shown: first, folded, alike, shared } = agentRows(agents)
    const common = alike.length > 0 ? `${agents.length} agents: ${alike.join(', ')}. ` : ''
    const worst = folded.length > 0 ? `The ${first.length} worst: lost ones, then by send lag. ` : ''
    const lost = agents.filter(agent => agent.lost !== null)
    const rest = folded.length === 1 ? '1 more agent' : `${folded.length} more agents`
    return [
      h('p', null, `${common}${worst}Figures are those of the hold; a clock is compared with that of the coordinator.`),
      ...lost.length > 0 ? [h('ul', { class: 'conclusions' }, ...lost.map(agent => h('li', null, h('b', null, agent.name), ` was lost: ${agent.lost}`)))] : [],
      rowsOf(first, shared),
      ...folded.length > 0 ? [h('details', null, h('summary', null, rest), rowsOf(folded, shared))] : [],
    ]
  }, 'agents'),
}
export default panel
