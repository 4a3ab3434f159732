// A row of the history in words, and what a search finds.

import type { Capacity, RunRow } from './data'
import { number, unitText } from './format'

export function nameOf(run: RunRow): string {
  return run.labels?.name || run.id
}

export function matches(run: RunRow, words: string): boolean {
  const text = [run.id, run.kind, run.subject, run.scenario, run.verdict, run.state, run.answer, ...Object.values(run.labels ?? {})].join(' ').toLowerCase()
  return words.toLowerCase().split(/\s+/).every(word => text.includes(word))
}

export function capacityWords(capacity: Capacity | null): string {
  if (!capacity) return '—'
  const { lower_bound: lower, upper_bound: upper } = capacity
  const unit = unitText(capacity.unit)
  if (lower !== null && upper !== null) return `${number(lower)} – ${number(upper)} ${unit}`
  if (lower !== null) return `≥ ${number(lower)} ${unit}`
  if (upper !== null) return `< ${number(upper)} ${unit}`
  return 'unknown'
}

/** What a run is laid over: the one that it repeats (`stepladder again`), else the last one before it of the same subject. */
export function before(run: RunRow, all: RunRow[]): RunRow | null {
  const repeated = all.find(other => other.id === run.labels?.again)
  if (repeated) return repeated
  const older = all.filter(other => other.subject === run.subject && other.scenario === run.scenario
    && other.kind === 'climb' && other.started_unix_ms < run.started_unix_ms && other.rungs.length > 0)
  return older.reduce<RunRow | null>((last, other) => last === null || other.started_unix_ms > last.started_unix_ms ? other : last, null)
}
