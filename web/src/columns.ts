// The seconds of a trial as columns: which are there, what they sum up to within the hold.
//
// A column is as long as `t`. What was not measured in a second is null, never zero, and no sum is made of nothing.

import type { ColumnName, Second, Series, TrialPage } from './data'

export type Column = (number | null)[]

const SECOND_NS = 1e9

export function column(series: Series, name: ColumnName): Column | null {
  const values = series[name]
  return values && values.some(value => value !== null) ? values : null
}

export function has(series: Series, ...names: ColumnName[]): boolean {
  return names.some(name => column(series, name) !== null)
}

export function seconds(series: Series): number[] {
  return (series.t ?? []) as number[]
}

/** The hold in seconds of the time axis; while it goes on, up to the newest second. */
export function holdSpan(trial: TrialPage): [number, number] | null {
  if (!trial.hold) return null
  const from = trial.hold.from_ns / SECOND_NS
  const { to_ns } = trial.hold
  return [from, to_ns === null ? Math.max(from, seconds(trial.series).at(-1) ?? 0) : to_ns / SECOND_NS]
}

/** Rows of the seconds that end within the hold. */
export function rowsOfHold(trial: TrialPage): number[] {
  const span = holdSpan(trial)
  if (!span) return []
  const rows: number[] = []
  seconds(trial.series).forEach((t, row) => { if (t >= span[0] && t < span[1]) rows.push(row) })
  return rows
}

export function sumOver(series: Series, name: ColumnName, rows: number[]): number | null {
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
export function latest(series: Series, name: ColumnName): number | null {
  const values = series[name] ?? []
  for (let row = values.length - 1; row >= 0; row--) if (values[row] !== null && values[row] !== undefined) return values[row]
  return null
}

/** One second's values into the columns, in place; a second that came before is completed, never erased. */
export function putSecond(series: Series, t: number, values: Second['values']): void {
  const times = (series.t ??= [])
  let row = times.length - 1
  while (row >= 0 && (times[row] as number) > t) row--
  if (row < 0 || times[row] !== t) {
    row++
    for (const column of Object.values(series)) column.splice(row, 0, column === times ? t : null)
  }
  for (const [name, value] of Object.entries(values) as [ColumnName, number][]) {
    const column = (series[name] ??= new Array(times.length).fill(null))
    column[row] = value
  }
}
