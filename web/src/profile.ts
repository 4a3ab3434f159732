import type { Conclusion, LoadUnit, ProfileGraph } from './data'
import { ns, number, share, unitText } from './format'

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

interface Stops { gc_share?: number | null; gc_max_ns?: number | null; other_share?: number | null; other_max?: { ns: number; name: string } | null; loop_delay_ns?: [number, number] | null; callback?: { ns: number; long: number } | null }

/** What kept the server's own code from running, at the load that held and at the one that failed: a row for each figure that its runtime tells. */
export function stopRows(evidence: Conclusion['evidence']): string[][] {
  const [good, bad] = ['good', 'bad'].map(name => (evidence[name] as { stops?: Stops } | undefined)?.stops)
  if (!good || !bad) return []
  const rows: [string, (stops: Stops) => string | null][] = [
    ['garbage collection, share of the hold', ({ gc_share }) => gc_share == null ? null : share(gc_share)],
    ['longest stop for garbage collection', ({ gc_max_ns }) => gc_max_ns == null ? null : ns(gc_max_ns)],
    ['other stops of the runtime, share of the hold', ({ other_share }) => other_share == null ? null : share(other_share)],
    ['longest of these', ({ other_max }) => other_max ? `${ns(other_max.ns)} (${other_max.name})` : null],
    ['delay of the event loop, p99', ({ loop_delay_ns }) => loop_delay_ns ? ns(loop_delay_ns[0]) : null],
    ['delay of the event loop, worst', ({ loop_delay_ns }) => loop_delay_ns ? ns(loop_delay_ns[1]) : null],
    ['longest callback', ({ callback }) => callback ? ns(callback.ns) : null],
    ['callbacks of 20 ms or longer', ({ callback }) => callback ? number(callback.long) : null],
  ]
  return rows.map(([name, of]) => [name, of(good), of(bad)]).filter((row): row is string[] => row[2] !== null).map(row => row.map(cell => cell ?? '—'))
}

type Both<T> = [T, T]

/** What the profile calls an operation; of both loads, the one that held first: its name, its samples of CPU, and the CPU of the whole server per operation. */
export interface ProfileWords { per: string; loads: Both<string>; samples: Both<number | null>; cpu_ns: Both<number | null> }

export function wordsOf(evidence: Conclusion['evidence']): ProfileWords {
  const hold = (name: string) => (evidence[name] ?? {}) as { load?: number; load_unit?: LoadUnit; samples?: number; cpu_ns?: number | null }
  const load = ({ load, load_unit }: ReturnType<typeof hold>) => `${number(load)} ${load_unit ? unitText(load_unit) : ''}`.trim()
  const [good, bad] = [hold('good'), hold('bad')]
  return {
    per: typeof evidence.per === 'string' ? evidence.per : 'operation', loads: [load(good), load(bad)],
    samples: [good.samples ?? null, bad.samples ?? null], cpu_ns: [good.cpu_ns ?? null, bad.cpu_ns ?? null],
  }
}

/** A profile that saw less than this part of the server's CPU says so. */
const LEAST_SEEN = 0.8

/** That the samples tell of little of the server's CPU, where it is so. */
export function unseen({ cpu_ns, loads }: ProfileWords, total_ns: Both<number>): string {
  const parts = ([1, 0] as const).map(side => ({ load: loads[side], part: cpu_ns[side] ? total_ns[side] / cpu_ns[side] : 1 }))
  const few = parts.filter(({ part }) => part < LEAST_SEEN)
  return few.length === 0 ? '' : `Samples tell of ${few.map(({ load, part }) => `${share(part)} of the server's CPU at ${load}`).join(' and ')}.`
}

/** The graph that explains most: of waiting where a function is known that requests wait in. */
export function firstGraph(graphs: ProfileGraph[], evidence: Conclusion['evidence']): number {
  const isWaiting = growths((evidence.waits as { grew?: unknown } | undefined)?.grew).some(one => one.is_sure)
  return Math.max(0, graphs.findIndex(one => one.of === (isWaiting ? 'waits' : 'cpu')))
}
