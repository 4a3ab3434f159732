import type { Rung, Summary } from '../data'
import { h, table } from '../dom'
import { percentile, shown } from '../figures'
import { number } from '../format'
import { redrawn, type Panel } from './panel'

const ROWS: [string, (rung: Rung) => Summary | null | undefined][] = [
  ['response', rung => rung.response_ns], ['service', rung => rung.service_ns], ['first byte', rung => rung.first_byte_ns],
  ['delivery', rung => rung.deliveries?.latency_ns], ['tick interval', rung => rung.ticks?.interval_ns], ['tick busy', rung => rung.ticks?.busy_ns],
  ['handshake', rung => rung.connections.handshake_ns], ['send lag', rung => rung.send_lag_ns], ['receive lag', rung => rung.receive_lag_ns],
]

/** What the script recorded, in its own units. */
function recorded(rung: Rung): Node[] {
  const names = Object.entries(rung.recorded ?? {})
  if (names.length === 0) return []
  return [table(['value', 'p50', 'p90', 'p99', 'largest', 'mean', 'samples'], names.map(([name, values]) =>
    [name, ...(['p50', 'p90', 'p99', 'max', 'mean', 'count'] as const).map(key => shown(values[key], 'number', 'too few samples'))]),
  { caption: 'Values that the script recorded' })]
}

/** The judged rung in figures. */
const panel: Panel = {
  id: 'figures', title: 'Figures', of: 'rung', order: 10,
  shows: ({ trial }) => trial.rung !== null,
  mount: context => redrawn(context, ({ trial }) => trial.rung, ({ trial }) => {
    const rung = trial.rung!
    const tile = (name: string, value: Node | string, unit = '') =>
      h('div', { class: 'tile' }, h('dt', null, name), h('dd', null, value, unit ? h('small', null, ` ${unit}`) : null))
    const [response, ...others] = ROWS
    const operations = Object.entries(rung.operations_ns ?? {}).map(([name, values]): typeof response => [`· ${name}`, () => values])
    const there = [response, ...operations, ...others].filter(([, of]) => of(rung))
    return [
      h('dl', { class: 'tiles' },
        tile('rate', shown(rung.rate_per_s, 'per_s')),
        rung.ticks ? tile('ticks late', shown(rung.ticks.late_share, 'share', 'no ticks were due')) : null,
        rung.response_ns ? tile('response p99', percentile(rung.response_ns, 'p99')) : null,
        rung.deliveries ? tile('deliveries lost', number(rung.deliveries.lost), `of ${number(rung.deliveries.owed)}`) : null,
        rung.frames ? tile('frame rate', shown(rung.frames.rate_per_s, 'per_s')) : null,
        rung.sessions ? tile('sessions at once', number(rung.sessions.at_once), `${number(rung.sessions.ended)} ended, ${number(rung.sessions.failed)} failed`) : null,
        tile('failed · lost', `${number(rung.failed)} · ${number(rung.lost)}`),
        rung.not_sent + rung.unanswered_at_stop > 0 ? tile('never sent · never answered', `${number(rung.not_sent)} · ${number(rung.unanswered_at_stop)}`) : null,
        tile('connections', number(rung.connections.open_min), `of ${number(rung.connections.asked)} in the worst second`),
        rung.subject ? tile('server CPU', shown(rung.subject.cpu_cores, 'cores')) : null,
        rung.subject ? tile('server memory', shown(rung.subject.rss_bytes, 'bytes')) : null,
        tile('hold', shown(rung.hold_s * 1e9, 'ns'), rung.steady ?? 'too short to tell whether steady')),
      there.length > 0 ? table(['time', 'p50', 'p90', 'p99', 'p99.9', 'longest', 'mean', 'samples'],
        there.map(([name, of]) => {
          const values = of(rung)
          return [name, ...(['p50', 'p90', 'p99', 'p999', 'max', 'mean'] as const).map(key => percentile(values, key)), shown(values?.count, 'count')]
        }), { caption: 'Times over the hold' }) : h('p', { class: 'note' }, 'No times were measured.'),
      ...recorded(rung),
    ]
  }),
}
export default panel
