import { h, table } from '../dom'
import { shown } from '../figures'
import { digits, number } from '../format'
import { eventsOf, inRows } from '../events'
import { redrawn, type Panel } from './panel'

/** What happened when, and what went wrong: in the words of whoever said it. */
const panel: Panel = {
  id: 'events', title: 'Events and errors', of: 'rung', order: 90,
  shows: ({ trial }) => trial.events.length > 0 || Object.keys(trial.rung?.errors ?? {}).length > 0,
  mount: context => redrawn(context, ({ trial }) => `${trial.events.length} ${trial.rung !== null} ${trial.hold !== null} ${trial.series.t?.length}`, ({ trial }) => {
    const causes = Object.entries(trial.rung?.errors ?? {}).concat(Object.entries(trial.rung?.connections.failed ?? {})
      .map(([cause, count]) => [`connection: ${cause}`, count]))
    const flows = Object.entries(trial.rung?.flows ?? {})
    const all = inRows(eventsOf(trial))
    const first = all.slice(0, 300)
    const more = all.length - first.length
    return [h('div', { class: 'tables' },
      causes.length > 0 ? table(['cause', 'times'], causes.sort((a, b) => b[1] - a[1]).map(([cause, count]) => [cause, shown(count, 'count')]), { caption: 'Errors' }) : null,
      table(['at', 'event', 'details'], first.map(event => [h('span', { 'data-value': event.at, 'data-unit': 's' }, `${digits(event.at)} s`), event.kind, event.text]), {
        caption: more > 0 ? `Events; ${number(more)} more are in the store` : 'Events', class: 'words',
      }),
      flows.length > 0 ? table(['operation', 'offered', 'not sent', 'sent', 'told', 'answered', 'late', 'failed', 'lost', 'open at the end'],
        flows.map(([name, flow]) => [name, ...(['offered', 'not_sent', 'sent', 'told', 'answered', 'late', 'failed', 'lost', 'open_after'] as const)
          .map(door => shown(flow[door], 'count'))]), { caption: 'Outcome of every message' }) : null)]
  }),
}
export default panel
