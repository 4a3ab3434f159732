// A row of the history in words, and what a search finds.

import type { RunRow } from './data'
import { number } from './format'

export function nameOf(run: RunRow): string {
  return run.labels?.name || run.id
}

export function matches(run: RunRow, words: string): boolean {
  const text = [run.id, run.subject, run.scenario, run.verdict, run.state, ...Object.values(run.labels ?? {})].join(' ').toLowerCase()
  return words.toLowerCase().split(/\s+/).every(word => text.includes(word))
}

export function capacityWords(run: RunRow): string {
  const { capacity } = run
  if (!capacity) return '—'
  const { lower_bound: lower, upper_bound: upper, unit } = capacity
  if (lower !== null && upper !== null) return `${number(lower)} – ${number(upper)} ${unit}`
  if (lower !== null) return `≥ ${number(lower)} ${unit}`
  if (upper !== null) return `< ${number(upper)} ${unit}`
  return 'unknown'
}
