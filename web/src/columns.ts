// The seconds of a trial as columns: which are there, what they sum up to within the hold.
//
// A column is as long as `t`. What was not measured in a second is null, never zero, and no sum is made of nothing.

import type { Series, TrialPage } from './data'

export type Column = (number | null)[]

const SECOND_NS = 1e9

export function column(series: Series, name: string): Column | null {
  const values = series[name]
  return values && values.some(value => value !== null) ? values : null
}

export function has(series: Series, ...names: string[]): boolean {
  return names.some(name => column(series, name) !== null)
}

export function seconds(series: Series): number[] {
  return (series.t ?? []) as number[]
}

/** The hold in seconds of the time axis; while it goes on, up to the newest second. */
export function holdSpan(trial: TrialPage): [number, number] | null {
  if (trial.hold) return [trial.hold.from_ns / SECOND_NS, trial.hold.to_ns / SECOND_NS]
  const begin = trial.events.find(event => event.kind === 'hold')
  if (!begin) return null
  const end = trial.events.find(event => event.kind === 'drain')
  const newest = seconds(trial.series).at(-1) ?? begin.at_ns / SECOND_NS
  return [begin.at_ns / SECOND_NS, end ? end.at_ns / SECOND_NS : Math.max(newest, begin.at_ns / SECOND_NS)]
}

/** Rows of the seconds that end within the hold. */
export function rowsOfHold(trial: TrialPage): number[] {
  const span = holdSpan(trial)
  if (!span) return []
  const rows: number[] = []
  seconds(trial.series).forEach((t, row) => { if (t >= span[0] && t < span[1]) rows.push(row) })
  return rows
}

export function sumOver(series: Series, name: string, rows: number[]): number | null {
  const values = series[name]
  if (!values) return null
  let sum: number | null = null
  for (const row of rows) {
    const value = values[row]
    if (value !== null && value !== undefined) sum = (sum ?? 0) + value
  }
  return sum
}

export type Phase = 'ramp' | 'settle' | 'hold' | 'drain' | 'done'

export function phase(trial: TrialPage): Phase {
  const seen = (kind: string) => trial.events.some(event => event.kind === kind)
  if (trial.rung || seen('end')) return 'done'
  if (seen('drain')) return 'drain'
  if (seen('hold')) return 'hold'
  if (seen('settle')) return 'settle'
  return 'ramp'
}

/** The newest value of a column. */
export function latest(series: Series, name: string): number | null {
  const values = series[name] ?? []
  for (let row = values.length - 1; row >= 0; row--) if (values[row] !== null && values[row] !== undefined) return values[row]
  return null
}

/** One second's values into the columns, in place; a second that came before is completed, never erased. */
export function putSecond(series: Series, t: number, values: Record<string, number | null>): void {
  const times = (series.t ??= [])
  let row = times.length - 1
  while (row >= 0 && (times[row] as number) > t) row--
  if (row < 0 || times[row] !== t) {
    row++
    for (const name of Object.keys(series)) series[name].splice(row, 0, name === 't' ? t : null)
  }
  for (const [name, value] of Object.entries(values)) {
    if (name === 't' || value === null) continue
    const values = (series[name] ??= new Array(times.length).fill(null))
    values[row] = value
  }
}
