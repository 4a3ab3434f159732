import { bins, onTimeMs, total, type Buckets } from '../percentile'
import { charts, type Panel } from './panel'

/** The width of a bar in ns: 1 ms around each whole ms, as the classes are; finer for loops faster than 200 Hz. */
function widthFor(buckets: Buckets, periodNs: number): number {
  if (periodNs >= 5e6) return 1e6
  const highest = buckets.at(-1)?.[0] ?? 1e6
  return Math.max(1e3, 10 ** Math.floor(Math.log10(highest / 60)))
}

/** How long the server's loop took from tick to tick. */
const panel: Panel = {
  id: 'intervals', title: 'Intervals between ticks', of: 'rung', order: 25,
  shows: ({ trial }) => total(trial.distributions.tick_interval ?? []) > 0,
  mount: context => charts(context, [{
    options: {
      title: 'Intervals over the hold', unit: 'count', axis: 'ms', log: true, wide: true,
      note: 'Logarithmic, so that single stalls stay visible. A bar is 1 ms wide, around its whole number of ms.',
    },
    plot: ({ trial }) => {
      const buckets = trial.distributions.tick_interval ?? []
      const width = widthFor(buckets, trial.tick_period_ns)
      const { at, counts } = bins(buckets, width)
      const onTime = onTimeMs(trial.tick_period_ns)
      return {
        x: at.map(ns => ns / 1e6),
        lines: [{ label: 'ticks', colour: 'c1', values: counts.map(count => count || null), drawn: 'bars' }],
        band: onTime ? { from: onTime[0] - 0.5, to: onTime[1] + 0.5, name: `on time: ${onTime[0]}–${onTime[1]} ms` } : null,
      }
    },
  }]),
}
export default panel
