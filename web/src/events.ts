// What happened on the time axis: the marks of the trial, and what its seconds themselves say.

import { holdSpan, seconds } from './columns'
import { type ColumnName, type DisturbedAbove, REQUEST_UNITS, type Series, type TrialPage } from './data'

export interface Event { at: number; kind: string; text: string; isBad: boolean }

/** So much of what stood falls away within a second before it is called an event. */
const FALL = 0.02
/** More of one kind are a state, not events; the columns show it. */
const MOST = 30

const WORDS: Record<string, string> = { settle: 'settles', hold: 'hold begins', drain: 'hold ends', end: 'end' }
const BAD = /error|exit|bug/
/** Data of the trial and nothing that happened in it. */
const DATA = new Set(['networks', 'agents'])

/** All events of a trial in the order of their time; `at` in s since its start. */
export function eventsOf(trial: TrialPage): Event[] {
  const told = trial.events.filter(event => !DATA.has(event.kind)).map(event => ({
    at: event.at_ns / 1e9, kind: WORDS[event.kind] ?? event.kind, text: event.kind === 'drain' ? enough(event.text) : event.text, isBad: BAD.test(event.kind),
  }))
  return [...told, ...noticed(trial)].sort((a, b) => a.at - b.at)
}

/** What ended a hold: `12s` is `after 12 s`, `2Mticks` is `after 2M ticks`. */
function enough(text: string): string {
  return text.replace(/^(\d[\d.]*[kM]?)(ms|s|m|h|ticks|games)\b/, 'after $1 $2')
}

/** The events as rows of a table: seconds in a row that were disturbed are one. */
export function inRows(events: Event[]): Event[] {
  const rows: (Event & { seconds: number })[] = []
  for (const event of events) {
    const last = rows.at(-1)
    if (event.kind === 'disturbed' && last?.kind === 'disturbed' && Math.abs(event.at - last.at - last.seconds) < 0.5) last.seconds++
    else rows.push({ ...event, seconds: 1 })
  }
  return rows.map(({ seconds, ...event }) => seconds > 1 ? { ...event, text: `for ${seconds} s; in the first, ${event.text}` } : event)
}

function noticed(trial: TrialPage): Event[] {
  const span = holdSpan(trial)
  if (!span) return []
  const { series } = trial
  const within = (t: number) => t >= span[0] && t < span[1]
  return [
    ...first(series, 'failed', 'first failed', within), ...first(series, 'lost', 'first lost', within),
    ...falls(series, within, REQUEST_UNITS.includes(trial.load_unit)), ...disturbed(series, trial.disturbed_above, within),
  ]
}

function first(series: Series, name: ColumnName, kind: string, within: (t: number) => boolean): Event[] {
  const values = series[name] ?? []
  const row = values.findIndex((value, row) => value !== null && value > 0 && within(seconds(series)[row]))
  return row < 0 ? [] : [{ at: seconds(series)[row], kind, text: `${values[row]} in this second`, isBad: true }]
}

/** Connections that fell away and those that came back: a storm of reconnects is both in a row. `mayFall`: of requests a server
 * may close what idles; one that takes an answer with it is lost, and marked as that. */
function falls(series: Series, within: (t: number) => boolean, mayFall: boolean): Event[] {
  const found: Event[] = []
  const open = series.open ?? []
  const times = seconds(series)
  times.forEach((t, row) => {
    const [was, is] = [open[row - 1], open[row]]
    if (typeof was !== 'number' || typeof is !== 'number' || !within(times[row - 1]) || !within(t)) return
    const least = Math.max(2, Math.max(was, is) * FALL)
    if (was - is >= least) found.push({ at: t, kind: 'connections fell', text: `${was} → ${is} open`, isBad: !mayFall })
    else if (is - was >= least) found.push({ at: t, kind: 'reconnected', text: `${was} → ${is} open`, isBad: false })
  })
  return found.length > MOST ? [] : found
}

function disturbed(series: Series, above: DisturbedAbove, within: (t: number) => boolean): Event[] {
  const found: Event[] = []
  seconds(series).forEach((t, row) => {
    const [share, cores] = [series.steal_share?.[row], series.others_cores?.[row]]
    const parts: string[] = []
    if (typeof cores === 'number' && cores > above.others_cores) parts.push(`other programs used ${cores.toFixed(1)} cores`)
    if (typeof share === 'number' && share > above.steal_share) parts.push(`the host stole ${(share * 100).toFixed(1)} % of the CPU`)
    if (parts.length > 0 && within(t)) found.push({ at: t, kind: 'disturbed', text: parts.join(', '), isBad: true })
  })
  return found.length > MOST ? [] : found
}
