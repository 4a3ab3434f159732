// Tables as text for other programs: CSV (RFC 4180) with full precision, units in the head, and nothing where nothing is stated.

import type { ChartOptions, Plot } from './chart'

/** A figure in its inner unit, or words. */
export type Cell = string | { value: number; unit: string }

/** Text from a server under test must not become a formula of the spreadsheet that opens it. */
function field(value: string | number | null): string {
  if (typeof value === 'number') return String(value)
  const text = (value ?? '').replace(/^(?=[=+\-@\t\r])/, "'")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function csv(rows: (string | number | null)[][]): string {
  return rows.map(row => `${row.map(field).join(',')}\r\n`).join('')
}

function headed(name: string, unit: string | undefined): string {
  return !unit || unit === 'count' || unit === 'number' ? name : `${name} (${unit === 'per_s' ? '1/s' : unit.replace('_per_s', '/s')})`
}

/** What a chart draws, before it was thinned or stacked. */
export function plotCsv({ unit, unitRight, axis = 'time' }: ChartOptions, { x, lines }: Plot): string {
  const first = { time: 'time (s)', ms: 'interval (ms)', nines: 'quantile' }[axis]
  const head = [first, ...lines.map(line => headed(line.label, line.right ? unitRight ?? unit : unit))]
  return csv([head, ...x.map((at, row) => [axis === 'nines' ? 1 - 10 ** -at : at, ...lines.map(line => line.values[row] ?? null)])])
}

/** A table; where a column has figures of several units, each cell has its own. */
export function tableCsv(head: string[], rows: Cell[][]): string {
  const units = head.map((_, at) => [...new Set(rows.flatMap(row => typeof row[at] === 'object' ? [row[at].unit] : []))])
  return csv([
    head.map((name, at) => units[at].length === 1 ? headed(name, units[at][0]) : name),
    ...rows.map(row => row.map((cell, at) => typeof cell === 'string' ? cell : units[at].length === 1 ? cell.value : headed(String(cell.value), cell.unit))),
  ])
}
