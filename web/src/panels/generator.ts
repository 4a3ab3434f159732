import { lineOf, type Line } from '../chart'
import { seconds } from '../columns'
import { h } from '../dom'
import { shown } from '../figures'
import { ns } from '../format'
import { charts, marks, redrawn, type Panel } from './panel'

/** The generator's own health. It is always shown: a figure is worth what the hand that measured it is worth. */
const panel: Panel = {
  id: 'generator', title: 'Load generator health', of: 'rung', order: 80,
  shows: () => true,
  mount: context => {
    const words = redrawn(context, ({ trial }) => trial.rung, ({ trial }) => {
      const rung = trial.rung
      if (!rung) return []
      const { evidence, worker } = rung
      const tile = (name: string, value: Node, limit: string | null) =>
        h('div', { class: 'tile' }, h('dt', null, name), h('dd', null, value), limit ? h('dd', { class: 'limit' }, limit) : null)
      const lagLimit = evidence.send_lag_limit_ns === null ? null : `limit ${ns(evidence.send_lag_limit_ns)}`
      return [h('dl', { class: 'tiles' },
        tile('send lag p99', shown(rung.send_lag_ns?.p99 ?? evidence.send_lag_p99_ns, 'ns', 'too few sends for a p99'), lagLimit),
        tile('busiest worker', shown(worker.cpu_share_max ?? worker.busy_share_max, 'share'), 'limit 80 % while it lags'),
        tile('waited for a core', shown(worker.waiting_share_max, 'share', 'not available on this machine'), 'limit 10 % while it lags'),
        tile('own latency p99', shown(evidence.own_latency_p99_ns, 'ns', 'not calibrated, or too few answers for a p99'), 'against the null server'),
        tile('disturbed seconds', shown(rung.disturbed_share, 'share', 'steal and other programs cannot be read on this machine'), 'objectives met despite them stay met'),
        tile('CPU', shown(worker.cpu_cores, 'cores'), null),
        tile('not sent', shown(rung.not_sent, 'count'), null))]
    })
    const overTime = charts(context, [
      {
        options: { title: 'Send lag p99: sent − planned', unit: 'ns', sync: context.sync },
        plot: ({ trial }) => {
          const lag = lineOf(trial.series, 'send_lag_p99_ns', 'send lag p99', 'c8')
          return lag ? { x: seconds(trial.series), ...marks(trial), lines: [lag] } : null
        },
      },
      {
        options: { title: 'Busy, waiting, stolen, and other programs', unit: 'share', unitRight: 'cores', sync: context.sync, top: 0.1 },
        plot: ({ trial }) => {
          const lines = [
            lineOf(trial.series, 'busy_share', 'busiest worker', 'c1'),
            lineOf(trial.series, 'steal_share', 'stolen by the host', 'fail', { fill: true }),
            lineOf(trial.series, 'worker_waiting_share', 'worker waiting for a core', 'c3'),
            lineOf(trial.series, 'worker_cpu_cores', 'generator CPU', 'c8', { right: true, dash: true }),
            lineOf(trial.series, 'others_cores', 'other programs', 'c4', { right: true }),
          ].filter((line): line is Line => line !== null)
          return lines.length > 0 ? { x: seconds(trial.series), ...marks(trial), lines } : null
        },
      },
    ])
    return {
      element: h('div', null, words.element, overTime.element),
      update: now => { words.update(now); overTime.update(now) },
      destroy: () => { words.destroy(); overTime.destroy() },
    }
  },
}
export default panel
