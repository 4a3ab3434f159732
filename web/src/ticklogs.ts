// Tick logs over each other.

import type { TickFile } from './data'

/** On time is 15 to 17 ms at 60 Hz; other rates are told from the file's commonest interval. */
export function bandOf(files: TickFile[]): [number, number] | null {
  let best = 0
  let at: number | null = null
  for (const file of files) {
    for (const [ms, count] of Object.entries(file.histogram)) if (count > best) [best, at] = [count, Number(ms)]
  }
  if (at === null) return null
  for (const period of [1000 / 60, 1000 / 30, 50, 1000 / 128, 1000 / 64, 100]) {
    const whole = Math.floor(period)
    if (Math.abs(at - whole) <= 1) return [whole - 1, whole + 1]
  }
  return null
}

/** Shares of all ticks, so that logs of different length lie over each other. */
export function histogramOf(files: TickFile[]): { x: number[]; columns: (number | null)[][] } {
  const keys = files.flatMap(file => Object.keys(file.histogram).map(Number)).filter(Number.isFinite)
  if (keys.length === 0) return { x: [], columns: files.map(() => []) }
  const [low, high] = [Math.min(...keys), Math.min(Math.max(...keys), Math.min(...keys) + 5000)]
  const x = Array.from({ length: high - low + 1 }, (_, at) => low + at)
  return {
    x,
    columns: files.map(file => {
      const all = Object.values(file.histogram).reduce((sum, count) => sum + count, 0)
      return x.map(ms => file.histogram[ms] ? file.histogram[ms] / all : null)
    }),
  }
}
