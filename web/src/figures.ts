// Figures of a judged rung by the name that objectives use, and why one may not be stated.

import { holdSpan, rowsOfHold, seconds, sumOver } from './columns'
import { type ColumnName, type MainFigure, REQUEST_UNITS, type Rung, type Summary, type TrialPage } from './data'
import { h } from './dom'
import { inUnit, NOT_STATED, number } from './format'
import { EXCEEDANCES } from './percentile'

type Distribution = Summary | null | undefined

const DISTRIBUTIONS: Record<string, (rung: Rung) => Distribution> = {
  response: rung => rung.response_ns,
  service: rung => rung.service_ns,
  send_lag: rung => rung.send_lag_ns,
  handshake: rung => rung.connections.handshake_ns,
  'ticks.interval': rung => rung.ticks?.interval_ns,
  'ticks.busy': rung => rung.ticks?.busy_ns,
  'client_ticks.interval': rung => rung.client_ticks?.interval_ns,
  first_byte: rung => rung.first_byte_ns,
  tls: rung => rung.tls_ns,
  'deliveries.latency': rung => rung.deliveries?.latency_ns,
}

/** Everything that went wrong, as the judge counts it (`errors` in crates/ladder/src/figures.rs; web/fixtures/errors.json has
 * cases for both): a message that failed, was lost, never left or was never answered may stand among the errors by its cause
 * too, so the larger of the two counts. */
export function errorsOf(rung: Pick<Rung, 'errors' | 'failed' | 'lost' | 'not_sent' | 'unanswered_at_stop'> & { connections: Pick<Rung['connections'], 'failed'> }): number {
  const all = (counts: Record<string, number>) => Object.values(counts).reduce((sum, count) => sum + count, 0)
  const bad = rung.failed + rung.lost + rung.not_sent + rung.unanswered_at_stop
  return Math.max(all(rung.errors), bad) + all(rung.connections.failed)
}

/** What the terminal counts as failed: messages without a right answer; of requests those too that never left or were never answered. */
export function failedOf(rung: Rung): number {
  return rung.failed + rung.lost + (REQUEST_UNITS.includes(rung.load_unit) ? rung.not_sent + rung.unanswered_at_stop : 0)
}

const NAMED: Record<string, (rung: Rung) => number | null | undefined> = {
  errors: rung => errorsOf(rung),
  rate_per_s: rung => rung.rate_per_s,
  'connections.open_min': rung => rung.connections.open_min,
  'connections.rate_per_s': rung => rung.connections.rate_per_s,
  'subject.cpu_cores': rung => rung.subject?.cpu_cores,
  'subject.cpu_share': rung => rung.subject?.cpu_share,
  'subject.rss': rung => rung.subject?.rss_bytes,
  'worker.busy_share': rung => rung.worker.busy_share_max,
}

function finite(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** The value of a figure of a judged rung; what an objective was judged by comes first. */
export function valueOf(rung: Rung | null, figure: Pick<MainFigure, 'name'> & { text?: string }): number | null {
  if (!rung) return null
  const judged = rung.evidence.objectives.find(one => one.objective === figure.text)
  if (judged) return finite(judged.value)
  const { name } = figure
  if (NAMED[name]) return finite(NAMED[name](rung))
  const dot = name.lastIndexOf('.')
  const of = DISTRIBUTIONS[name.slice(0, dot)]
  if (of) return finite(of(rung)?.[name.slice(dot + 1) as keyof Summary])
  return finite(name.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], rung))
}

/** What the figure seems to be while a rung is held: shares and counts add up, percentiles do not and stay unsaid. */
export function soFar(trial: TrialPage, name: string): number | null {
  const rows = holdSpan(trial) ? rowsOfHold(trial) : seconds(trial.series).map((_, row) => row)
  const sum = (column: ColumnName) => sumOver(trial.series, column, rows)
  switch (name) {
    case 'ticks.late_share': {
      const due = sum('ticks_due')
      const late = (['ticks_over', 'ticks_under', 'ticks_missed'] as const).reduce((all, column) => all + (sum(column) ?? 0), 0)
      return due ? late / due : null
    }
    case 'errors': {
      const bad = (['failed', 'lost', 'not_sent'] as const).reduce((all, column) => all + (sum(column) ?? 0), 0)
      const connects = sumOver(trial.series, 'connects_failed', seconds(trial.series).map((_, row) => row))
      return Math.max(sum('errors') ?? 0, bad) + (connects ?? 0)
    }
    case 'rate_per_s': {
      const answered = sum('answered') || sum('sent')
      return answered !== null && rows.length > 0 ? answered / rows.length : null
    }
    case 'subject.cpu_cores': {
      const cores = sum('subject_cpu_cores')
      return cores !== null ? cores / rows.length : null
    }
    default: return null
  }
}

const BEYOND: Partial<Record<keyof Summary, number>> = { p50: 0.5, p90: 0.1, p99: 0.01, p999: 0.001 }

/** Why a percentile of a distribution is `—`. */
export function whyNot(distribution: Distribution, key: keyof Summary): string {
  if (!distribution) return 'not measured in this run'
  const beyond = BEYOND[key]
  const { count } = distribution
  if (beyond) {
    const needed = Math.ceil(EXCEEDANCES / beyond)
    if (count < needed) return `needs ${number(needed)} samples (${EXCEEDANCES} beyond it); there are ${number(count)}`
    return 'infinite: too many messages were never answered'
  }
  return 'not measured in this run'
}

/** A figure as text, or `—` that tells its reason when hovered or focused. */
export function shown(value: unknown, unit: string, why = 'not measured in this run'): HTMLElement {
  const text = inUnit(unit)(finite(value))
  return text === NOT_STATED
    ? h('abbr', { class: 'unstated', title: why, tabindex: 0, 'aria-label': `not stated: ${why}` }, NOT_STATED)
    : h('span', { class: 'figure', 'data-value': finite(value), 'data-unit': unit }, text)
}

/** One percentile of a distribution. */
export function percentile(distribution: Distribution, key: keyof Summary): HTMLElement {
  return shown(distribution?.[key], 'ns', whyNot(distribution, key))
}

/** `errors == 0` as people say it. */
export function figureName(name: string): string {
  const words: Record<string, string> = {
    'ticks.late_share': 'late share of ticks', errors: 'errors', 'deliveries.lost': 'deliveries lost',
    rate_per_s: 'rate per second', 'subject.cpu_cores': 'server CPU', 'subject.cpu_share': 'server CPU share',
    'frames.rate_per_s': 'frame rate', 'subject.rss': 'server memory', 'errors.share': 'share of errors', 'worker.busy_share': 'busiest worker',
  }
  if (words[name]) return words[name]
  return name.replace(/\.p999$/, ' p99.9').replace(/\.(p\d+|max|mean)$/, ' $1').replace(/[._]/g, ' ').replace('p99 9', 'p99.9')
    .replace(/^subject /, 'server ').replace(/\bcpu\b/, 'CPU').replace(/^deliveries latency/, 'delivery')
}

/** Figures that a ladder may be drawn by: the objectives first, then what was measured. */
export function drawable(rungs: (Rung | null)[], objectives: MainFigure[]): MainFigure[] {
  const others: [string, string][] = [
    ['rate_per_s', 'per_s'], ['response.p50', 'ns'], ['response.p99', 'ns'], ['service.p99', 'ns'], ['ticks.late_share', 'share'],
    ['ticks.interval.p99', 'ns'], ['deliveries.latency.p99', 'ns'], ['subject.cpu_cores', 'cores'], ['subject.rss', 'bytes'],
    ['send_lag.p99', 'ns'], ['worker.busy_share', 'share'],
  ]
  const all = objectives.slice()
  for (const [name, unit] of others) {
    if (all.some(figure => figure.name === name)) continue
    const figure = { name, unit, op: '', bound: NaN, text: '' }
    if (rungs.some(rung => valueOf(rung, figure) !== null)) all.push(figure)
  }
  return all
}
