import type { Conclusion } from './data'

export const PROFILE = 'profile'
const SHOWN = 10

/** `ns` of CPU or waiting, or `bytes` of memory. */
export interface Cost { share: number; ns?: number; bytes?: number }
interface Growth { function: string; good: Cost; bad: Cost; is_sure: boolean }
/** At most ten functions; `marks`: those that may have grown by chance are marked; `all`: what shares are of. */
export interface ProfileTable { title: string; rows: Growth[]; marks: boolean; all: string }

function growths(list: unknown): Growth[] {
  return Array.isArray(list) ? (list as Growth[]).filter(one => one.bad?.share >= 0.002).slice(0, SHOWN) : []
}

/** Those that grew where one surely did, else those that took most. */
function grewOrMost({ grew, most }: { grew?: unknown; most?: unknown }): Pick<ProfileTable, 'rows' | 'marks'> {
  const rows = growths(grew)
  const marks = rows.some(one => one.is_sure)
  return { rows: marks ? rows : growths(most), marks }
}

/** What the profile's evidence has of waiting, of CPU and of allocations; a table without rows is left out. */
export function profileTables(evidence: Conclusion['evidence']): ProfileTable[] {
  const waits = evidence.waits as { grew?: unknown } | undefined
  const allocations = evidence.allocations as { grew?: unknown; most?: unknown } | undefined
  return [
    { title: 'Waiting', rows: growths(waits?.grew), marks: true, all: 'waiting in its functions' },
    { title: 'CPU', ...grewOrMost(evidence), all: "the server's CPU" },
    { title: 'Memory allocated', ...grewOrMost(allocations ?? {}), all: 'allocated bytes' },
  ].filter(one => one.rows.length > 0)
}
