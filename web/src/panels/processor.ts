import { lineOf } from '../chart'
import { has, seconds } from '../columns'
import { h, table } from '../dom'
import { shown } from '../figures'
import { charts, marks, redrawn, type Panel } from './panel'

/** The server's process: what it used while it was asked, and which of its threads used it. */
const panel: Panel = {
  id: 'subject', title: 'Server process', of: 'rung', order: 70,
  shows: ({ trial }) => has(trial.series, 'subject_cpu_cores', 'subject_rss_bytes'),
  mount: context => {
    const used = charts(context, [
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
    ])
    const threads = redrawn(context, ({ trial }) => trial.rung, ({ trial }) => {
      const rows: (string | Node)[][] = (trial.rung?.subject?.threads ?? []).map(one => [h('code', null, one.name), shown(one.cpu_cores, 'cores'), shown(one.cpu_cores_max, 'cores')])
      const ended = trial.rung?.activity?.ended_threads_cores
      if (ended && ended.mean >= 0.005) rows.push(['threads that ended', shown(ended.mean, 'cores'), shown(ended.max, 'cores')])
      if (rows.length === 0) return []
      return [table(['threads', 'CPU over the hold', 'largest second'], rows, {
        caption: 'By name: threads whose names differ in numbers only are one row.',
      })]
    })
    return {
      element: h('div', null, used.element, threads.element),
      update: now => { used.update(now); threads.update(now) },
      destroy: () => { used.destroy(); threads.destroy() },
    }
  },
}
export default panel
