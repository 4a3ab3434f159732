import { h, table } from '../dom'
import { percentile, shown } from '../figures'
import { machineFacts } from '../machine'
import { redrawn, type Panel } from './panel'

/** Where it was measured, with what, and how good that is against a server that does nothing. */
const panel: Panel = {
  id: 'machine', title: 'Machine and generator', of: 'machine', order: 90,
  shows: ({ page }) => page.climb !== null,
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => {
    const climb = page.climb!
    const facts = machineFacts([
      ['command', h('code', null, climb.run.command)], ['seed', String(climb.run.seed)], ['arrivals', climb.run.arrivals],
      ['stepladder', climb.run.stepladder], ['commit', climb.run.git ?? '—'],
      ['server and generator', climb.run.shared_cores ? 'on the same cores' : 'on separate cores'],
    ], climb.run.environment)
    const own = climb.generator
    const keys = ['p50', 'p90', 'p99', 'p999', 'max'] as const
    return [h('div', { class: 'tables' },
      table(['fact', 'value'], facts, { class: 'words' }),
      table(['generator', 'p50', 'p90', 'p99', 'p99.9', 'longest'], [
        ['own latency', ...keys.map(key => percentile(own.own_latency_ns, key))],
        ['send lag', ...keys.map(key => percentile(own.send_lag_ns, key))],
        ['ceiling', shown(own.ceiling_per_s, 'per_s', 'not calibrated'), '', '', '', ''],
      ], { caption: 'Against the null server' }))]
  }),
}
export default panel
