import { lineOf, type Line } from '../chart'
import { has, seconds } from '../columns'
import { share } from '../format'
import { charts, marks, type Panel } from './panel'

/** Ticks by class, and the share of them that was late. */
const panel: Panel = {
  id: 'ticks', title: 'Ticks', of: 'rung', order: 20,
  shows: ({ trial }) => has(trial.series, 'ticks_due', 'ticks_on_time'),
  mount: context => charts(context, [
    {
      options: { title: 'Ticks by class, stacked', unit: 'per_s', stacked: true, sync: context.sync },
      plot: ({ trial }) => ({
        x: seconds(trial.series), ...marks(trial),
        lines: [
          lineOf(trial.series, 'ticks_missed', 'missed', 'invalid'),
          lineOf(trial.series, 'ticks_under', 'under (too soon)', 'c4'),
          lineOf(trial.series, 'ticks_over', 'over (too late)', 'fail'),
          lineOf(trial.series, 'ticks_on_time', 'on time', 'pass'),
        ].filter((line): line is Line => line !== null),
      }),
    },
    {
      options: { title: 'Late share', unit: 'share', sync: context.sync, top: 0.05, note: '(over + under + missed) / due' },
      plot: ({ trial, page }) => {
        const line = lineOf(trial.series, 'late_share', 'late share', 'c5', { fill: true })
        if (!line) return null
        const bounds = page.objectives
          .filter(objective => objective.name === 'ticks.late_share')
          .map(objective => ({ at: objective.bound, name: `objective: ${objective.op} ${share(objective.bound)}` }))
        return { x: seconds(trial.series), ...marks(trial), lines: [line], bounds }
      },
    },
  ]),
}
export default panel
