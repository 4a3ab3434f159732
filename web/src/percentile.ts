// From buckets [highest ns, count] to curves and bars.
//
// A percentile with fewer than 100 samples beyond it is not stated (docs/method/percentiles.md), so a curve ends where
// its samples do, and no tail is drawn that ten messages made up.

export type Buckets = readonly (readonly [number, number])[]

/** So many samples must lie beyond a percentile before it is stated. */
export const EXCEEDANCES = 100

export interface Curve {
  /** −log10(1 − q): 1 is 90 %, 2 is 99 %, 3 is 99.9 % */
  nines: number[]
  ns: number[]
  count: number
}

export function total(buckets: Buckets): number {
  return buckets.reduce((sum, [, count]) => sum + count, 0)
}

/** The smallest value with a share `q` of the samples at or below it; null with fewer than 100 samples beyond it. */
export function quantileOf(buckets: Buckets, q: number): number | null {
  const count = total(buckets)
  if (count === 0 || count * (1 - q) < EXCEEDANCES - 1e-9) return null
  const rank = Math.max(1, Math.ceil(count * q - 1e-9))
  let below = 0
  for (const [highest, samples] of buckets) {
    below += samples
    if (below >= rank) return highest
  }
  return null
}

export function curve(buckets: Buckets): Curve {
  const count = total(buckets)
  const nines: number[] = []
  const values: number[] = []
  let below = 0
  for (const [highest, samples] of buckets) {
    below += samples
    const beyond = count - below
    if (beyond < EXCEEDANCES) break
    nines.push(-Math.log10(beyond / count))
    values.push(Math.max(1, highest))
  }
  return { nines, ns: values, count }
}

/** The value of a curve at `nines`: that of the first point at or beyond it; null where it ends before. */
export function at(of: Curve, nines: number): number | null {
  let low = 0
  let high = of.nines.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (of.nines[middle] < nines - 1e-9) low = middle + 1
    else high = middle
  }
  return low < of.ns.length ? of.ns[low] : null
}

/** Curves on one axis, for a chart: `step` nines apart. */
export function aligned(curves: Curve[], step = 0.02): { x: number[]; columns: (number | null)[][] } {
  const top = Math.max(0, ...curves.map(of => of.nines.at(-1) ?? 0))
  const x = Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step)
  return { x, columns: curves.map(of => x.map(nines => at(of, nines))) }
}

/** Counts in bins of `width` ns around whole multiples of it; bins between the first and the last stand even when empty. */
export function bins(buckets: Buckets, width: number): { at: number[]; counts: number[] } {
  if (buckets.length === 0) return { at: [], counts: [] }
  const counts = new Map<number, number>()
  for (const [highest, count] of buckets) {
    const bin = Math.round(highest / width)
    counts.set(bin, (counts.get(bin) ?? 0) + count)
  }
  const keys = [...counts.keys()]
  const first = Math.min(...keys)
  const last = Math.max(...keys)
  const positions = last - first < 2000
    ? Array.from({ length: last - first + 1 }, (_, index) => first + index)
    : keys.sort((a, b) => a - b)
  return { at: positions.map(bin => bin * width), counts: positions.map(bin => counts.get(bin) ?? 0) }
}

/** On time is ⌊period in ms⌋ ± 1 in whole ms (docs/method/ticks.md); null for a server without ticks. */
export function onTimeMs(periodNs: number): [number, number] | null {
  if (periodNs <= 0) return null
  const whole = Math.floor(periodNs / 1e6)
  return [whole - 1, whole + 1]
}
