import type { Conclusion, LoadUnit, ProfileGraph } from './data'
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

/** What the profile calls an operation, both loads and their samples of CPU: those of the load that held first. */
export interface ProfileWords { per: string; loads: [string, string]; samples: [number | null, number | null] }

export function wordsOf(evidence: Conclusion['evidence']): ProfileWords {
  const hold = (name: string) => (evidence[name] ?? {}) as { load?: number; load_unit?: LoadUnit; samples?: number }
  const load = ({ load, load_unit }: ReturnType<typeof hold>) => `${number(load)} ${load_unit ? unitText(load_unit) : ''}`.trim()
  const [good, bad] = [hold('good'), hold('bad')]
  return { per: typeof evidence.per === 'string' ? evidence.per : 'operation', loads: [load(good), load(bad)], samples: [good.samples ?? null, bad.samples ?? null] }
}

/** The graph that explains most: of waiting where a function is known that requests wait in. */
export function firstGraph(graphs: ProfileGraph[], evidence: Conclusion['evidence']): number {
  const isWaiting = growths((evidence.waits as { grew?: unknown } | undefined)?.grew).some(one => one.is_sure)
  return Math.max(0, graphs.findIndex(one => one.of === (isWaiting ? 'waits' : 'cpu')))
}
