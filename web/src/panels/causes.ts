import type { Conclusion } from '../data'
import { h, table } from '../dom'
import { shown } from '../figures'
import { duration, inUnit, number } from '../format'
import { redrawn, type Panel } from './panel'

interface Moved { name: string; held: number; failed: number; half_at_s: number | null }

function movedOf(conclusions: Conclusion[] | undefined): { held: number; failed: number; rows: Moved[] } | null {
  const evidence = conclusions?.find(one => one.id === 'why_not_more')?.evidence
  const rows = evidence?.moved
  if (!Array.isArray(rows) || rows.length === 0 || typeof evidence?.held !== 'number' || typeof evidence.load !== 'number') return null
  // What reads the same under both loads did not change for a reader.
  const differing = (rows as Moved[]).filter(one => inUnit(unitOf(one.name))(one.held) !== inUnit(unitOf(one.name))(one.failed))
  return differing.length > 0 ? { held: evidence.held, failed: evidence.load, rows: differing } : null
}

/** The unit that the name of a reading ends in. */
function unitOf(name: string): string {
  return name.endsWith('_bytes') ? 'bytes' : /_share(_max)?$/.test(name) ? 'share' : 'number'
}

/** What the server and the machine did otherwise under the load that failed. */
const panel: Panel = {
  id: 'causes', title: 'What changed', of: 'run', order: 20,
  shows: ({ page }) => movedOf(page.climb?.conclusions) !== null,
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => {
    const moved = movedOf(page.climb?.conclusions)!
    const rows = moved.rows.map(one => [
      h('code', null, one.name), shown(one.held, unitOf(one.name)), shown(one.failed, unitOf(one.name)), one.half_at_s === null ? '—' : h('span', { 'data-value': one.half_at_s, 'data-unit': 's' }, duration(one.half_at_s)),
    ])
    return [table(['reading', `at ${number(moved.held)} (held)`, `at ${number(moved.failed)} (failed)`, 'half its peak after'], rows, {
      caption: 'Means over the hold, largest change first; of a counter, its growth per second.',
    })]
  }),
}
export default panel
