// The agents that made a rung's load: which of them are shown, in which order, and what is the same for all. As on the terminal
// (crates/ladder/src/agents.rs).

import type { AgentFacts } from './data'
import { number } from './format'

/** Of more agents the worst are shown, and the others are folded. */
const SHOWN_MOST = 8

/** What of agents may be the same for all. */
export type Shared = 'bots' | 'workers' | 'link'

/** `alike`: what is the same for all, in words, and which facts that are; both empty of one agent. */
export interface AgentRows { shown: AgentFacts[]; folded: AgentFacts[]; alike: string[]; shared: Set<Shared> }

/** Lost ones first, then by send lag, then by the busiest worker. */
function worseFirst(a: AgentFacts, b: AgentFacts): number {
  return Number(b.lost !== null) - Number(a.lost !== null)
    || (b.send_lag_p99_ns ?? -1) - (a.send_lag_p99_ns ?? -1)
    || (b.busy_share_max ?? 0) - (a.busy_share_max ?? 0)
}

const WORDS: [Shared, (agent: AgentFacts) => string][] = [
  ['bots', ({ bots }) => `${number(bots)} ${bots === 1 ? 'bot' : 'bots'} each`],
  ['workers', ({ workers }) => `${number(workers)} ${workers === 1 ? 'worker' : 'workers'} each`],
  ['link', ({ link }) => `over ${link}`],
]

export function agentRows(agents: AgentFacts[]): AgentRows {
  const isFolded = agents.length > SHOWN_MOST
  const sorted = isFolded ? agents.slice().sort(worseFirst) : agents
  const common = agents.length > 1 ? WORDS.filter(([key]) => agents.every(agent => agent[key] === agents[0][key])) : []
  return {
    shown: sorted.slice(0, SHOWN_MOST), folded: sorted.slice(SHOWN_MOST),
    alike: common.map(([, words]) => words(agents[0])), shared: new Set(common.map(([key]) => key)),
  }
}
