import type { DistributionName } from '../data'
import { aligned, curve, total, type Curve } from '../percentile'
import type { Colour } from '../theme'
import { charts, type Panel } from './panel'

const FAMILIES: [DistributionName, string, Colour][] = [
  ['response', 'response', 'c5'], ['service', 'service', 'c1'], ['first_byte', 'first byte', 'c6'],
  ['delivery', 'delivery', 'c3'], ['send_lag', 'send lag (this machine)', 'c8'], ['tls', 'TLS', 'c7'],
]

/** The whole distribution, towards the tail that users remember. */
const panel: Panel = {
  id: 'percentiles', title: 'Percentiles', of: 'rung', order: 50,
  shows: ({ trial }) => FAMILIES.some(([name]) => total(trial.distributions[name] ?? []) > 100),
  mount: context => charts(context, [{
    options: {
      title: 'Percentiles over the hold', unit: 'ns', axis: 'nines', log: true, wide: true,
      note: 'A curve ends where fewer than 100 samples lie beyond it.',
    },
    plot: ({ trial }) => {
      const there = FAMILIES
        .map(([name, label, tone]) => ({ label, tone, of: curve(trial.distributions[name] ?? []) }))
        .filter(family => family.of.nines.length > 1)
      if (there.length === 0) return null
      const { x, columns } = aligned(there.map(family => family.of as Curve))
      return {
        x,
        lines: there.map((family, at) => ({
          label: family.label, colour: family.tone, values: columns[at], dash: family.label.startsWith('send lag'), drawn: 'steps' as const,
        })),
      }
    },
  }]),
}
export default panel
