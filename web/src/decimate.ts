// Fewer points than pixels could show apart: every bucket keeps its lowest and its highest value.
//
// Nothing is invented: each value that is kept was measured, and a peak of one second in an hour stays visible. Only
// the instant may move, by less than a bucket. Counts that are stacked cannot keep extremes and stay a sum, so these
// are averaged over the bucket, and the chart says so. A bucket without any value is a gap.

export type Column = (number | null)[]
export type Way = 'extremes' | 'mean'

export interface Decimated {
  x: number[]
  columns: Column[]
  /** points of the original per bucket; 1 when nothing was left out */
  per: number
}

/** Indices [from, to) of `x` (ascending) within [low, high], with one neighbour on each side so that lines reach the edge. */
export function window(x: readonly number[], low: number, high: number): [number, number] {
  let from = lowerBound(x, low)
  let to = lowerBound(x, high)
  while (to < x.length && x[to] <= high) to++
  from = Math.max(0, from - 1)
  return [from, Math.min(x.length, to + 1)]
}

function lowerBound(x: readonly number[], value: number): number {
  let low = 0
  let high = x.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (x[middle] < value) low = middle + 1
    else high = middle
  }
  return low
}

/** At most about `points` points of the rows [from, to). */
export function decimate(
  x: readonly number[], columns: readonly Column[], points: number, way: Way = 'extremes', from = 0, to = x.length,
): Decimated {
  const rows = to - from
  if (rows <= points || points < 4) {
    return { x: x.slice(from, to), columns: columns.map(column => column.slice(from, to)), per: 1 }
  }
  return way === 'mean' ? means(x, columns, points, from, to) : extremes(x, columns, points, from, to)
}

function extremes(x: readonly number[], columns: readonly Column[], points: number, from: number, to: number): Decimated {
  const per = Math.ceil((to - from) / (points / 2))
  const buckets = Math.ceil((to - from) / per)
  // The last bucket may hold a single row, which stands once: no two points share an instant.
  const lone = (to - from) % per === 1 ? 1 : 0
  const outX = new Array<number>(buckets * 2 - lone)
  const out = columns.map(() => new Array<number | null>(buckets * 2 - lone))
  for (let bucket = 0; bucket < buckets; bucket++) {
    const begin = from + bucket * per
    const end = Math.min(to, begin + per)
    const isLone = end - begin === 1
    outX[bucket * 2] = x[begin]
    if (!isLone) outX[bucket * 2 + 1] = x[begin + ((end - begin) >> 1)]
    for (let at = 0; at < columns.length; at++) {
      const column = columns[at]
      let lowAt = -1
      let highAt = -1
      for (let row = begin; row < end; row++) {
        const value = column[row]
        if (value === null || value === undefined) continue
        if (lowAt < 0 || value < (column[lowAt] as number)) lowAt = row
        if (highAt < 0 || value > (column[highAt] as number)) highAt = row
      }
      const first = Math.min(lowAt, highAt)
      const second = Math.max(lowAt, highAt)
      out[at][bucket * 2] = first < 0 ? null : column[first]
      if (!isLone) out[at][bucket * 2 + 1] = second < 0 ? null : column[second]
    }
  }
  return { x: outX, columns: out, per }
}

function means(x: readonly number[], columns: readonly Column[], points: number, from: number, to: number): Decimated {
  const per = Math.ceil((to - from) / points)
  const buckets = Math.ceil((to - from) / per)
  const outX = new Array<number>(buckets)
  const out = columns.map(() => new Array<number | null>(buckets))
  for (let bucket = 0; bucket < buckets; bucket++) {
    const begin = from + bucket * per
    const end = Math.min(to, begin + per)
    outX[bucket] = x[begin]
    for (let at = 0; at < columns.length; at++) {
      let sum = 0
      let count = 0
      for (let row = begin; row < end; row++) {
        const value = columns[at][row]
        if (value === null || value === undefined) continue
        sum += value
        count++
      }
      out[at][bucket] = count === 0 ? null : sum / count
    }
  }
  return { x: outX, columns: out, per }
}
