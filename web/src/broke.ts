// When the first rung that failed broke: the first second of its hold beyond the limit, and the seconds around it.
//
// This judges nothing: the rung's verdict is of its whole hold. A second is only compared with the objective that was not met.

import { holdSpan, rowsOfHold, seconds, type Column } from './columns'
import type { ColumnName, MainFigure, RunPage, Series, TrialPage } from './data'

/** What each second says of a figure; counts add up over the hold. */
const COLUMNS: Record<string, [ColumnName, string, string]> = {
  'ticks.late_share': ['late_share', 'late share of ticks', 'share'],
  'response.p50': ['response_p50_ns', 'response p50', 'ns'], 'response.p99': ['response_p99_ns', 'response p99', 'ns'],
  'response.mean': ['response_mean_ns', 'mean response time', 'ns'], 'service.p50': ['service_p50_ns', 'service p50', 'ns'],
  'service.p99': ['service_p99_ns', 'service p99', 'ns'], 'deliveries.latency.p99': ['delivery_p99_ns', 'delivery p99', 'ns'],
  'deliveries.latency.mean': ['delivery_mean_ns', 'mean delivery time', 'ns'],
  errors: ['errors', 'errors', 'count'], failed: ['failed', 'failed', 'count'], lost: ['lost', 'lost', 'count'], not_sent: ['not_sent', 'not sent', 'count'],
  'connections.open_min': ['open', 'open connections', 'count'], 'connections.open': ['open', 'open connections', 'count'],
  rate_per_s: ['answered', 'answered', 'per_s'], 'frames.rate_per_s': ['frames', 'frames', 'per_s'],
  'subject.cpu_cores': ['subject_cpu_cores', 'server CPU', 'cores'], 'subject.rss': ['subject_rss_bytes', 'server memory', 'bytes'],
  unanswered: ['answered', 'answered', 'per_s'], 'stopped replying': ['answered', 'answered', 'per_s'], 'ticks.silence': ['ticks_on_time', 'ticks on time', 'per_s'],
}
const ADDED_UP: ColumnName[] = ['errors', 'failed', 'lost', 'not_sent']
/** A percentile of seconds with too few samples has gaps, and further percentiles have no column: the nearest that is there. */
const NEAREST: [RegExp, string[]][] = [
  [/^response\./, ['response.p99', 'response.mean', 'response.p50']], [/^service\./, ['service.p99', 'service.p50']],
  [/^deliveries\.latency\./, ['deliveries.latency.p99', 'deliveries.latency.mean']],
  // What never left or was never answered is counted when the hold is over; meanwhile answers take longer.
  [/^(errors|not_sent)/, ['response.mean', 'response.p99']],
  // A server that is gone is seen by what it no longer does.
  [/exited|silence|replying/, ['ticks.silence', 'unanswered']],
]
/** What a cause is seen by, second by second. */
const CAUSES: Record<string, [ColumnName, string, string]> = {
  cpu: ['subject_cpu_cores', 'server CPU', 'cores'], thread: ['subject_thread_cores', 'busiest thread of the server', 'cores'],
  lock: ['subject_cpu_cores', 'server CPU', 'cores'], 'shared-cores': ['worker_cpu_cores', 'generator CPU', 'cores'],
  throttled: ['throttle_events', 'throttled', 'count'], gc: ['subject_cpu_cores', 'server CPU', 'cores'],
  'descriptor-limit': ['open', 'open connections', 'count'], 'accept-queue': ['open', 'open connections', 'count'], 'connection-limit': ['open', 'open connections', 'count'],
}
/** Seconds before and after the moment that are shown. */
export const AROUND_S = 15

interface Seen { label: string; unit: string; values: Column }

export interface Broke {
  trial: TrialPage
  /** rows of the series that are shown */
  x: number[]
  figure: Seen | null
  /** the figure is not the one that failed, which no second states */
  isInstead: boolean
  cause: Seen | null
  /** the objective that was not met */
  objective: MainFigure | null
  /** second of the trial, and its row in `x`; null where no single second was beyond the limit */
  at: number | null
  row: number
}

/** The rung that failed first, as the answer names it; null where none did. */
export function failedTrial(page: RunPage): TrialPage | null {
  const said = page.climb?.conclusions.find(one => one.id === 'why_not_more')?.evidence
  const rung = page.climb?.rungs.find(one => one.load === said?.load && one.verdict === 'FAIL' && JSON.stringify(one.cell ?? null) === JSON.stringify(said?.cell ?? null))
  return rung ? page.trials.find(trial => trial.seq === rung.seq) ?? null : null
}

export function broke(page: RunPage): Broke | null {
  const trial = failedTrial(page)
  if (!trial) return null
  const said = page.climb!.conclusions.find(one => one.id === 'why_not_more')!.evidence
  const signal = String(said.signal ?? '')
  const objective = page.objectives.find(one => one.name === signal) ?? null
  const { series } = trial
  const exact = seen(series, COLUMNS[signal])
  const near = NEAREST.find(([of]) => of.test(signal))?.[1].map(name => seen(series, COLUMNS[name])).find(one => one !== null) ?? null
  const cause = said.cause as { name: string; standing: string } | null | undefined
  const at = momentOf(trial, exact, objective, COLUMNS[signal]?.[0])
  const all = seconds(series)
  const rows = all.map((_, row) => row).filter(row => at === null || Math.abs(all[row] - at) <= AROUND_S)
  const cut = (one: Seen | null) => one && { ...one, values: rows.map(row => one.values[row]) }
  const x = rows.map(row => all[row])
  return {
    trial, x, objective, at, row: at === null ? -1 : x.indexOf(at), figure: cut(exact ?? near), isInstead: !exact && near !== null,
    cause: cut(cause && cause.standing !== 'open' ? seen(series, CAUSES[cause.name]) : null),
  }
}

function seen(series: Series, of: [ColumnName, string, string] | undefined): Seen | null {
  const values = of && series[of[0]]
  return values && values.some(value => value !== null) ? { label: of[1], unit: of[2], values } : null
}

function momentOf(trial: TrialPage, exact: Seen | null, objective: MainFigure | null, name: ColumnName | undefined): number | null {
  const span = holdSpan(trial)
  const gone = trial.events.find(event => /exit/.test(event.kind) && span !== null && event.at_ns / 1e9 >= span[0])
  if (gone) return Math.floor(gone.at_ns / 1e9)
  if (!exact || !objective) return null
  let sum = 0
  const row = rowsOfHold(trial).find(row => {
    const value = exact.values[row]
    sum += value ?? 0
    return typeof value === 'number' && !isMet(objective, name && ADDED_UP.includes(name) ? sum : value)
  })
  return row === undefined ? null : seconds(trial.series)[row]
}

function isMet({ op, bound }: MainFigure, value: number): boolean {
  switch (op) {
    case '<': return value < bound
    case '<=': return value <= bound
    case '>': return value > bound
    case '>=': return value >= bound
    default: return value === bound
  }
}
