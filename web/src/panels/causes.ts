import type { Conclusion } from '../data'
import { h, table } from '../dom'
import { shown } from '../figures'
import { duration, number } from '../format'
import { redrawn, type Panel } from './panel'

interface Moved { name: string; held: number; failed: number; half_at_s: number | null }

function movedOf(conclusions: Conclusion[] | undefined): { held: number; failed: number; rows: Moved[] } | null {
  const evidence = conclusions?.find(one => one.id === 'why_not_more')?.evidence
  const rows = evidence?.moved
  if (!Array.isArray(rows) || rows.length === 0 || typeof evidence?.held !== 'number' || typeof evidence.load !== 'number') return null
  return { held: evidence.held, failed: evidence.load, rows: rows as Moved[] }
}

/** A reading in the unit that its name ends in. */
function reading(name: string, value: number): HTMLElement {
  return shown(value, name.endsWith('_bytes') ? 'bytes' : /_share(_max)?$/.test(name) ? 'share' : 'number')
}

/** What the server and the machine did otherwise under the load that failed. */
const panel: Panel = {
  id: 'causes', title: 'What changed', of: 'run', order: 20,
  shows: ({ page }) => movedOf(page.climb?.conclusions) !== null,
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => {
    const moved = movedOf(page.climb?.conclusions)!
    const rows = moved.rows.map(one => [
      h('code', null, one.name), reading(one.name, one.held), reading(one.name, one.failed), one.half_at_s === null ? '—' : h('span', { 'data-value': one.half_at_s, 'data-unit': 's' }, duration(one.half_at_s)),
    ])
    return [table(['reading', `at ${number(moved.held)} (held)`, `at ${number(moved.failed)} (failed)`, 'half of its largest by'], rows, {
      caption: 'Means over the hold, the largest changes first. A mean of a total is its growth per second.',
    })]
  }),
}
export default panel
