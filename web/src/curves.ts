// Curves of several rungs over each other: of one run by load, or of several runs at one load.

import type { Plot } from './chart'
import type { DistributionName, TrialPage } from './data'
import { aligned, curve, type Curve } from './percentile'
import type { Colour } from './theme'

/** Times whose whole distributions are laid over each other, in words. */
export const TIMES = {
  response: 'Response time', service: 'Service time', delivery: 'Delivery latency', tick_interval: 'Tick intervals',
} as const satisfies Partial<Record<DistributionName, string>>
export type Times = keyof typeof TIMES

export function curveOf(trial: TrialPage | null, times: Times): Curve {
  return curve(trial?.distributions[times] ?? [])
}

/** One line each, by nines; null where none of them has enough samples for a curve. */
export function overlaid(times: Times, trials: (TrialPage | null)[], look: (index: number, count: number) => { label: string; colour: Colour }): Plot | null {
  const there = trials.map((trial, index) => ({ index, of: curveOf(trial, times) })).filter(one => one.of.nines.length > 1)
  if (there.length === 0) return null
  const { x, columns } = aligned(there.map(one => one.of))
  return { x, lines: there.map((one, at) => ({ ...look(one.index, trials.length), values: columns[at], drawn: 'steps' as const })) }
}
