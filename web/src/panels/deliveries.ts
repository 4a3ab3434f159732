import { lineOf, type Line } from '../chart'
import { has, seconds } from '../columns'
import type { DeliveryFigures } from '../data'
import { h, table } from '../dom'
import { percentile, shown } from '../figures'
import { number } from '../format'
import { charts, marks, redrawn, type Panel } from './panel'

/** The books of a broadcast: what was owed, what came, and who waited longest. */
const panel: Panel = {
  id: 'deliveries', title: 'Deliveries', of: 'rung', order: 30,
  shows: ({ trial }) => Boolean(trial.rung?.deliveries) || has(trial.series, 'delivery_mean_ns', 'delivery_p99_ns') || trial.slowest.length > 0,
  mount: context => {
    const overTime = charts(context, [{
      options: { title: 'Delivery latency: received − planned', unit: 'ns', sync: context.sync },
      plot: ({ trial }) => {
        const lines = [
          lineOf(trial.series, 'delivery_p99_ns', 'p99', 'c5'), lineOf(trial.series, 'delivery_mean_ns', 'mean', 'c3'),
        ].filter((line): line is Line => line !== null)
        return lines.length > 0 ? { x: seconds(trial.series), ...marks(trial), lines } : null
      },
    }], 'charts')
    const books = redrawn(context, ({ trial }) => trial.rung ?? trial.slowest, ({ trial }) => {
      const parts: Node[] = []
      const owed = trial.rung?.deliveries
      if (owed) {
        const why = 'the server does not report its drops'
        parts.push(table(['outcome', 'messages'], [
          ['owed', range(owed)], ['delivered', shown(owed.delivered, 'count')], ['of these late', shown(owed.late, 'count')], ['lost', shown(owed.lost, 'count')],
          ['dropped, as the server reports', shown(owed.drops_are_told ? owed.dropped : null, 'count', why)],
          ['waiting at the end', shown(owed.in_flight, 'count')],
          ['residual', shown(owed.drops_are_told ? owed.residual : null, 'count', why)],
          ['duplicated', shown(owed.duplicated, 'count')], ['out of order', shown(owed.reordered, 'count')],
          ['latency p50', percentile(owed.latency_ns, 'p50')], ['latency p99', percentile(owed.latency_ns, 'p99')],
          ['latency p99.9', percentile(owed.latency_ns, 'p999')], ['latency max', percentile(owed.latency_ns, 'max')],
        ], { caption: 'Deliveries over the whole trial, all receivers' }))
      }
      if (trial.slowest.length > 0) {
        parts.push(table(['receiver', 'mean', 'longest', 'lost'],
          trial.slowest.map(one => [`#${one.receiver}`, shown(one.latency_mean_ns, 'ns'), shown(one.latency_max_ns, 'ns'), shown(one.sum.lost, 'count')]),
          { caption: 'The slowest receivers' }))
      }
      return parts
    })
    books.element.className = 'tables'
    return {
      element: h('div', null, overTime.element, books.element),
      update: now => { overTime.update(now); books.update(now) },
      destroy: () => { overTime.destroy(); books.destroy() },
    }
  },
}

function range(owed: DeliveryFigures): Node | string {
  return owed.owed_min === owed.owed_max ? shown(owed.owed, 'count') : `${number(owed.owed)} (between ${number(owed.owed_min)} and ${number(owed.owed_max)})`
}
export default panel
