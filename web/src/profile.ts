import type { Conclusion, LoadUnit } from './data'
import { number, unitText } from './format'

export const PROFILE = 'profile'
const SHOWN = 10

interface Cost { share: number; ns: number }
interface Growth { function: string; good: Cost; bad: Cost; is_sure: boolean }
/** At most ten functions; `marks`: those that may have grown by chance are marked. */
export interface ProfileTable { title: string; rows: Growth[]; marks: boolean }

function growths(list: unknown): Growth[] {
  return Array.isArray(list) ? (list as Growth[]).filter(one => one.bad?.share >= 0.002).slice(0, SHOWN) : []
}

/** What the profile's evidence has of waiting and of CPU; a table without rows is left out. */
export function profileTables(evidence: Conclusion['evidence']): ProfileTable[] {
  const grew = growths(evidence.grew)
  const hasGrown = grew.some(one => one.is_sure)
  return [
    { title: 'Waiting', rows: growths((evidence.waits as { grew?: unknown } | undefined)?.grew), marks: true },
    { title: 'CPU', rows: hasGrown ? grew : growths(evidence.most), marks: hasGrown },
  ].filter(one => one.rows.length > 0)
}

/** What the profile calls an operation, and both loads: the one that held first. */
export interface ProfileWords { per: string; loads: [string, string] }

export function wordsOf(evidence: Conclusion['evidence']): ProfileWords {
  const load = (name: string) => {
    const { load, load_unit } = (evidence[name] ?? {}) as { load?: number; load_unit?: LoadUnit }
    return `${number(load)} ${load_unit ? unitText(load_unit) : ''}`.trim()
  }
  return { per: typeof evidence.per === 'string' ? evidence.per : 'operation', loads: [load('good'), load('bad')] }
}
