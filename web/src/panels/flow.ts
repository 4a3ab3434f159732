import { lineOf, type Line } from '../chart'
import { has, seconds } from '../columns'
import { charts, marks, type Panel } from './panel'

const lines = (all: (Line | null)[]) => all.filter((line): line is Line => line !== null)

/** What was planned, what left, what came back. */
const panel: Panel = {
  id: 'flow', title: 'Messages', of: 'rung', order: 60,
  shows: ({ trial }) => has(trial.series, 'offered', 'sent', 'answered'),
  mount: context => charts(context, [
    {
      options: { title: 'Offered, sent, answered', unit: 'per_s', sync: context.sync },
      plot: ({ trial }) => ({
        x: seconds(trial.series), ...marks(trial),
        lines: lines([
          lineOf(trial.series, 'offered', 'offered', 'c8', { dash: true }),
          lineOf(trial.series, 'sent', 'sent', 'c1'),
          lineOf(trial.series, 'answered', 'answered', 'c3'),
        ]),
      }),
    },
    {
      options: { title: 'Failed, lost, late', unit: 'per_s', sync: context.sync, top: 4 },
      plot: ({ trial }) => {
        const bad = (['failed', 'lost', 'late'] as const).some(name => (trial.series[name] ?? []).some(value => value !== null && value > 0))
        if (!bad) return null
        return {
          x: seconds(trial.series), ...marks(trial),
          lines: lines([
            lineOf(trial.series, 'failed', 'failed', 'fail', { fill: true }),
            lineOf(trial.series, 'lost', 'lost', 'c5'),
            lineOf(trial.series, 'late', 'answered late', 'c4', { dash: true }),
          ]),
        }
      },
    },
    {
      options: { title: 'Open connections', unit: 'count', sync: context.sync },
      plot: ({ trial }) => {
        const open = lineOf(trial.series, 'open', 'open', 'c1', { fill: true })
        return open ? { x: seconds(trial.series), ...marks(trial), lines: [open] } : null
      },
    },
    {
      options: { title: 'Server frames', unit: 'per_s', sync: context.sync },
      plot: ({ trial }) => {
        const frames = lineOf(trial.series, 'frames', 'frames drawn', 'c2')
        return frames ? { x: seconds(trial.series), ...marks(trial), lines: [frames] } : null
      },
    },
    {
      options: { title: 'Bytes, both directions', unit: 'bytes_per_s', sync: context.sync },
      plot: ({ trial }) => {
        const bytes = lineOf(trial.series, 'bytes', 'bytes', 'c6')
        return bytes ? { x: seconds(trial.series), ...marks(trial), lines: [bytes] } : null
      },
    },
  ]),
}
export default panel
