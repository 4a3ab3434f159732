import { lineOf } from '../chart'
import { has, seconds } from '../columns'
import { charts, marks, type Panel } from './panel'

/** The server's process: what it used while it was asked. */
const panel: Panel = {
  id: 'subject', title: 'Server process', of: 'rung', order: 70,
  shows: ({ trial }) => has(trial.series, 'subject_cpu_cores', 'subject_rss_bytes'),
  mount: context => charts(context, [
    {
      options: { title: 'CPU', unit: 'cores', sync: context.sync },
      plot: ({ trial }) => {
        const cores = lineOf(trial.series, 'subject_cpu_cores', 'server', 'c2', { fill: true })
        return cores ? { x: seconds(trial.series), ...marks(trial), lines: [cores] } : null
      },
    },
    {
      options: { title: 'Memory', unit: 'bytes', sync: context.sync },
      plot: ({ trial }) => {
        const memory = lineOf(trial.series, 'subject_rss_bytes', 'server', 'c6', { fill: true })
        return memory ? { x: seconds(trial.series), ...marks(trial), lines: [memory] } : null
      },
    },
  ]),
}
export default panel
