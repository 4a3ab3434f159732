// Axes: their ranges, and which of their numbers are written.

import type uPlot from 'uplot'
import type { Bound } from './chart'

export function top(high: number | null | undefined, least: number | undefined, bounds: Bound[] | undefined, right: boolean): number {
  let most = Math.max(high ?? 0, least ?? 0) * 1.06
  // A bound is shown as long as that does not press the data flat.
  for (const bound of bounds ?? []) {
    if (Boolean(bound.right) === right && bound.at < Math.max(most, 1e-12) * 6) most = Math.max(most, bound.at * 1.12)
  }
  return most > 0 ? most : 1
}

export function logRange(low: number | null, high: number | null, bounds: number[]): [number, number] {
  let from = low && low > 0 ? low : 1
  let to = high && high > 0 ? high : from * 10
  for (const bound of bounds) if (bound > 0 && bound < to * 20) to = Math.max(to, bound * 1.3)
  from = 10 ** Math.floor(Math.log10(from * 1.0001))
  // Up to the next 1, 2 or 5: a whole decade above the highest value would be empty.
  const decade = 10 ** Math.floor(Math.log10(to))
  const step = [1, 2, 5, 10].find(times => decade * times >= to * 1.02) ?? 20
  return [from, Math.max(from * 10, decade * step)]
}

export function logLabels(_: uPlot, splits: number[]): (number | null)[] {
  const decades = Math.log10(splits[splits.length - 1] / splits[0])
  return splits.map(split => {
    const leading = Math.round(split / 10 ** Math.floor(Math.log10(split) + 1e-9))
    return leading === 1 || (decades < 2.5 && (leading === 2 || leading === 5)) ? split : null
  })
}

export function nineSplits(_: uPlot, __: number, low: number, high: number): number[] {
  return [0, -Math.log10(0.5), 1, 2, 3, 4, 5, 6, 7].filter(split => split >= low && split <= high)
}

/** Leaves out labels that would stand on the one before them. */
export function roomFor(pixels: number): uPlot.Axis.Filter {
  return (chart, splits) => {
    let free = -Infinity
    return splits.map(split => {
      const at = chart.valToPos(split, 'x')
      if (at < free) return null
      free = at + pixels
      return split
    })
  }
}

/** Of an axis of time: the first seconds of a trial do not fill a minute, nor a single one the width. */
export function span(low: number, high: number): [number, number] {
  if (low === null || high === null || low === undefined || high === undefined) return [0, 10]
  return [low, Math.max(high, low === 0 ? 10 : low)]
}

export function pad(low: number, high: number, axis: string): [number, number] {
  if (low === null || high === null || low === undefined || high === undefined) return [0, 1]
  if (axis === 'nines') return [0, Math.max(1, high)]
  const margin = Math.max(0.6, (high - low) * 0.02)
  return [Math.max(-0.5, low - margin), high + margin]
}

export function unitName(unit: string): string {
  return ({ ns: '', share: '%', per_s: 'per second', bytes: 'bytes', bytes_per_s: 'bytes/s', cores: 'cores', count: '' } as Record<string, string>)[unit] ?? unit
}
